"""The quality of a judge with its confidence interval, and the difference of two judges.

ConTextual 3.3.1 and Table 4. The 95 % confidence intervals resample whole clusters: the answers to one item
are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metric_types import MetricValue
from sightline.metrics.association import Statistic, value_of
from sightline.metrics.metric_values import with_interval
from sightline.metrics.statistics import (
    POWER_80,
    Floats,
    Interval,
    bootstrap_interval,
    cluster_weights,
    intervals,
    percentile_interval,
)

RESAMPLES = 2000

BLOCK_CELLS = 1 << 20
"""Resamples times answers that are evaluated together: some tens of MB."""

NOTHING_JUDGED = "no answer was judged by both"


class JudgeDifference(Struct, frozen=True):
    """The statistic of one judge minus that of another judge of the same answers.

    Attributes:
        difference: The difference with its 95 % CI.
        detectable: The difference that as many clusters detect with a power of 80 % at the 5 % level, in
            the unit of the difference; None if it cannot be estimated.
        needed: The number of clusters from which the observed difference is detected with that power; None
            if it cannot be estimated. Both assume that the bootstrap's standard error falls with the
            square root of the number of clusters.
    """

    difference: MetricValue
    detectable: float | None
    needed: int | None

    @property
    def distinguishable(self) -> bool | None:
        """Whether the confidence interval of the difference excludes 0; None without an interval."""
        low, high = self.difference.low, self.difference.high
        return None if low is None or high is None else not low <= 0 <= high


def statistic_value(
    statistic: Statistic,
    first: Floats,
    second: Floats,
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> MetricValue:
    """A statistic of two series with its 95 % CI.

    A share has the interval of shares (`statistics.intervals`), any other statistic a percentile bootstrap.

    Args:
        statistic: The statistic.
        first: The first series, shape (n,).
        second: The second series, shape (n,).
        clusters: The item of each answer, n of them.
        seed: The seed of the bootstrap.
        resamples: The number of resamples.

    Returns:
        The value for the subset 'all'. No interval if there are fewer than two clusters or all resamples
        agree.
    """
    bootstrap = _Bootstrap.of(clusters, seed, resamples)
    if statistic.share:
        interval = bootstrap.share_interval(first == second)
    else:
        interval = _interval(bootstrap.replicates(statistic, first, second))
    value = value_of(statistic, first, second)
    return with_interval(
        _metric_value(statistic, value, len(first), bootstrap.count), interval, _scale(statistic)
    )


def judge_difference(
    statistic: Statistic,
    readings: tuple[Floats, Floats],
    truth: Floats,
    clusters: Sequence[Hashable],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> JudgeDifference:
    """The statistic of one judge minus that of another, on the same answers and resamples.

    Args:
        statistic: The statistic of a judge and the ground truth.
        readings: The series of the first and of the second judge, each of shape (n,).
        truth: The ground truth, shape (n,).
        clusters: The item of each answer, n of them.
        seed: The seed of the bootstrap.
        resamples: The number of resamples.

    Returns:
        The difference with its interval and power.
    """
    bootstrap = _Bootstrap.of(clusters, seed, resamples)
    first, second = (value_of(statistic, reading, truth) for reading in readings)
    replicates = [bootstrap.replicates(statistic, reading, truth) for reading in readings]
    spread = replicates[0] - replicates[1]
    difference = None if first is None or second is None else first - second
    value = _metric_value(statistic, difference, len(truth), bootstrap.count)
    value = with_interval(value, _interval(spread), _scale(statistic))
    if statistic.unit == "percent":
        value = replace(value, unit="points")
    if value.value is None or value.low is None:
        return JudgeDifference(value, None, None)
    detectable = POWER_80 * _scale(statistic) * float(np.nanstd(spread, ddof=1))
    needed = math.ceil(bootstrap.count * (detectable / value.value) ** 2) if value.value else None
    return JudgeDifference(value, detectable, needed)


class _Bootstrap(Struct, frozen=True):
    """A cluster bootstrap: the number of the cluster of each answer, shape (n,), and their count."""

    positions: NDArray[np.intp]
    count: int
    seed: int
    resamples: int

    @staticmethod
    def of(clusters: Sequence[Hashable], seed: int, resamples: int) -> _Bootstrap:
        names: dict[Hashable, int] = {}
        positions = np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
        return _Bootstrap(positions, len(names), seed, resamples)

    def replicates(self, statistic: Statistic, first: Floats, second: Floats) -> Floats:
        """The statistic of each resample, shape (resamples,).

        NaN where a resample leaves it undefined, and throughout if there are fewer than two clusters.
        """
        if self.count < 2:
            return np.full(self.resamples, np.nan)
        draws = _draws(self.count, self.resamples, self.seed)
        rows = max(1, BLOCK_CELLS // len(self.positions))
        blocks = (draws[start : start + rows, self.positions] for start in range(0, self.resamples, rows))
        return np.concatenate([statistic.of(first, second, block.astype(np.float64)) for block in blocks])

    def share_interval(self, equal: NDArray[np.bool_]) -> Interval | None:
        """The interval of the share of answers on which both series are equal, shape (n,)."""
        sums, counts = (
            np.bincount(self.positions, weights, self.count)[:, None].astype(np.float64)
            for weights in (equal, None)
        )
        return intervals(sums, counts, np.array([True]), seed=self.seed, resamples=self.resamples)[0]


@lru_cache(maxsize=8)
def _draws(count: int, resamples: int, seed: int) -> NDArray[np.uint16]:
    """How often each resample holds each cluster, shape (resamples, count): the same for every judge."""
    return np.concatenate([block.astype(np.uint16) for block in cluster_weights(count, resamples, seed)])


def _interval(replicates: Floats) -> Interval | None:
    """The percentile interval; None if it has no width."""
    low, high = (float(bound[0]) for bound in percentile_interval(replicates[None]))
    return bootstrap_interval(low, high)


def _metric_value(statistic: Statistic, value: float | None, n: int, clusters: int) -> MetricValue:
    return MetricValue(
        metric=statistic.name,
        subset="all",
        value=None if value is None else _scale(statistic) * value,
        n=0 if value is None else n,
        clusters=clusters,
        unit=statistic.unit,
        reason=(statistic.absent if n or statistic.share else NOTHING_JUDGED) if value is None else None,
    )


def _scale(statistic: Statistic) -> float:
    return 100.0 if statistic.unit == "percent" else 1.0
