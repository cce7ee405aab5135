"""Arithmetic of uncertainty on arrays: cluster-robust confidence intervals, Wilson score, correlation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from functools import cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.types import RELIABLE_CLUSTERS, IntervalMethod, MetricValue, Range

Floats = NDArray[np.float64]

LEAST_CLUSTERS = 5
"""With fewer clusters there is no confidence interval."""

TOO_FEW = f"no confidence interval with fewer than {LEAST_CLUSTERS} clusters"
NO_SPREAD = "no confidence interval: all clusters have the same value"
UNDEFINED = "no confidence interval: without one of the clusters, the value is undefined"

_Z = 1.959963984540054  # the normal quantile that leaves 2.5 % above it
_ROUNDING = 1e-9

LEVEL = 0.05
"""The p-value up to which a difference is called significant (3.3.1: 95 % confidence)."""

POWER_80 = _Z + 0.8416212335729143
"""The sum of the normal quantiles of 97.5 % and 80 %: the standard errors that a two-sided test at 5 %
detects with a power of 80 %."""


class Interval(NamedTuple):
    """The bounds of a confidence interval and the method that gave them."""

    low: float
    high: float
    method: IntervalMethod

    def around(self, value: float, scale: float) -> Interval:
        """Scale the interval and include the value, which rounding could leave outside."""
        return Interval(min(value, scale * self.low), max(value, scale * self.high), self.method)


class Estimates(NamedTuple):
    """k values with their sampling errors: arrays of shape (k,).

    Attributes:
        variances: Their variances between clusters; NaN if undefined.
        freedom: The degrees of freedom of the variances; infinite if the variance follows from the value.
    """

    values: Floats
    variances: Floats
    freedom: Floats
    clusters: NDArray[np.intp]


def ratio_intervals(
    sums: Floats,
    counts: Floats,
    ranges: Sequence[Range],
    *,
    graded: bool = False,
    level: float = 0.95,
) -> list[Interval | str]:
    """The confidence interval of each of k ratios sum(sums) / sum(counts) of clustered data.

    See `ratio_estimates` for the standard error and `intervals` for the bounds. Where each cluster holds one
    unit that is right or wrong, the variance of a share is known, and the interval is Wilson's.

    Args:
        sums: The numerators, shape (k, clusters).
        counts: The denominators, at least 0, shape (k, clusters). A cluster with 0 does not count.
        ranges: The smallest and the largest possible value of each ratio.

    Returns:
        K intervals, or the reason why there is none.
    """
    found = ratio_estimates(sums, counts)
    shares = np.array([bounds == (0, 1) and not graded for bounds in ranges], dtype=np.bool_)
    single = shares & (_is_0_or_1(sums) & _is_0_or_1(counts)).all(axis=1)
    known = found.values * (1 - found.values) / np.maximum(found.clusters, 1)
    found = found._replace(
        variances=np.where(single, known, found.variances), freedom=np.where(single, np.inf, found.freedom)
    )
    return intervals(found, ranges, graded=graded, level=level)


def difference_intervals(
    sums: Floats,
    counts: Floats,
    ranges: Sequence[Range],
    *,
    graded: bool = False,
    level: float = 0.95,
) -> list[Interval | str]:
    """The confidence interval of each of k mean differences of two runs over clustered units.

    Most units that are right or wrong do not change, so that differences are skewed within their range. The
    gains and the losses of clusters each have their score interval (see `intervals`); square-and-add joins
    them, with their correlation (Newcombe 1998, method 10; Zou and Donner 2008). The difference of graded
    units, and one without bounds, has the t interval.

    Args:
        sums: The summed differences, shape (k, clusters).
        counts: The numbers of units, at least 0, shape (k, clusters).
        ranges: The smallest (below 0) and the largest (above 0) possible value of each difference.

    Returns:
        K intervals, or the reason why there is none.
    """
    whole = ratio_estimates(sums, counts)
    plain = _described(whole, _t_bounds(whole, _bounds(ranges), level), "t", ~_is_equal(whole))
    if graded:
        return plain
    gains, losses = (ratio_estimates(np.maximum(part, 0), counts) for part in (sums, -sums))
    gained = intervals(gains, [(0, high) for _, high in ranges], level=level)
    lost = intervals(losses, [(0, None if low is None else -low) for low, _ in ranges], level=level)
    covariances = (gains.variances + losses.variances - whole.variances) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.nan_to_num(covariances / np.sqrt(gains.variances * losses.variances))
    rows = zip(plain, ranges, gained, lost, gains.values, losses.values, correlations, strict=True)
    return [
        unjoined
        if None in bounds or isinstance(up, str) or isinstance(down, str)
        else _square_and_add((gain, up), (loss, down), correlation)
        for unjoined, bounds, up, down, gain, loss, correlation in rows
    ]


def ratio_estimates(sums: Floats, counts: Floats) -> Estimates:
    """k ratios sum(sums) / sum(counts) of clustered data with their cluster-robust variances.

    The variance is CR2 of Bell and McCaffrey (2002), which extends HC2 to clusters, for a regression on a
    constant: the residual sum of a cluster is divided by the square root of 1 - h, where h is the cluster's
    part of all units. The degrees of freedom are Satterthwaite's for independent units of equal variance:
    clusters - 1 if all clusters have the same size, fewer otherwise.

    Args:
        sums: The numerators, shape (k, clusters).
        counts: The denominators, at least 0, shape (k, clusters).

    Returns:
        The ratios; NaN without a unit, with NaN variances if one cluster holds all units.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        units = counts.sum(axis=1)[:, None]
        values = sums.sum(axis=1, keepdims=True) / units
        # Not 1 - parts: of whole units, this is exact, however large the part of one cluster is.
        outside = (units - counts) / units
        parts = counts / units
        residuals = sums / units
        residuals -= values * parts
        residuals *= residuals
        residuals /= outside
        variances = residuals.sum(axis=1)
        np.multiply(parts, parts, out=parts)
        squares = parts.sum(axis=1)
        parts /= outside
        freedom = 1 / (squares + _sum_of_products(parts))
    in_use = np.count_nonzero(counts, axis=1)
    return Estimates(values[:, 0], variances, np.clip(freedom, 1, np.maximum(in_use - 1, 1)), in_use)


