"""A benchmark of one-word answers, a run over it, and results to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.base import Benchmark
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.plan import CollectedAnswers, StoredProbe
from sightline.scoring.scorer import Reading
from sightline.types import PERCENT, Answer, Case, Failure, Group, Metric, Probe, Result, Sample, Term


def accuracy(group: Group) -> Iterator[Term]:
    """1 for a right answer, of 1 scored."""
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1, outcome.labels)


class OneWord(Benchmark):
    """Right if the response is the reference."""

    name = "oneword"
    judged_by = ("rules", "human")

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        """No data: the tests make stored probes."""
        return []

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """No data: the tests make stored probes."""
        return iter(())

    def rule(self, case: Case) -> Reading:
        """Compare the response with the reference."""
        return Reading("right" if case.texts[0] in case.references else "wrong")

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """Accuracy."""
        return [
            Metric(
                name="acc",
                terms=accuracy,
                meaning="answers that are right",
                better="higher",
                range=PERCENT,
                source="",
            )
        ]


class Answers:
    """The answers of a run by key; None is a failed call."""

    def __init__(self, texts: Mapping[str, str | None]) -> None:
        self._texts = texts

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """The answers under these keys."""
        return {
            key: Failure("permanent", "no server") if text is None else Answer(text)
            for key in keys
            if (text := self._texts.get(key, "")) != ""
        }


Collect = Callable[..., CollectedAnswers]
Describe = Callable[..., EvaluationDescription]
MakeResult = Callable[..., Result]


@pytest.fixture(scope="session")
def collect() -> Collect:
    """Answers of a run: a sample for each keyword, whose reference is 'yes' and whose label `first` is its
    first letter."""

    def make(**texts: str | None) -> CollectedAnswers:
        probes = [
            StoredProbe(name, "q", 0, name, f"image {name}", "?", {"first": name[0]}, ("yes",))
            for name in texts
        ]
        return CollectedAnswers(probes=lambda: probes, answers=Answers(texts))

    return make


@pytest.fixture(scope="session")
def describe() -> Describe:
    """The description of a run; keyword arguments replace fields of it."""

    def make(**changes: Any) -> EvaluationDescription:
        fields: dict[str, Any] = {
            "benchmark": "oneword",
            "setting": "default",
            "model": "mini",
            "identity": "weights 1",
            "judges": ("rules",),
            "decide": "first",
            "benchmark_options": {},
            "options": {"seed": 0},
            "data_digest": "d",
            "planned_samples": 3,
        }
        return EvaluationDescription(**{**fields, **changes})

    return make


@pytest.fixture(scope="session")
def make_result() -> MakeResult:
    """A result without values; keyword arguments replace fields of it."""

    def make(**changes: Any) -> Result:
        fields: dict[str, Any] = {
            "benchmark": "groups",
            "setting": "mine.jsonl",
            "model": "mini",
            "model_identity": "weights 1",
            "judge": "rules",
            "options": {},
            "samples": 1,
            "probes": 1,
            "errors": 0,
            "misses": 0,
            "undecided": 0,
            "truncated": 0,
            "versions": {},
            "data_digest": "d",
            "metrics": [],
        }
        return Result(**{**fields, **changes})

    return make
