"""The record of a comparison of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sightline.metric_types import MetricDefinition, MetricValue
from sightline.metrics.significance import PairedValues
from sightline.results.compared_answers import ComparedAnswers

MetricSubset = tuple[str, str]
"""The name of a metric and of a subset."""


class ComparedSide(Struct, frozen=True):
    """One side of a comparison: the base runs, or the runs that are compared with them.

    Attributes:
        runs: The names of the runs, each once.
        task: Benchmark and setting, such as "codis:default".
        model: The model.
        probes: The number of probes that are compared; the next two are parts of it.
        undecided: Those with an undecided verdict.
        failed: Those whose request failed.
        not_sent: The number of probes of the runs that were not sent; their groups are left out.
        lacking_samples: The number of samples that only the other side has.
        lacking_probes: The number of probes that only the other side has, of samples that both have.
        confused: The metric `confused` of each run that has it.
    """

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
        runs: The names of the runs, a pair each.
        sides: The base runs, and those that are compared with them.
        base: Every metric of the first runs, as the mean over the groups with a value in both runs of a pair.
        other: Every metric of the second runs over the same groups.
        differences: The second runs minus the first.
        each: The differences of each pair alone; empty for one pair.
        groups: The values of the groups by metric and subset.
        undecided_bounds: The lowest and the highest difference that undecided verdicts allow, in the unit of
            the difference; empty if none is undecided.
        answers: What became of each answer, read again at each pass.
        different_samples: The samples that are left out because the runs hold different data for them.
        unchecked_samples: The number of samples whose data a run of an earlier version does not describe.
        differing_options: Setting, judge, options and versions that differ, by name, with the values of
            each side.
        not_compared: The metrics that are not compared, with the reason.
        definitions: The definitions of the metrics by name.
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