def two_way_estimates(first: Estimates, second: Estimates, both: Estimates) -> Estimates:
    """k ratios of units that share two kinds of clusters, such as humans and images.

    The variance is that of Cameron, Gelbach and Miller (2011): the two variances between clusters, minus the
    one between their intersections; it is at least the larger of the two. The degrees of freedom and the
    number of clusters are the smaller ones.

    Args:
        first, second: The same ratios by one kind of clusters each.
        both: The same ratios by the intersections of the two.
    """
    largest = np.maximum(first.variances, second.variances)
    return Estimates(
        first.values,
        np.maximum(first.variances + second.variances - both.variances, largest),
        np.minimum(first.freedom, second.freedom),
        np.minimum(first.clusters, second.clusters),
    )


def intervals(
    estimates: Estimates, ranges: Sequence[Range], *, graded: bool = False, level: float = 0.95
) -> list[Interval | str]:
    """The confidence interval of each of k values, within the range of the value.

    A value between two bounds has the Wilson score interval of a share, scaled to its range, with the
    effective number of units p (1 - p) / variance instead of their number (Korn and Graubard 1998) and
    Student's quantile instead of the normal one. Any other value has the t interval, cut at its bound. If all
    clusters have the same value, their variance is 0. If their units are right or wrong, the interval then
    holds what is possible if as many clusters deviate as Wilson's upper bound of 0 among all clusters allows.
    Of graded units, nothing bounds how far they deviate but their spread: there is no interval.

    Args:
        ranges: The smallest and the largest possible value of each.

    Returns:
        K intervals, or the reason why there is none: fewer than LEAST_CLUSTERS clusters, or no variance. With
        fewer than RELIABLE_CLUSTERS clusters, the method is called approximate.
    """
    values, (least, most), equal = estimates.values, _bounds(ranges), _is_equal(estimates)
    score_low, score_high = _score_bounds(estimates, (least, most), equal, level)
    bounded = np.isfinite(most - least) & (least <= values) & (values <= most)
    by_score = bounded & ~np.isnan(score_low) & ~(equal & graded)
    t_low, t_high = _t_bounds(estimates, (least, most), level)
    bounds = np.where(by_score, score_low, t_low), np.where(by_score, score_high, t_high)
    return _described(estimates, bounds, np.where(by_score, "wilson", "t"), by_score | ~equal)


