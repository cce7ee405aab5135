"""How good a judge is, with its interval, and whether two can be told apart (ConTextual 3.3.1, Table 4).

Intervals (95 %) resample whole clusters: the answers to one item are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metrics.association import Statistic, value_of
from sightline.metrics.metric_values import with_interval
from sightline.metrics.statistics import (
    POWER_80,
    Floats,
    Interval,
    between,
    cluster_weights,
    intervals,
    percentile_interval,
)
from sightline.types import MetricValue

RESAMPLES = 2000

BLOCK_CELLS = 1 << 20
"""Resamples times answers that are evaluated together: some tens of MB."""

NOTHING = "nothing was judged by both"

Places = NDArray[np.intp]
"""The number of the cluster that each answer belongs to, shape (n,)."""


class JudgeDifference(Struct, frozen=True):
    """Two judges of the same answers: the difference of their statistics (the first less the second).

    `detectable` is the difference that as many clusters show 4 times of 5 at 5 %, `needed` the clusters from
    which the difference found would be shown as often; None where they cannot be said. Both rest on the
    bootstrap's standard error, which falls with the square root of the number of clusters.
    """

    difference: MetricValue
    detectable: float | None
    needed: int | None

    @property
    def told_apart(self) -> bool | None:
        """Whether the interval of the difference leaves 0 out; None where there is none."""
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else not low <= 0 <= high


def statistic_value(
    statistic: Statistic,
    first: Floats,
    second: Floats,
    clusters: Sequence[Hashable],
    *,
    subset: str = "all",
    judge: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> MetricValue:
    """A statistic of two series of shape (n,) with its interval; `clusters` names the item of each answer.

    A share has the interval of shares (`statistics.intervals`), any other a percentile bootstrap: none where
    there are fewer than two clusters, or where all resamples agree.
    """
    places, count = _numbered(clusters)
    if statistic.share:
        interval = _of_share(first == second, places, count, seed, resamples)
    else:
        interval = _of(_replicates(statistic, first, second, places, count, seed, resamples))
    return _metric(statistic, value_of(statistic, first, second), interval, len(first), count, subset, judge)


def judge_difference(
    statistic: Statistic,
    first: Floats,
    second: Floats,
    truth: Floats,
    clusters: Sequence[Hashable],
    *,
    judge: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> JudgeDifference:
    """How far the first judge's statistic is above the second's, on the same answers and resamples."""
    places, count = _numbered(clusters)
    one, other = value_of(statistic, first, truth), value_of(statistic, second, truth)
    spread = _replicates(statistic, first, truth, places, count, seed, resamples) - _replicates(
        statistic, second, truth, places, count, seed, resamples
    )
    difference = None if one is None or other is None else one - other
    found = _metric(statistic, difference, _of(spread), len(truth), count, "all", judge)
    if statistic.unit == "percent":
        found = replace(found, unit="points")
    if found.value is None or found.low is None:
        return JudgeDifference(found, None, None)
    detectable = POWER_80 * _scale(statistic) * float(np.nanstd(spread, ddof=1))
    needed = math.ceil(count * (detectable / found.value) ** 2) if found.value else None
    return JudgeDifference(found, detectable, needed)


def _replicates(
    statistic: Statistic,
    first: Floats,
    second: Floats,
    places: Places,
    count: int,
    seed: int,
    resamples: int,
) -> Floats:
    """The statistic of resampled clusters, shape (resamples,): NaN where a resample leaves it undefined, and
    throughout where there are fewer than two clusters."""
    if count < 2:
        return np.full(resamples, np.nan)
    draws = _draws(count, resamples, seed)
    rows = max(1, BLOCK_CELLS // len(places))
    blocks = (draws[start : start + rows, places] for start in range(0, resamples, rows))
    return np.concatenate([statistic.of(first, second, block.astype(np.float64)) for block in blocks])


@lru_cache(maxsize=8)
def _draws(count: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """How often each resample holds each cluster, shape (resamples, count): the same for every judge."""
    return np.concatenate([block.astype(np.uint16) for block in cluster_weights(count, resamples, seed)])


def _of(replicates: Floats) -> Interval | None:
    """The percentile interval; None where it has no width."""
    low, high = (float(bound[0]) for bound in percentile_interval(replicates[None]))
    return between(low, high)


def _of_share(
    alike: NDArray[np.bool_], places: Places, count: int, seed: int, resamples: int
) -> Interval | None:
    sums, counts = (
        np.bincount(places, weights, count)[:, None].astype(np.float64) for weights in (alike, None)
    )
    return intervals(sums, counts, np.array([True]), seed=seed, resamples=resamples)[0]


def _metric(
    statistic: Statistic,
    value: float | None,
    interval: Interval | None,
    n: int,
    clusters: int,
    subset: str,
    judge: str | None,
) -> MetricValue:
    scale = _scale(statistic)
    found = MetricValue(
        metric=statistic.name,
        subset=subset,
        value=None if value is None else scale * value,
        n=0 if value is None else n,
        clusters=clusters,
        unit=statistic.unit,
        reason=(statistic.absent if n or statistic.share else NOTHING) if value is None else None,
        judge=judge,
    )
    return with_interval(found, interval, scale)


def _numbered(clusters: Sequence[Hashable]) -> tuple[Places, int]:
    names: dict[Hashable, int] = {}
    places = np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
    return places, len(names)


def _scale(statistic: Statistic) -> float:
    return 100.0 if statistic.unit == "percent" else 1.0
