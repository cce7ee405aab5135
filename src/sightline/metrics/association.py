"""Statistics of two series over answers: ROC-AUC, Spearman, agreement, Cohen's kappa, alpha.

Every statistic takes two series over n answers, and `weights` of shape (k, n): how often each of k resamples
holds each answer (ones for the data themselves, zeros for a cluster that is left out). It returns k values,
NaN where a resample leaves it undefined; `value_of` turns NaN into None."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metrics.statistics import (
    LEVEL,
    POWER_80,
    Clusters,
    Estimates,
    Floats,
    Interval,
    cluster_positions,
    intervals,
    ratio_intervals,
    with_interval,
)
from sightline.types import MetricValue, Range, Unit, difference_range


class Statistic(Struct, frozen=True):
    """A statistic of two series. `unit`: with "percent", values are multiplied by 100."""

    name: str
    of: Callable[[Floats, Floats, Floats], Floats]
    absent: str
    unit: Unit = "number"
    range: Range = (-1, 1)
    share: bool = False


def value_of(statistic: Statistic, first: Floats, second: Floats) -> float | None:
    """A statistic of the data themselves; None if it is undefined."""
    if not len(first):
        return None
    value = float(statistic.of(first, second, np.ones((1, len(first))))[0])
    return None if np.isnan(value) else value


def roc_auc(scores: Floats, truth: Floats, weights: Floats) -> Floats:
    """The area under the ROC curve: of the pairs of a right and a wrong answer, those that `scores` rank
    correctly.

    Ties count half.

    Args:
        truth: 1 for a right answer, 0 for a wrong one, shape (n,).

    Returns:
        0-1, shape (k,); NaN where a resample holds only right or only wrong answers.
    """
    right, wrong = _by_value(scores, weights * truth), _by_value(scores, weights * (1 - truth))
    below = np.cumsum(wrong, axis=1) - wrong / 2
    return _ratio((right * below).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1))


def roc_curve(scores: Floats, truth: Floats) -> tuple[tuple[float, float], ...]:
    """The ROC curve: which wrong and which right answers a judge accepts, from its strictest threshold on.

    The area under it, with straight lines between the points, is `roc_auc`.

    Returns:
        Points from (0, 0) to (1, 1): the share of the wrong answers, and that of the right ones, whose score
        is at least a threshold; empty if all answers are right, or all are wrong. Points on a vertical or
        horizontal line between two others are left out.
    """
    total = np.array([(truth == 0).sum(), (truth == 1).sum()])
    if not total.all():
        return ()
    ones = np.ones((1, len(scores)))
    counts = [_by_value(scores, ones * (truth == value))[0, ::-1] for value in (0, 1)]
    shares = np.vstack([np.zeros(2), np.cumsum(counts, axis=1).T / total])
    steps = np.diff(shares, axis=0)
    turns = ((steps[:-1] > 0) != (steps[1:] > 0)).any(axis=1) | (steps[:-1] > 0).all(axis=1)
    kept = shares[np.concatenate([[True], turns, [True]])]
    return tuple((float(wrong), float(right)) for wrong, right in kept)


def spearman(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Spearman's rank correlation, with mean ranks for ties; NaN where a series does not vary."""
    one, other = _centred_ranks(first, weights), _centred_ranks(second, weights)
    squares = [(weights * ranks * ranks).sum(axis=1) for ranks in (one, other)]
    # The root of a product of equal squares is exact: series of one order correlate with exactly 1.
    spread = np.sqrt(squares[0] * squares[1])
    return np.clip(_ratio((weights * one * other).sum(axis=1), spread), -1, 1)


def equal_share(first: Floats, second: Floats, weights: Floats) -> Floats:
    return _ratio((weights * (first == second)).sum(axis=1), weights.sum(axis=1))


def cohen_kappa(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Cohen's kappa of two series of 0 and 1; NaN where both series hold one value only, so that chance
    agreement is 1.
    """
    n = weights.sum(axis=1)
    one, other = (weights * first).sum(axis=1), (weights * second).sum(axis=1)
    alike = n * (weights * (first == second)).sum(axis=1)
    chance = one * other + (n - one) * (n - other)
    return _ratio(alike - chance, n * n - chance)


def krippendorff_alpha(right: Floats, wrong: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha for two categories.

    Args:
        right: How many raters call each answer right, shape (n,).
        wrong: How many raters call each answer wrong, shape (n,).

    Returns:
        At most 1, shape (k,); see `nominal_alpha`.
    """
    return nominal_alpha(np.stack([right, wrong], axis=1), right + wrong, weights)


def nominal_alpha(counts: Floats, ratings: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha for nominal categories.

    Args:
        counts: How many raters put each item into each category, shape (n, categories).
        ratings: How many raters rated each item, shape (n,). Items with fewer than two do not count.

    Returns:
        At most 1, shape (k,); NaN where all ratings are the same.
    """
    paired = weights * (ratings >= 2)
    apart = (counts * (ratings[:, None] - counts)).sum(axis=1) / np.maximum(ratings - 1, 1)
    totals = paired @ counts
    n = totals.sum(axis=1)
    return 1 - _ratio((n - 1) * (paired @ apart), n * n - (totals * totals).sum(axis=1))


def alpha_of_two(first: Floats, second: Floats, weights: Floats) -> Floats:
    ones = first + second
    return krippendorff_alpha(ones, 2 - ones, weights)


ROC_AUC = Statistic("roc_auc", roc_auc, "humans mark all of these answers right, or none", "percent", (0, 1))
SPEARMAN = Statistic("spearman", spearman, "one of the two has the same value for all answers")
AGREEMENT = Statistic(
    "agreement", equal_share, "no answer was decided by both", "percent", (0, 1), share=True
)
KAPPA = Statistic("kappa", cohen_kappa, "both judges give every answer the same verdict")
ALPHA_OF_TWO = Statistic("alpha", alpha_of_two, "both judges give every answer the same verdict")
ALPHA = Statistic("alpha", krippendorff_alpha, "no answer has two ratings, or all ratings are the same")
NOMINAL_ALPHA = Statistic("alpha", nominal_alpha, "no item has two ratings, or all ratings are the same")


def _by_value(series: Floats, weights: Floats) -> Floats:
    """The summed weights of each distinct value, in ascending order: shape (k, distinct values)."""
    order, starts, _ = _sorted(series)
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _centred_ranks(series: Floats, weights: Floats) -> Floats:
    """The rank of each answer within each resample minus the mean rank, shape (k, n).

    The ranks are halves of whole numbers, so that a constant series has a spread of exactly 0.
    """
    _, _, value_number = _sorted(series)
    held = _by_value(series, weights)
    ranks = np.cumsum(held, axis=1) - held / 2 - weights.sum(axis=1, keepdims=True) / 2
    centred: Floats = ranks[:, value_number]
    return centred


def _sorted(series: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """An order that sorts the series, where each distinct value starts, and each answer's value number."""
    _, value_number, counts = np.unique(series, return_inverse=True, return_counts=True)
    return np.argsort(value_number, kind="stable"), np.cumsum(counts) - counts, value_number


def _ratio(above: Floats, below: Floats) -> Floats:
    ratios: Floats = np.full(above.shape, np.nan)
    return np.divide(above, below, out=ratios, where=below > 0)


# -- The quality of a judge with its confidence interval, and the difference of two judges

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
    from scipy.special import stdtr

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