def wilson(shares: Floats, units: Floats, quantiles: Floats) -> tuple[Floats, Floats]:
    """The Wilson score interval of shares. `shares`: the shares, 0-1. `units`: the number of units, or the
    effective number; above 0.

    >>> low, high = wilson(np.array(0.9), np.array(10), np.array(1.96))
    >>> round(float(low), 3), round(float(high), 3)
    (0.596, 0.982)
    """
    squares = quantiles**2 / units
    centre = shares + squares / 2
    spread = np.sqrt(squares * (shares * (1 - shares) + squares / 4))
    return (
        np.maximum(0, np.minimum(shares, (centre - spread) / (1 + squares))),
        np.minimum(1, np.maximum(shares, (centre + spread) / (1 + squares))),
    )


def correlation(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Pearson's correlation of two series; None with fewer than two points, or if a series does not vary.

    >>> correlation([1, 2, 3], [2, 4, 6])
    1.0
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape:
        raise ValueError(f"series of different lengths: {len(x)} and {len(y)}")
    if len(x) < 2 or (x == x[0]).all() or (y == y[0]).all():
        return None
    x, y = _centred(x), _centred(y)
    return float(np.clip((x @ y) / math.sqrt((x @ x) * (y @ y)), -1, 1))


def correlation_interval(value: float, n: int, *, of_ranks: bool = False) -> tuple[float, float] | None:
    """The 95 % CI of a correlation over n points by Fisher's z.

    Of ranks (Spearman), the variance of z is that of Bonett and Wright (2000): (1 + value^2 / 2) / (n - 3).

    Returns:
        The bounds; None with fewer than 4 points, or for a perfect correlation, which has none.
    """
    if n < 4 or abs(value) > 1 - 1e-12:
        return None
    variance = (1 + value**2 / 2 if of_ranks else 1) / (n - 3)
    half = float(two_sided_quantile(np.array([np.inf]))[0]) * math.sqrt(variance)
    centre = math.atanh(value)
    return math.tanh(centre - half), math.tanh(centre + half)


def _sum_of_products(amounts: Floats) -> Floats:
    """The sum of a_i a_j over all ordered pairs of different clusters, for each row.

    It is not the square of the sum minus the sum of the squares: these are nearly equal if one amount is much
    larger than all others together. Here the pairs with the largest amount are added as they are.

    Args:
        amounts: The amount of each cluster, at least 0, shape (k, clusters).
    """
    if not amounts.size:
        return np.zeros(len(amounts))
    others = amounts.copy()
    largest = np.arange(len(amounts)), amounts.argmax(axis=1)
    others[largest] = 0
    rest = others.sum(axis=1)
    others *= others
    products: Floats = 2 * amounts[largest] * rest + (rest**2 - others.sum(axis=1))
    return products


def _square_and_add(
    gain: tuple[float, Interval], loss: tuple[float, Interval], correlation: float
) -> Interval:
    (up, gained), (down, lost) = gain, loss

    def distance(one: float, other: float) -> float:
        return math.sqrt(max(0.0, one**2 + other**2 - 2 * correlation * one * other))

    return Interval(
        float(up - down - distance(up - gained.low, lost.high - down)),
        float(up - down + distance(gained.high - up, down - lost.low)),
        gained.method,
    )


def _described(
    estimates: Estimates,
    bounds: tuple[Floats, Floats],
    methods: NDArray[np.str_] | str,
    has_spread: NDArray[np.bool_],
) -> list[Interval | str]:
    """The intervals with the names of their methods, or the reasons why there is none."""
    clusters = estimates.clusters
    conditions = [clusters < LEAST_CLUSTERS, np.isnan(estimates.variances), ~has_spread]
    reasons = np.select(conditions, [TOO_FEW, UNDEFINED, NO_SPREAD], "")
    few = np.where(clusters < RELIABLE_CLUSTERS, ", approximate", "")
    names = np.broadcast_to(methods, few.shape)
    columns = (column.tolist() for column in (reasons, *bounds, names, few))
    return [
        reason or Interval(lower, upper, name + addition)
        for reason, lower, upper, name, addition in zip(*columns, strict=True)
    ]


def _is_equal(estimates: Estimates) -> NDArray[np.bool_]:
    """Whether all clusters have the same value."""
    equal: NDArray[np.bool_] = np.sqrt(estimates.variances) <= _ROUNDING * np.maximum(
        1, np.abs(estimates.values)
    )
    return equal


def two_sided_quantile(freedom: Floats, level: float = 0.95) -> Floats:
    """The quantile of Student's t distribution that bounds a two-sided interval.

    Args:
        freedom: The degrees of freedom; infinite for the normal distribution, 0 or NaN if undefined.

    Returns:
        The quantiles, of the shape of `freedom`; NaN where it is undefined.

    >>> two_sided_quantile(np.array([1, 30, np.inf])).round(3).tolist()
    [12.706, 2.042, 1.96]
    """
    distinct, places = np.unique(freedom, return_inverse=True)
    quantiles = np.full(distinct.shape, np.nan)
    many = distinct > _MANY
    normal = NormalDist().inv_cdf((1 + level) / 2)
    series = [np.polyval(factors, normal**2) / divisor for factors, divisor in _EXPANSION]
    quantiles[many] = normal * np.polyval(series, 1 / distinct[many])
    few = (distinct > 0) & ~many
    if few.any():
        quantiles[few] = _few_quantiles(distinct[few], level)
    return quantiles[places].reshape(np.shape(freedom))


# Importing scipy.special, which has these quantiles, takes as long as a tenth of a small run.
_MANY = 150
_EXPANSION = (
    ((27, 339, 930, -1782, -765, 17955), 368640),
    ((79, 776, 1482, -1920, -945), 92160),
    ((3, 19, 17, -15), 384),
    ((5, 16, 3), 96),
    ((1, 1), 4),
    ((1,), 1),
)
"""Cornish-Fisher's expansion in 1 / degrees, the highest power first (Abramowitz and Stegun 26.7.5, and one
further term): polynomials in the square of the normal quantile, and what divides them."""


@cache
def _legendre() -> tuple[Floats, Floats]:
    """Nodes and weights of an integral; importing numpy.polynomial takes 8 ms, which few commands need."""
    return np.polynomial.legendre.leggauss(48)


_SMALL_STEP = 1e-9
"""After a step below this, in radians, the next one is lost in rounding: Newton's steps square the error."""


def _few_quantiles(freedom: Floats, level: float) -> Floats:
    """Quantiles of few degrees of freedom, n. With t = sqrt(n) tan(u), the density is proportional to
    cos(u)^(n-1), so that Newton's steps from u = 0 never pass the quantile."""
    whole = [math.sqrt(math.pi) / 2 * math.gamma(n / 2) / math.gamma((n + 1) / 2) for n in freedom.tolist()]
    wanted, angles = level * np.array(whole), np.zeros_like(freedom)
    nodes, weights = _legendre()
    for _ in range(14):  # 9 suffice at 95 %
        cosine, sine = np.cos(angles), np.sin(angles)
        # The integral of cos^(n+3), which is smooth up to a right angle; by parts, that of cos^(n-1).
        between = np.cos(angles[:, None] * (1 + nodes) / 2)
        area = angles / 2 * (between ** (freedom[:, None] + 3) @ weights)
        for power in (freedom + 2, freedom):
            area = ((power + 1) * area - cosine**power * sine) / power
        steps = (wanted - area) / cosine ** (freedom - 1)
        angles = angles + steps
        if not (np.abs(steps) > _SMALL_STEP).any():
            break
    quantiles: Floats = np.sqrt(freedom) * np.tan(angles)
    return quantiles


def _bounds(ranges: Sequence[Range]) -> tuple[Floats, Floats]:
    """The smallest and the largest possible values; infinite without a bound."""
    least = [-np.inf if low is None else low for low, _ in ranges]
    most = [np.inf if high is None else high for _, high in ranges]
    return np.array(least, dtype=np.float64), np.array(most, dtype=np.float64)


def _t_bounds(estimates: Estimates, bounds: tuple[Floats, Floats], level: float) -> tuple[Floats, Floats]:
    spread = two_sided_quantile(estimates.freedom, level) * np.sqrt(estimates.variances)
    least, most = bounds
    return np.maximum(estimates.values - spread, least), np.minimum(estimates.values + spread, most)


def _score_bounds(
    estimates: Estimates, bounds: tuple[Floats, Floats], equal: NDArray[np.bool_], level: float
) -> tuple[Floats, Floats]:
    """The score intervals; NaN for values without two bounds or outside of them."""
    least, width = bounds[0], bounds[1] - bounds[0]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = (estimates.values - least) / width
        effective = shares * (1 - shares) * width**2 / estimates.variances
        low, high = wilson(shares, effective, two_sided_quantile(estimates.freedom, level))
        normal = two_sided_quantile(np.array(np.inf), level)
        _, deviating = wilson(np.zeros(len(shares)), estimates.clusters.astype(np.float64), normal)
        low = np.where(equal, shares * (1 - deviating), low)
        high = np.where(equal, shares + deviating * (1 - shares), high)
        return least + width * low, least + width * high


def _is_0_or_1(amounts: Floats) -> NDArray[np.bool_]:
    binary: NDArray[np.bool_] = (amounts == 0) | (amounts == 1)
    return binary


def _centred(series: Floats) -> Floats:
    # Scaled as well, so that squares of tiny or huge values stay within floating point.
    centred = series - series.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled


# -- MetricValues with confidence intervals, and the mean over clustered values

Clusters = Sequence[Hashable] | NDArray[np.integer[Any]]
"""The cluster of each of some values: its name, or its number."""


def with_interval(value: MetricValue, interval: Interval | str, scale: float = 1.0) -> MetricValue:
    """Add a confidence interval to a value, or why there is none; unchanged if the value is None."""
    if value.value is None:
        return value
    if isinstance(interval, str):
        return replace(value, reason=interval)
    around = interval.around(value.value, scale)
    return replace(value, low=around.low, high=around.high, interval=around.method)


def clustered_mean(
    name: str,
    values: Sequence[tuple[Hashable, float]],
    *,
    reason: str,
    bounds: Range = (0, 1),
    graded: bool = False,
) -> MetricValue:
    """The mean of values in percent, with its 95 % CI (see `statistics.ratio_intervals`).

    Args:
        bounds: The smallest and the largest possible value.

    Returns:
        100 times the mean over all values; None with the reason if there are no values.
    """
    clusters, numbers = [cluster for cluster, _ in values], np.array([value for _, value in values], float)
    return mean_by_cluster(name, clusters, numbers, reason=reason, bounds=bounds, graded=graded)


def mean_by_cluster(
    name: str,
    clusters: Clusters,
    values: Floats,
    *,
    reason: str,
    bounds: Range = (0, 1),
    graded: bool = False,
) -> MetricValue:
    """As `clustered_mean`, for values in an array."""
    if not len(values):
        return MetricValue(name, "all", None, 0, 0, reason=reason)
    positions = cluster_positions(clusters)
    sums = np.bincount(positions, values)[None].astype(np.float64)
    counts = np.bincount(positions)[None].astype(np.float64)
    mean = MetricValue(name, "all", 100 * float(sums.sum() / counts.sum()), len(values), counts.shape[1])
    (interval,) = ratio_intervals(sums, counts, [bounds], graded=graded)
    return with_interval(mean, interval, 100)


def cluster_positions(clusters: Clusters) -> NDArray[np.intp]:
    """The position, from 0, of the cluster of each value among the clusters, in the order of their first
    values.

    >>> cluster_positions(["b", "a", "b"]).tolist(), cluster_positions(np.array([7, 5, 7])).tolist()
    ([0, 1, 0], [0, 1, 0])
    """
    if not isinstance(clusters, np.ndarray):
        names: dict[Hashable, int] = {}
        return np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    positions = np.empty(len(first), dtype=np.intp)
    positions[np.argsort(first)] = np.arange(len(first))
    return positions[inverse]
