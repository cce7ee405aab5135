"""How a benchmark reads: what it must say of itself, and nothing of models, stores or files of results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from sightline.formats.prediction import Prediction
from sightline.scoring.scorer import Scorer
from sightline.types import Case, Group, Metric, Probe, Sample

FILE = "FILE"
"""The name of a setting that stands for any file: `groups:mine.jsonl` fills its option `file`."""


class Option(Struct, frozen=True):
    """One `--set` key of a benchmark: its default, what it means, and what is allowed.

    A value is one of `choices`, else a whole number from `least`, else a text (or None for the default).
    """

    default: Any
    summary: str
    choices: tuple[Any, ...] | None = None
    least: int | None = None

    def allows(self, value: Any) -> bool:
        """Whether a value may be given."""
        if self.choices is not None:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        if self.least is not None:
            counts = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
            return counts or value is self.default
        return isinstance(value, str) or value == self.default

    @property
    def allowed(self) -> str:
        """What is allowed, in words."""
        if self.choices is not None:
            return "one of " + ", ".join(map(_written, self.choices))
        return f"a whole number from {self.least}" if self.least is not None else "a text"


def _written(choice: Any) -> str:
    """A choice as it is written behind --set KEY=; 0 and 1 are no switches."""
    return ("off", "on")[choice] if isinstance(choice, bool) else str(choice)


ANSWER_BY = Option(
    "text", "answer in words, or take the option that the model finds likeliest", ("text", "likelihood")
)
"""The option `answer_by` of benchmarks whose questions offer options."""


class Setting(Struct, frozen=True):
    """A named way to run a benchmark: the options that it fixes, the sampling it was run with, and the
    table that it reproduces ('unpublished' where the paper does not say)."""

    name: str
    summary: str
    reproduces: str
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    sampling_source: str = "unpublished"


class Facts(Struct, frozen=True):
    """What reports know of a benchmark; empty where it says none.

    `leading`: the metrics that compact tables show. `chance`: metric -> the line
    that says what guessing gets. `correlated`: the pairs of metrics whose correlation over models its paper
    speaks of, by `coefficient`. `spread`: the metrics whose spread over models it speaks of. `commands`: its
    questions are instructions, most of them commands, so that their verbs can be counted. `texts`: those of a
    data folder's split that its samples do not hold, by kind. `errors`: those of models that its paper
    tells apart.
    """

    leading: tuple[str, ...] = ()
    chance: Mapping[str, str] = field(default_factory=dict)
    correlated: tuple[tuple[str, str], ...] = ()
    coefficient: Literal["pearson", "spearman"] = "pearson"
    spread: tuple[str, ...] = ()
    commands: bool = False
    texts: Callable[[Path, str], Mapping[str, list[str]]] | None = None
    errors: tuple[str, ...] = ()


def defaults(benchmark: Benchmark, setting: Setting) -> dict[str, Any]:
    """The options of a benchmark under a setting, where the user says nothing."""
    return {**{name: option.default for name, option in benchmark.options.items()}, **setting.options}


def about(group: Group, question: str = "correct") -> Iterator[Case]:
    """A case for each outcome of a group by itself."""
    for index, outcome in enumerate(group):
        yield Case(
            targets=(outcome.key,),
            question=question,
            probe_question=outcome.question,
            texts=(outcome.response,),
            references=outcome.references,
            options=outcome.options,
            outcome_index=index,
            variant=outcome.variant,
            images=group.evidence.get(outcome.key, ()),
        )


class Benchmark(Protocol):
    """A benchmark: samples, the probes of each, the cases to judge in each group, and the metrics.

    It may also carry `facts` (`Facts`), which reports look for.
    """

    name: str
    title: str
    citation: str
    splits: tuple[str, ...]
    settings: Mapping[str, Setting]
    options: Mapping[str, Option]
    judged_by: tuple[str, ...]
    """Kinds of judges it takes: `rules`, `model`, `people`."""
    presets: Mapping[str, Mapping[str, Any]]
    """Named sets of sampling options for `--gen NAME`."""

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The released records of a split, checked, in their order. Raises UserError with file and record."""
        ...

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The probes of a sample, in variant order."""
        ...

    def cases(self, group: Group) -> Iterator[Case]:
        """What is to be judged in a group: each outcome by itself (`about`), then comparisons.

        A case with an answer that failed or is empty may be yielded; nobody is asked about it.
        """
        ...

    def scorer(self, question: str, kind: str, options: Mapping[str, Any]) -> Scorer | None:
        """The scorer that a kind of judge (`rules`, `model`) uses for a question; None where it has none."""
        ...

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """The metrics under these options, the primary one first."""
        ...

    def shown_in(self, file: str, predictions: Sequence[Prediction], folder: Path | None) -> dict[str, Any]:
        """The options that follow from a file of answers, where that says itself what was shown or asked.

        `folder` is the data folder, None where none was named.
        """
        ...

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options of another setting, asked about in everything else like these."""
        ...
