"""Whether two runs differ by more than chance: tests on arrays of what changes within groups.

ConTextual 3.3.1 compares models by the paired t test. Groups that share an image are no independent
witnesses. That test and McNemar's do not see it; flipping whole clusters does, and is the test that
decides. All p values are two-sided, 0-1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metrics.statistics import POWER_80, Floats

LEVEL = 0.05
"""The p value up to which a difference is called significant (3.3.1: 95 % confidence)."""

_EXACT = 100_000
"""Sums of flipped clusters up to which all are weighed; of more, DRAWS are drawn."""

DRAWS = 10_000

_BLOCK = 1 << 21
"""Signs that are drawn at a time: some tens of MB."""

_CLOSE = 1e-9
"""What rounding may do to a sum, of the largest cluster's."""


class PairedValues(NamedTuple):
    """Groups as one run has them and as another has them: values and the number of the cluster, (groups,)."""

    before: Floats
    after: Floats
    clusters: NDArray[np.intp]


class Significance(Struct, frozen=True):
    """How sure a difference is. None where a test says nothing.

    `p` flips whole clusters and decides; `holm` and `benjamini_hochberg` are that p corrected for the other
    rows of its table. `t` and `mcnemar` ignore clusters. `detectable` is the difference that as many groups
    find 4 times of 5, in the values' own unit.
    """

    p: float | None
    t: float | None
    mcnemar: float | None
    detectable: float | None
    holm: float | None = None
    benjamini_hochberg: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the difference is beyond chance, beside the other rows of its table."""
        return self.holm is not None and self.holm <= LEVEL


def significance(rows: Sequence[PairedValues], *, seed: int = 0) -> list[Significance]:
    """The tests of every row of a table, corrected for each other; `seed` is that of drawn flips."""
    found = [_tested(row, seed) for row in rows]
    plain = [one.p for one in found]
    return [
        replace(one, holm=strict, benjamini_hochberg=mild)
        for one, strict, mild in zip(found, holm(plain), benjamini_hochberg(plain), strict=True)
    ]


def flip_clusters(differences: Floats, clusters: NDArray[np.intp], *, seed: int = 0) -> float:
    """The p value of a mean difference by flipping the signs of whole clusters.

    The chance of a mean as far from 0 if in each cluster the two runs might as well be the other's: of all
    ways to flip, where these have few enough sums, else of DRAWS drawn ones and the real one. 1 where
    nothing differs. Where every cluster is one group that is right or wrong, this is McNemar's exact test.

    >>> round(flip_clusters(np.array([1.0, 1, 1, 1, 1, 1]), np.arange(6)), 5)
    0.03125
    """
    sums = np.bincount(clusters, differences)
    # What rounding leaves of two equal similarities is no difference.
    largest = np.abs(sums).max(initial=0)
    if largest < _CLOSE:
        return 1.0
    # Clusters of one size are alike: how many of them point upwards is binomial.
    sizes, counts = np.unique(np.round(np.abs(sums) / largest, 12), return_counts=True)
    sizes, counts = sizes[sizes > 0], counts[sizes > 0]
    least = abs(float(sums.sum())) / float(largest) - _CLOSE
    if math.prod(int(count) + 1 for count in counts) <= _EXACT:
        totals, chances = _all_flips(sizes, counts)
        return min(1.0, float(chances[np.abs(totals) >= least].sum()))
    far = sum(
        int(np.count_nonzero(np.abs(totals) >= least))
        for totals in _drawn_flips(np.repeat(sizes, counts), seed)
    )
    return (1 + far) / (1 + DRAWS)


def paired_t(differences: Floats) -> float | None:
    """The p value of the paired t test (ConTextual 3.3.1), every group for itself.

    None with fewer than two groups, or where all differ alike: their spread says nothing then.
    """
    from scipy.special import betainc, betaincc

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
    """The p value of McNemar's exact test: `lost` were right before alone, `won` are right now alone.

    >>> round(mcnemar(0, 6), 5)
    0.03125
    """
    from scipy.special import betainc

    least, n = min(lost, won), lost + won
    if 2 * least >= n:
        return 1.0
    return min(1.0, 2 * float(betainc(n - least, least + 1, 0.5)))


def detectable_difference(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The mean difference that such data find 4 times of 5: 80 % power at 5 %, two-sided.

    By the standard error between clusters, and the normal distribution. None with fewer than two clusters,
    or where nothing varies.
    """
    error = clustered_error(differences, clusters)
    return POWER_80 * error if error else None


def clustered_error(differences: Floats, clusters: NDArray[np.intp]) -> float | None:
    """The standard error of a mean of `differences` (n,) whose `clusters` (n,) are independent, not they.

    That of the mean where each cluster is one of them. None with fewer than two clusters.
    """
    _, places = np.unique(clusters, return_inverse=True)
    sums = np.bincount(places, differences - differences.mean()) if len(places) else np.empty(0)
    if len(sums) < 2:
        return None
    return math.sqrt(len(sums) / (len(sums) - 1) * float(sums @ sums)) / len(differences)


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """p values that hold for all of them together (Holm 1979); None stays, and is none of them.

    >>> holm([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(chances, lambda rising, ranks: np.maximum.accumulate(rising * ranks[::-1]))


def benjamini_hochberg(chances: Sequence[float | None]) -> list[float | None]:
    """p values below which that share of the findings is false, on average (Benjamini and Hochberg 1995).

    >>> benjamini_hochberg([0.01, None, 0.04])
    [0.02, None, 0.04]
    """
    return _corrected(
        chances,
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
    """Every sum that flipping clusters of these sizes can give, and its chance."""
    totals, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        upward = np.arange(count + 1)
        ways = [math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in upward]
        share = np.exp(np.array(ways) - count * math.log(2))
        totals = (totals[:, None] + size * (2 * upward - count)).ravel()
        chances = (chances[:, None] * share).ravel()
    return totals, chances


def _drawn_flips(sizes: Floats, seed: int) -> Iterator[Floats]:
    """DRAWS sums of clusters whose signs are drawn, in blocks."""
    generator = np.random.Generator(np.random.PCG64(seed))
    rows = max(1, _BLOCK // len(sizes))
    for start in range(0, DRAWS, rows):
        upward = generator.integers(0, 2, (min(rows, DRAWS - start), len(sizes)), dtype=np.int8)
        yield (2 * upward - 1) @ sizes


def _corrected(
    chances: Sequence[float | None], correct: Callable[[Floats, Floats], Floats]
) -> list[float | None]:
    """p values corrected by a function of them in rising order and of their ranks, 1 for the least."""
    known = np.array([chance for chance in chances if chance is not None])
    order = np.argsort(known, kind="stable")
    corrected = np.empty(len(known))
    corrected[order] = np.minimum(1, correct(known[order], np.arange(1.0, len(known) + 1)))
    values = iter(corrected.tolist())
    return [None if chance is None else next(values) for chance in chances]
