"""The record of a comparison of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sightline.metric_types import MetricDefinition, MetricValue
from sightline.metrics.significance import PairedValues

MetricSubset = tuple[str, str]
"""The name of a metric and of a subset."""


class Comparison(Struct, frozen=True):
    """Two runs, or several pairs of runs, on the groups that both runs of a pair hold.

    Attributes:
        runs: The numbers of the runs, a pair each.
        task: Benchmark and setting, such as "codis:default".
        models: The models of the first and of the second runs.
        base: Every metric of the first runs over the shared groups.
        other: Every metric of the second runs over the shared groups.
        differences: The second runs minus the first.
        each: The differences of each pair alone; empty for one pair.
        alone: The number of groups that only one run of a pair holds.
        groups: The values of the groups by metric and subset.
        unlike: Judge, options and versions that differ between both sides, by name, with the values of each.
        unanswered: By run with failed probes: the number of probes without an answer, and of all probes.
        definitions: The definitions of the metrics by name.
    """

    runs: tuple[tuple[int, int], ...]
    task: str
    models: tuple[str, str]
    base: Sequence[MetricValue]
    other: Sequence[MetricValue]
    differences: Sequence[MetricValue]
    each: Sequence[Sequence[MetricValue]]
    alone: int
    groups: Mapping[str, Mapping[str, PairedValues]]
    unlike: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    unanswered: Mapping[int, tuple[int, int]]
    definitions: Mapping[str, MetricDefinition]
