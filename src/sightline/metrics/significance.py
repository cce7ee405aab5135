"""Significance tests of the difference between two runs, on arrays of differences within groups.

ConTextual 3.3.1 compares models by the paired t test. Groups that share an image are not independent. The t
test and McNemar's test ignore that; the cluster sign-flip permutation test does not, and decides. All
p-values are two-sided, 0-1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray
from scipy.special import betainc, betaincc

from sightline.metrics.statistics import POWER_80, Floats

LEVEL = 0.05
"""The p-value up to which a difference is called significant (3.3.1: 95 % confidence)."""

_EXACT = 100_000
"""The number of distinct sums up to which all flips are counted; above it, DRAWS random flips are."""

DRAWS = 10_000

_BLOCK = 1 << 21
"""Signs that are drawn at a time: some tens of MB."""

_CLOSE = 1e-9
"""The tolerance for rounding, as a fraction of the largest sum of a cluster."""


class PairedValues(NamedTuple):
    """The values of groups in two runs, and the number of the cluster of each group, each of shape
    (groups,)."""

    before: Floats
    after: Floats
    clusters: NDArray[np.intp]


class Significance(Struct, frozen=True):
    """The p-values of a difference; None if a test is undefined."""

    p: float | None
    t: float | None
    mcnemar: float | None
    detectable: float | None
    holm: float | None = None
    benjamini_hochberg: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is at most LEVEL."""
        return self.holm is not None and self.holm <= LEVEL


def significance(rows: Sequence[PairedValues], *, seed: int = 0) -> list[Significance]:
    """Test every row of a table and correct the p-values for the number of rows."""
    tested = [_tested(row, seed) for row in rows]
    plain = [one.p for one in tested]
    return [
        replace(one, holm=strict, benjamini_hochberg=mild)
        for one, strict, mild in zip(tested, holm(plain), benjamini_hochberg(plain), strict=True)
    ]


def flip_clusters(differences: Floats, clusters: NDArray[np.intp], *, seed: int = 0) -> float:
    """The p-value of a mean difference by a cluster sign-flip permutation test.

    Under the null hypothesis the two runs are exchangeable within each cluster. The p-value is the
    probability of a mean at least as far from 0. It counts all flips if they have few enough distinct
    sums, otherwise DRAWS random flips and the observed one. With one right-or-wrong group per cluster it
    is McNemar's exact test.

    Args:
        differences: The differences of the groups, shape (n,).
        clusters: The number of the cluster of each group, shape (n,).

    >>> round(flip_clusters(np.array([1.0, 1, 1, 1, 1, 1]), np.arange(6)), 5)
    0.03125
    """
    sums = np.bincount(clusters, differences)
    # Rounding errors of equal similarities are not differences.
    largest = np.abs(sums).max(initial=0)
    if largest < _CLOSE:
        return 1.0
    # Among clusters of one size the number of positive signs is binomial.
    sizes, counts = np.unique(np.round(np.abs(sums) / largest, 12), return_counts=True)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    least = abs(float(sums.sum())) / float(largest) - _CLOSE
    if math.prod(int(count) + 1 for count in counts) <= _EXACT:
        totals, probabilities = _all_flips(sizes, counts)
        return min(1.0, float(probabilities[np.abs(totals) >= least].sum()))
    far = sum(
        int(np.count_nonzero(np.abs(totals) >= least))
        for totals in _drawn_flips(np.repeat(sizes, counts), seed)
    )
    return (1 + far) / (1 + DRAWS)


def paired_t(differences: Floats) -> float | None:
    """The p-value of the paired t test (ConTextual 3.3.1), which takes groups as independent.

    Args:
        differences: The differences of the groups, shape (n,).

    Returns:
        The p-value; None with fewer than two groups, or if all differences are equal.
    """
    n = len(differences)
    if n < 2 or (differences == differences[0]).all():
        return None
    freedom, spread = n - 1, float(differences.var(ddof=1))
    if not spread:
        return None
    square = n * float(differences.mean()) ** 2 / spread
    if square > freedom:
        return float(betainc(freedom / 2, 0.5, freedom / (freedom + square)))
    # 1 - x is exact here, x is rounded.
    return float(betaincc(0.5, freedom / 2, square / (freedom + square)))


