"""The arithmetic of uncertainty: cluster bootstrap, Wilson score and correlation, as functions of arrays."""

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
"""The normal quantiles of 97.5 % and 80 %: that many standard errors are found 4 times of 5."""


class Interval(NamedTuple):
    """The bounds of a 95 % interval, and how they were found."""

    low: float
    high: float
    kind: Literal["bootstrap", "wilson"]

    def around(self, value: float, scale: float) -> Interval:
        """The interval times `scale`, holding `value`: few resamples, or rounding, could leave it outside."""
        return Interval(min(value, scale * self.low), max(value, scale * self.high), self.kind)


def intervals(
    sums: Floats, counts: Floats, shares: NDArray[np.bool_], *, seed: int = 0, resamples: int = 2000
) -> list[Interval | None]:
    """The 95 % interval of each of k ratios sum(sums) / sum(counts).

    `sums` and `counts` have the shape (clusters, k); `shares` of shape (k,) says which ratios are shares
    of units that are each right or wrong. Wilson's where such a ratio has one unit in every cluster that
    counts towards it, else the cluster bootstrap; Wilson's again, over as many units as clusters, where
    all resamples of a share agree. None with fewer than two such clusters, where no resample holds any, or
    where those of a ratio that is no share agree: no interval is without width.
    """
    present = np.count_nonzero(counts, axis=0)
    single = shares & (_is_0_or_1(sums) & _is_0_or_1(counts)).all(axis=0)
    drawn = np.flatnonzero((present >= 2) & ~single)
    low, high = bootstrap(sums.T[drawn].T, counts.T[drawn].T, seed=seed, resamples=resamples)
    found: list[Interval | None] = [None] * len(present)
    for place in np.flatnonzero(~np.isnan(low)):
        column = drawn[place]
        found[column] = between(float(low[place]), float(high[place]))
        if found[column] is None and shares[column]:
            share = float(sums[:, column].sum() / counts[:, column].sum())
            found[column] = Interval(*wilson(share * int(present[column]), int(present[column])), "wilson")
    for column in np.flatnonzero((present >= 2) & single):
        found[column] = Interval(*wilson(int(sums[:, column].sum()), int(present[column])), "wilson")
    return found


def between(low: float, high: float) -> Interval | None:
    """The bootstrap's interval; None where it has no width but by rounding, or is NaN.

    Clusters that all agree say nothing of their spread.
    """
    wide = high - low > _ROUNDING * max(1.0, abs(low), abs(high))
    return Interval(low, high, "bootstrap") if wide else None


def bootstrap(sums: Floats, counts: Floats, *, seed: int = 0, resamples: int = 2000) -> tuple[Floats, Floats]:
    """The percentile 95 % intervals of k ratios by resampling whole clusters: low and high, shape (k,).

    `sums` and `counts` have the shape (clusters, k). NaN where no resample has a denominator.
    """
    return percentile_interval(resampled_ratios(sums, counts, seed=seed, resamples=resamples))


def resampled_ratios(sums: Floats, counts: Floats, *, seed: int = 0, resamples: int = 2000) -> Floats:
    """k ratios sum(sums) / sum(counts) over resampled clusters, shape (k, resamples).

    `sums` and `counts` have the shape (clusters, k). All ratios see the same draws, so differences
    between rows are paired; the draws depend on `seed` and the number of clusters alone. NaN where a
    resample has no denominator. Beyond its result and its arguments it holds some tens of MB.
    """
    clusters, width = sums.shape
    rows, place = _distinct(chain(sums.T, counts.T), clusters)
    totals = np.empty((len(rows), resamples))
    start = 0
    for weights in cluster_weights(clusters, resamples, seed) if clusters and width else ():
        totals[:, start : start + len(weights)] = rows @ weights.T
        start += len(weights)
    return _divide(totals[place[:width]], totals[place[width:]])


def cluster_weights(clusters: int, resamples: int, seed: int) -> Iterator[Floats]:
    """How often each resample holds each of `clusters` > 0, in blocks of shape (some resamples, clusters).

    The draws depend on `seed` and the number of clusters alone.
    """
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _BLOCK_BYTES // (8 * clusters))
    for start in range(0, resamples, rows):
        block = np.empty((min(rows, resamples - start), clusters))
        for row in block:
            row[:] = np.bincount(generator.integers(0, clusters, clusters), minlength=clusters)
        yield block


def percentile_interval(replicates: Floats) -> tuple[Floats, Floats]:
    """The 2.5 % and 97.5 % quantiles along the last axis of a (k, resamples) array: two of shape (k,).

    Linear between neighbours, as numpy's. NaN replicates are left out; a row without others gives NaN.
    """
    ordered = np.sort(replicates, axis=1)  # NaN sorts last
    last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=1) - 1, 0)
    return _quantile(ordered, last, _TAIL), _quantile(ordered, last, 1 - _TAIL)


def wilson(successes: float, n: int) -> tuple[float, float]:
    """The Wilson score 95 % interval of `successes` out of `n` > 0 independent trials, both within 0-1.

    >>> [round(bound, 3) for bound in wilson(9, 10)]
    [0.596, 0.982]
    """
    share = successes / n
    spread = _Z * math.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    centre = share + _Z * _Z / (2 * n)
    scale = 1 + _Z * _Z / n
    return max(0.0, min(share, (centre - spread) / scale)), min(1.0, max(share, (centre + spread) / scale))


def correlation(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> float | None:
    """Pearson's correlation, -1 to 1, of two equally long series.

    None where it is undefined: fewer than two points, or a series that does not vary.

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
    """The different ones among columns, as rows of `clusters` values, and the row of each column.

    Metrics over the same units share their counts, which halves the work of a resample.
    """
    known: dict[bytes, int] = {}
    place = [known.setdefault(column.tobytes(), len(known)) for column in columns]
    return np.frombuffer(b"".join(known)).reshape(len(known), clusters), place


def _divide(sums: Floats, counts: Floats) -> Floats:
    ratios: Floats = np.full(sums.shape, np.nan)
    return np.divide(sums, counts, out=ratios, where=counts != 0)


def _quantile(ordered: Floats, last: NDArray[np.intp], share: float) -> Floats:
    place = share * last
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, last)
    rows = np.arange(len(ordered))
    low, high = ordered[rows, below], ordered[rows, above]
    quantile: Floats = low + (high - low) * (place - below)
    return quantile


def _centred(series: Floats) -> Floats:
    # Scaled as well, so that squares of tiny or huge values stay within floating point.
    centred = series - series.mean()
    scaled: Floats = centred / np.abs(centred).max()
    return scaled
