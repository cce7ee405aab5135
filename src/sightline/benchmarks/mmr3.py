"""MM-R3: the same question reworded, the same picture restyled, the same object masked (Chou et al. 2024)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.benchmarks.base import Option, Setting
from sightline.benchmarks.groups import (
    FACTS,
    OPTIONS,
    SAMPLING,
    SAMPLING_SOURCE,
    cases_of,
    metrics_of,
    probes_in,
    samples_of,
    scorer_of,
)
from sightline.benchmarks.groups_data import task_file
from sightline.formats.prediction import Prediction
from sightline.scoring.scorer import Scorer
from sightline.types import Case, Group, Metric, Probe, Sample


def _setting(name: str, summary: str, reproduces: str) -> Setting:
    return Setting(name, summary, reproduces, {"task": name}, SAMPLING, SAMPLING_SOURCE)


class Mmr3:
    """Three tasks over what `sightline build` makes: 1,172, 1,332 and 1,500 groups in the paper."""

    name = "mmr3"
    title = "MM-R3: consistency under rephrasing, restyling and masking"
    citation = "Chou et al. 2024, MM-R3: On (In-)Consistency of Multi-modal Large Language Models"
    splits: tuple[str, ...] = ("test",)
    judged_by: tuple[str, ...] = ("rules", "model", "people")
    presets: Mapping[str, Mapping[str, Any]] = {}
    facts = FACTS
    settings: Mapping[str, Setting] = {
        setting.name: setting
        for setting in (
            _setting("rephrasing", "one question, three rephrasings", "Tables 2, 5, 7 and 9"),
            _setting("restyling", "one picture, four styles", "Tables 3, 5, 7, 8, 9 and 10"),
            _setting("context", "one picture, three maskings of an object", "Tables 4, 5, 7, 9 and 11-13"),
        )
    }
    options: Mapping[str, Option] = {name: one for name, one in OPTIONS.items() if name != "task"}

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """The groups that `sightline build` made, or those that a file of answers is about."""
        file = Path(options["file"]) if options["file"] else None
        if file is None and options["answers"] is None:
            file = task_file(folder, options["task"])
        return samples_of(file, options)

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """The rephrasings, styles or maskings (3.2), or what is unchanged, for Sampling (4.2)."""
        return probes_in(sample, options)

    def cases(self, group: Group) -> Iterator[Case]:
        """Each answer against its references, and each two against each other."""
        return cases_of(group)

    def scorer(self, question: str, kind: str, options: Mapping[str, Any]) -> Scorer | None:
        """Containment for answers, vectors for similarity (3.3), a model for sameness of meaning."""
        return scorer_of(question, kind, options)

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Section 3.3, and what stands beside it."""
        return metrics_of(options)

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """The unchanged input, asked again and again: Sampling."""
        return {**options, "unchanged": True}

    def shown_in(self, file: str, predictions: Sequence[Prediction], folder: Path | None) -> dict[str, Any]:
        """Where no data are named, the answers themselves say what was asked."""
        return {"answers": file} if folder is None else {}
