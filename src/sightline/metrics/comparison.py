"""What a comparison of runs holds, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from sightline.metrics.significance import PairedValues
from sightline.types import MetricDefinition, MetricValue

MetricSubset = tuple[str, str]
"""A metric and a subset."""


class Comparison(Struct, frozen=True):
    """Two runs, or several pairs of them together: their numbers, their task and models, each metric of
    the first and of the second ones over the groups that both hold, the differences of the second from the
    first, those of each pair alone where there are several, how many groups only one of a pair has, by metric
    and subset the groups' own values, what was not alike in the first runs and in the second (`judge`,
    options, and versions of what judged and measured, by name the values on either side), and of each run
    that has any how many probes have no answer, and of how many, and what the metrics mean."""

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
