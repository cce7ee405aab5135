"""The records of a prepared evaluation: the task, its data, the models to call, judges and measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from sightline.benchmarks.base import Benchmark
from sightline.config import Config
from sightline.evaluation.augment import ImageReplacement
from sightline.judging.judges import HumanJudge
from sightline.models.base import Model
from sightline.models.embedder import Embedder
from sightline.models.text_metrics import TextMetric
from sightline.plan.effective import EffectiveOptions
from sightline.plan.samples import Samples
from sightline.plan.spec import Spec
from sightline.results.fail_if import Condition


class PreparedTask(Struct, frozen=True, kw_only=True):
    """What is evaluated: a benchmark under one setting, its effective options and the selected samples.

    Every path needs it: `run`, `score`, `--dry-run` and the inspect tasks. `folder` is the data folder, None
    where there is none.
    """

    benchmark: Benchmark
    setting: str
    options: EffectiveOptions
    split: str
    folder: Path | None
    samples: Samples

    @property
    def name(self) -> str:
        """The task as the command line writes it: `benchmark:setting`."""
        return f"{self.benchmark.name}:{self.setting}"

    @property
    def partners(self) -> dict[str, dict[str, Any]]:
        """The benchmark options of every other setting whose answers some metric reads."""
        options = self.options.benchmark
        needs = sorted({metric.needs for metric in self.benchmark.metrics(options) if metric.needs})
        return {setting: self.benchmark.partner(setting, options) for setting in needs}


class Survey(Struct, frozen=True, kw_only=True):
    """What the samples of an evaluation are."""

    data_digest: str
    ids_digest: str
    samples: int
    probes: int
    folders: tuple[str, ...]
    is_foreign: bool = False
    left_out: tuple[str, ...] = ()


class PreparedModels(Struct, frozen=True, kw_only=True):
    """What answers the probes: one model at one or several hosts. Empty where the answers exist already.

    `replacement` is the text that the model gets instead of images, None if it sees them.
    """

    models: Sequence[Model] = ()
    replacement: ImageReplacement | None = None


class PreparedJudges(Struct, frozen=True, kw_only=True):
    """The judges that need more than the benchmark: models to call, and verdicts of humans, by judge name."""

    models: Mapping[str, Sequence[Model]] = field(default_factory=dict)
    humans: Mapping[str, HumanJudge] = field(default_factory=dict)


class PreparedMeasures(Struct, frozen=True, kw_only=True):
    """What measures responses without judging them; each part loads a model of its own when it is needed."""

    embedder: Embedder | None = None
    text_metrics: Mapping[str, TextMetric] = field(default_factory=dict)


class Prepared(Struct, frozen=True, kw_only=True):
    """An evaluation that was checked and can start.

    `fail_if` are the parsed conditions of --fail-if.
    """

    spec: Spec
    config: Config
    task: PreparedTask
    survey: Survey
    models: PreparedModels
    judges: PreparedJudges
    measures: PreparedMeasures
    fail_if: tuple[Condition, ...] = ()