def mcnemar(lost: int, won: int) -> float:
    """The p-value of McNemar's exact test.

    Args:
        lost: The number of groups that only the first run has right.
        won: The number of groups that only the second run has right.

    >>> round(mcnemar(0, 6), 5)
    0.03125
    """
    least, n = min(lost, won), lost + won
    if 2 * least >= n:
        return 1.0
    return min(1.0, 2 * float(betainc(n - least, least + 1, 0.5)))


def detectable_difference(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The mean difference that such data detect with a power of 80 % at the two-sided 5 % level.

    It uses the standard error between clusters and the normal distribution.

    Args:
        differences: The differences of the groups, shape (n,).
        clusters: The number of the cluster of each group, shape (n,).

    Returns:
        The difference; None with fewer than two clusters, or if nothing varies.
    """
    error = clustered_error(differences, clusters)
    return POWER_80 * error if error else None


def clustered_error(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The cluster-robust standard error of a mean.

    Args:
        differences: The values, shape (n,).
        clusters: The cluster of each value, shape (n,).

    Returns:
        The standard error; None with fewer than two clusters.
    """
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, differences - differences.mean()) if len(places) else np.empty(0)
    if len(sums) < 2:
        return None
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(differences)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction of p-values for multiple comparisons (Holm 1979).

    Args:
        p_values: The p-values; None stays None and does not count as a test.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(p_values, lambda rising, ranks: np.maximum.accumulate(rising * ranks[::-1]))


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """The correction of p-values that controls the false discovery rate (Benjamini and Hochberg 1995).

    Args:
        p_values: The p-values; None stays None and does not count as a test.

    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(
        p_values,
        lambda rising, ranks: np.minimum.accumulate((rising * len(ranks) / ranks)[::-1])[::-1],
    )


def _tested(row: PairedValues, seed: int) -> Significance:
    differences = row.after - row.before
    binary = np.isin((row.before, row.after), (0, 1)).all()
    lost, won = int((differences < 0).sum()), int((differences > 0).sum())
    return Significance(
        p=flip_clusters(differences, row.clusters, seed=seed) if len(differences) else None,
        t=paired_t(differences),
        mcnemar=mcnemar(lost, won) if binary and len(differences) else None,
        detectable=detectable_difference(differences, row.clusters),
    )


def _all_flips(sizes: Floats, counts: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Every sum that flipping clusters of these sizes can give, and its probability."""
    totals, probabilities = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        upward = np.arange(count + 1)
        ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in upward]
        share = np.exp(np.array(ways) - count * math.log(2))
        totals = (totals[:, None] + size * (2 * upward - count)).ravel()
        probabilities = (probabilities[:, None] * share).ravel()
    return totals, probabilities


def _drawn_flips(sizes: Floats, seed: int) -> Iterator[Floats]:
    """DRAWS sums of clusters with random signs, in blocks."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _BLOCK // len(sizes))
    for start in range(0, DRAWS, rows):
        upward = generator.integers(0, 2, (min(rows, DRAWS - start), len(sizes)), dtype=np.int8)
        yield (2 * upward - 1) @ sizes


def _corrected(
    p_values: Sequence[float | None], correct: Callable[[Floats, Floats], Floats]
) -> list[float | None]:
    """Correct p-values by a function of the ascending p-values and their ranks, 1 for the smallest."""
    known = np.array([p_value for p_value in p_values if p_value is not None])
    order = np.argsort(known, kind="stable")
    corrected = np.empty(len(known))
    corrected[order] = np.minimum(1, correct(known[order], np.arange(1.0, len(known) + 1)))
    values = iter(corrected.tolist())
    return [None if p_value is None else next(values) for p_value in p_values]
