"""The record of a comparison of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sightline.metrics.flips import ComparedAnswers
from sightline.metrics.significance import PairedValues
from sightline.types import MetricDefinition, MetricValue

MetricSubset = tuple[str, str]
"""The name of a metric and of a subset."""


class ComparedSide(Struct, frozen=True):
    """One side of a comparison: the base runs, or the runs that are compared with them."""

    runs: tuple[str, ...]
    task: str
    model: str
    probes: int
    undecided: int
    failed: int
    not_sent: int
    lacking_samples: int
    lacking_probes: int
    confused: tuple[MetricValue, ...] = ()


class Comparison(Struct, frozen=True):
    """Two runs, or several pairs of runs, on the groups that both runs of a pair hold.

    Attributes:
        undecided_bounds: The lowest and the highest difference that undecided verdicts allow, in the unit of
            the difference; empty if none is undecided.
    """

    runs: tuple[tuple[str, str], ...]
    sides: tuple[ComparedSide, ComparedSide]
    base: Sequence[MetricValue]
    other: Sequence[MetricValue]
    differences: Sequence[MetricValue]
    each: Sequence[Sequence[MetricValue]]
    groups: Mapping[str, Mapping[str, PairedValues]]
    undecided_bounds: Mapping[MetricSubset, tuple[float, float]]
    answers: ComparedAnswers
    different_samples: Sequence[str]
    unchecked_samples: int
    differing_options: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    not_compared: Mapping[str, str]
    definitions: Mapping[str, MetricDefinition]

    @property
    def benchmark(self) -> str:
        """The benchmark of both sides."""
        return self.sides[0].task.partition(":")[0]

    @property
    def task(self) -> str:
        """The tasks of both sides, such as "iibench:none and iibench:cot"; one name if they are equal."""
        return " and ".join(dict.fromkeys(side.task for side in self.sides))
