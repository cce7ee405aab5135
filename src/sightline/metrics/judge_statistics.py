"""The quality of a judge with its confidence interval, and the difference of two judges.

ConTextual 3.3.1 and Table 4. The variance of a statistic is that of the jackknife over whole clusters: the
answers to one item are left out together.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import stdtr

from sightline.metric_types import MetricValue, difference_range
from sightline.metrics.association import Statistic, value_of
from sightline.metrics.metric_values import Clusters, cluster_positions, with_interval
from sightline.metrics.significance import LEVEL
from sightline.metrics.statistics import (
    POWER_80,
    Estimates,
    Floats,
    Interval,
    intervals,
    ratio_intervals,
)

MOST_BLOCKS = 1000
"""With more clusters than this, the jackknife leaves out blocks of clusters."""

BLOCK_CELLS = 1 << 20
"""Replicates times answers that are evaluated together: some tens of MB."""

NOTHING_JUDGED = "no answer was judged by both"


class JudgeDifference(Struct, frozen=True):
    """The statistic of one judge minus that of another judge of the same answers.

    Attributes:
        p: The two-sided p-value of the t test of the difference; None if it cannot be tested.
        detectable: The difference that as many clusters detect with a power of 80 % at the 5 % level, in
            the unit of the difference; None if it cannot be estimated.
        needed: The number of clusters from which the observed difference is detected with that power; None
            if it cannot be estimated. Both assume that the standard error falls with the square root of the
            number of clusters.
    """

    difference: MetricValue
    p: float | None
    detectable: float | None
    needed: int | None
    holm: float | None = None

    @property
    def distinguishable(self) -> bool | None:
        """Whether the corrected p-value is at most LEVEL; None without a test."""
        return None if self.holm is None else self.holm <= LEVEL


def statistic_value(statistic: Statistic, first: Floats, second: Floats, clusters: Clusters) -> MetricValue:
    """A statistic of two series with its 95 % CI.

    A share has the interval of shares (`statistics.ratio_intervals`), any other statistic that of its
    jackknife (`statistics.intervals`).

    Args:
        first: The first series, shape (n,).
        second: The second series, shape (n,).
    """
    jackknife = _Jackknife.of(clusters)
    value = value_of(statistic, first, second)
    interval: Interval | str = ""
    if statistic.share:
        interval = jackknife.share_interval(first == second)
    elif value is not None:
        estimates = jackknife.estimates(value, jackknife.replicates(statistic, first, second))
        (interval,) = intervals(estimates, [statistic.range])
    return with_interval(
        _metric_value(statistic, value, len(first), jackknife.clusters), interval, _scale(statistic)
    )


def judge_difference(
    statistic: Statistic, readings: tuple[Floats, Floats], truth: Floats, clusters: Clusters
) -> JudgeDifference:
    """The statistic of one judge minus that of another, on the same answers.

    Args:
        readings: The series of the first and of the second judge, each of shape (n,).
        truth: The ground truth, shape (n,).
    """
    jackknife = _Jackknife.of(clusters)
    first, second = (value_of(statistic, reading, truth) for reading in readings)
    difference = None if first is None or second is None else first - second
    value = _metric_value(statistic, difference, len(truth), jackknife.clusters)
    if statistic.unit == "percent":
        value = replace(value, unit="points")
    if difference is None:
        return JudgeDifference(value, None, None, None)
    one, other = (jackknife.replicates(statistic, reading, truth) for reading in readings)
    estimates = jackknife.estimates(difference, one - other)
    (interval,) = intervals(estimates, [difference_range(statistic.range)])
    value = with_interval(value, interval, _scale(statistic))
    error = math.sqrt(estimates.variances[0])
    if isinstance(interval, str) or not error:
        return JudgeDifference(value, None if difference else 1.0, None, None)
    needed = math.ceil(jackknife.clusters * (POWER_80 * error / difference) ** 2) if difference else None
    p = _two_sided(difference / error, float(estimates.freedom[0]))
    return JudgeDifference(value, p, POWER_80 * _scale(statistic) * error, needed)


class _Jackknife(Struct, frozen=True):
    """A jackknife over clusters: the number of the cluster of each answer, shape (n,), and their count."""

    positions: NDArray[np.intp]
    clusters: int

    @property
    def blocks(self) -> int:
        """The number of blocks of clusters that are left out in turn."""
        return min(self.clusters, MOST_BLOCKS)

    @staticmethod
    def of(clusters: Clusters) -> _Jackknife:
        positions = cluster_positions(clusters)
        return _Jackknife(positions, int(positions.max(initial=-1)) + 1)

    def replicates(self, statistic: Statistic, first: Floats, second: Floats) -> Floats:
        """The statistic without each block in turn, shape (blocks,); NaN where that leaves it undefined."""
        block_of = self.positions % self.blocks
        rows = max(1, BLOCK_CELLS // len(block_of))
        found = [
            statistic.of(first, second, (block_of != omitted[:, None]).astype(np.float64))
            for omitted in np.split(np.arange(self.blocks), range(rows, self.blocks, rows))
        ]
        return np.concatenate(found)

    def estimates(self, value: float, replicates: Floats) -> Estimates:
        """A value with its variance, from the replicates of shape (blocks,)."""
        freedom = self.blocks - 1
        deviations = replicates - replicates.mean()
        deviations[np.abs(deviations) < 1e-12] = 0  # rounding
        variance = freedom / self.blocks * float(deviations @ deviations)
        return Estimates(
            np.array([value]), np.array([variance]), np.array([freedom], float), np.array([self.clusters])
        )

    def share_interval(self, equal: NDArray[np.bool_]) -> Interval | str:
        """The interval of the share of answers on which both series are equal, shape (n,)."""
        sums, counts = (
            np.bincount(self.positions, weights, self.clusters)[None].astype(np.float64)
            for weights in (equal, None)
        )
        return ratio_intervals(sums, counts, [(0, 1)])[0]


def _two_sided(statistic: float, freedom: float) -> float:
    """The two-sided p-value of a t statistic."""
    return float(2 * stdtr(freedom, -abs(statistic)))


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
