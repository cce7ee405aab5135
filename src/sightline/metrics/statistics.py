"""Arithmetic of uncertainty on arrays: cluster bootstrap, Wilson score, correlation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_TAIL = 0.025
_Z = 1.959963984540054  # the normal quantile that leaves _TAIL above it
_ROUNDING = 1e-9
_BLOCK_BYTES = 16 << 20

POWER_80 = _Z + 0.8416212335729143
"""The sum of the normal quantiles of 97.5 % and 80 %: the standard errors that a two-sided test at 5 %
detects with a power of 80 %."""


class Interval(NamedTuple):
    """The bounds of a 95 % confidence interval and the method that gave them."""

    low: float
    high: float
    kind: Literal["bootstrap", "wilson"]

    def around(self, value: float, scale: float) -> Interval:
        """Scale the interval and include the value.

        Few resamples, or rounding, could leave the value outside.

        Args:
            value: The value after scaling.
            scale: The factor for both bounds.

        Returns:
            The scaled interval.
        """
        return Interval(min(value, scale * self.low), max(value, scale * self.high), self.kind)


def intervals(
    sums: Floats, counts: Floats, shares: NDArray[np.bool_], *, seed: int = 0, resamples: int = 2000
) -> list[Interval | None]:
    """The 95 % CI of each of k ratios sum(sums) / sum(counts).

    A share whose clusters hold one unit each has Wilson's interval, anything else the cluster bootstrap. A
    share whose resamples all agree has Wilson's interval over as many units as clusters. No interval has
    width 0.

    Args:
        sums: The numerators, shape (clusters, k).
        counts: The denominators, shape (clusters, k).
        shares: Which ratios are shares of units that are right or wrong, shape (k,).
        seed: The seed of the bootstrap.
        resamples: The number of resamples.

    Returns:
        K intervals. None with fewer than two clusters, if no resample has a denominator, or if all
        resamples of a ratio that is not a share agree.
    """
    present = np.count_nonzero(counts, axis=0)
    single = shares & (_is_0_or_1(sums) & _is_0_or_1(counts)).all(axis=0)
    drawn = np.flatnonzero((present >= 2) & ~single)
    low, high = bootstrap(sums.T[drawn].T, counts.T[drawn].T, seed=seed, resamples=resamples)
    result: list[Interval | None] = [None] * len(present)
    for position in np.flatnonzero(~np.isnan(low)):
        column = drawn[position]
        result[column] = bootstrap_interval(float(low[position]), float(high[position]))
        if result[column] is None and shares[column]:
            share = float(sums[:, column].sum() / counts[:, column].sum())
            result[column] = Interval(*wilson(share * int(present[column]), int(present[column])), "wilson")
    for column in np.flatnonzero((present >= 2) & single):
        result[column] = Interval(*wilson(int(sums[:, column].sum()), int(present[column])), "wilson")
    return result


def bootstrap_interval(low: float, high: float) -> Interval | None:
    """An interval of the bootstrap.

    Clusters that all agree show no spread, so their interval would be too narrow.

    Args:
        low: The lower bound, or NaN.
        high: The upper bound, or NaN.

    Returns:
        The interval; None if it has no width beyond rounding, or a bound is NaN.
    """
    wide = high - low > _ROUNDING * max(1.0, abs(low), abs(high))
    return Interval(low, high, "bootstrap") if wide else None


def bootstrap(sums: Floats, counts: Floats, *, seed: int = 0, resamples: int = 2000) -> tuple[Floats, Floats]:
    """Percentile 95 % CIs of k ratios by resampling whole clusters.

    Args:
        sums: The numerators, shape (clusters, k).
        counts: The denominators, shape (clusters, k).
        seed: The seed of the draws.
        resamples: The number of resamples.

    Returns:
        The lower and the upper bounds, each of shape (k,); NaN if no resample has a denominator.
    """
    return percentile_interval(resampled_ratios(sums, counts, seed=seed, resamples=resamples))


def resampled_ratios(sums: Floats, counts: Floats, *, seed: int = 0, resamples: int = 2000) -> Floats:
    """k ratios sum(sums) / sum(counts) over resampled clusters.

    All ratios use the same draws, so differences between rows are paired. The draws depend on `seed` and the
    number of clusters alone. The memory beyond arguments and result is some tens of MB.

    Args:
        sums: The numerators, shape (clusters, k).
        counts: The denominators, shape (clusters, k).
        seed: The seed of the draws.
        resamples: The number of resamples.

    Returns:
        The ratios, shape (k, resamples); NaN where a resample has no denominator.
    """
    clusters, width = sums.shape
    rows, row_of = _distinct(chain(sums.T, counts.T), clusters)
    totals = np.empty((len(rows), resamples))
    start = 0
    for weights in cluster_weights(clusters, resamples, seed) if clusters and width else ():
        totals[:, start : start + len(weights)] = rows @ weights.T
        start += len(weights)
    return _divide(totals[row_of[:width]], totals[row_of[width:]])


def cluster_weights(clusters: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample holds each cluster.

    The draws depend on `seed` and the number of clusters alone.

    Args:
        clusters: The number of clusters, at least 1.
        resamples: The number of resamples.
        seed: The seed of the draws.

    Yields:
        Blocks of shape (some resamples, clusters).
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _BLOCK_BYTES // (8 * clusters))
    for start in range(0, resamples, rows):
        block = np.empty((min(rows, resamples - start), clusters))
        for row in block:
            row[:] = np.bincount(generator.integers(0, clusters, clusters), minlength=clusters)
        yield block


def percentile_interval(replicates: Floats) -> tuple[Floats, Floats]:
    """The 2.5 % and 97.5 % quantiles along the last axis, with numpy's linear interpolation.

    Args:
        replicates: Values of resamples, shape (k, resamples); NaN values are left out.

    Returns:
        The lower and the upper quantiles, each of shape (k,); NaN for a row of NaN.
    """
    ordered = np.sort(replicates, axis=1)  # NaN sorts last
    last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=1) - 1, 0)
    return _quantile(ordered, last, _TAIL), _quantile(ordered, last, 1 - _TAIL)


def wilson(successes: float, n: int) -> tuple[float, float]:
    """The Wilson score 95 % CI of a share of independent trials.

    Args:
        successes: The number of successes.
        n: The number of trials, at least 1.

    Returns:
        The bounds, 0-1.

    >>> [round(bound, 3) for bound in wilson(9, 10)]
    [0.596, 0.982]
    """
    share = successes / n
    spread = _Z * math.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    centre = share + _Z * _Z / (2 * n)
    scale = 1 + _Z * _Z / n
    return max(0.0, min(share, (centre - spread) / scale)), min(1.0, max(share, (centre + spread) / scale))


def correlation(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Pearson's correlation of two series.

    Args:
        first: One series, shape (n,).
        second: The other series, shape (n,).

    Returns:
        -1 to 1; None with fewer than two points, or if a series does not vary.

    Raises:
        ValueError: The series differ in length.

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


def _is_0_or_1(amounts: Floats) -> NDArray[np.bool_]:
    return np.isin(amounts, (0, 1))


def _distinct(columns: Iterable[Floats], clusters: int) -> tuple[Floats, list[int]]:
    """The distinct columns as rows of `clusters` values, and the row of each column.

    Metrics over the same units share their counts, which halves the work of a resample.
    """
    rows: dict[bytes, int] = {}
    row_of = [rows.setdefault(column.tobytes(), len(rows)) for column in columns]
    return np.frombuffer(b"".join(rows)).reshape(len(rows), clusters), row_of


def _divide(sums: Floats, counts: Floats) -> Floats:
    ratios: Floats = np.full(sums.shape, np.nan)
    return np.divide(sums, counts, out=ratios, where=counts != 0)


def _quantile(ordered: Floats, last: NDArray[np.intp], share: float) -> Floats:
    position = share * last
    below = np.floor(position).astype(np.intp)
    above = np.minimum(below + 1, last)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, above]
    quantile: Floats = low + (high - low) * (position - below)
    return quantile


def _centred(series: Floats) -> Floats:
    # Scaled as well, so that squares of tiny or huge values stay within floating point.
    centred = series - series.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled
