"""How well one reading of answers goes with another: ROC-AUC, Spearman, agreement, Cohen's kappa, alpha.

Every statistic takes two series over n answers, and `weights` of shape (k, n): how often each of k resamples
holds each answer (ones for the data as they are). It gives k values, NaN where a resample leaves it
undefined; `value_of` turns that into None.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.metrics.statistics import Floats
from sightline.types import Unit


class Statistic(Struct, frozen=True):
    """A statistic by its name: `of(first, second, weights)`, and why it has no value where it has none.

    Times 100 where its unit is percent. `share`: it is the share of answers on which both series agree.
    """

    name: str
    of: Callable[[Floats, Floats, Floats], Floats]
    absent: str
    unit: Unit = "number"
    share: bool = False


def value_of(statistic: Statistic, first: Floats, second: Floats) -> float | None:
    """The statistic of two series of shape (n,), unscaled; None where it is undefined."""
    if not len(first):
        return None
    value = float(statistic.of(first, second, np.ones((1, len(first))))[0])
    return None if np.isnan(value) else value


def roc_auc(scores: Floats, truth: Floats, weights: Floats) -> Floats:
    """The share of pairs of a right (`truth` 1) and a wrong answer (0) in which the right one scores higher.

    A tie counts half. 0-1, shape (k,); NaN where the answers of a resample are all right or all wrong.
    """
    right, wrong = _by_value(scores, weights * truth), _by_value(scores, weights * (1 - truth))
    below = np.cumsum(wrong, axis=1) - wrong / 2
    return _ratio((right * below).sum(axis=1), right.sum(axis=1) * wrong.sum(axis=1))


def spearman(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Pearson's correlation of ranks, -1 to 1, equal values sharing the mean of theirs; shape (k,).

    NaN where a series does not vary within a resample.
    """
    one, other = _centred_ranks(first, weights), _centred_ranks(second, weights)
    squares = [(weights * ranks * ranks).sum(axis=1) for ranks in (one, other)]
    # The root of a product of equal squares is exact: series of one order correlate with exactly 1.
    spread = np.sqrt(squares[0] * squares[1])
    return np.clip(_ratio((weights * one * other).sum(axis=1), spread), -1, 1)


def agreement(first: Floats, second: Floats, weights: Floats) -> Floats:
    """The share of answers that both read alike, 0-1; shape (k,)."""
    return _ratio((weights * (first == second)).sum(axis=1), weights.sum(axis=1))


def cohen_kappa(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Cohen's kappa of two readings of 0 or 1, at most 1; shape (k,).

    NaN where both say the same of every answer, so that agreement could not be other than chance.
    """
    n = weights.sum(axis=1)
    one, other = (weights * first).sum(axis=1), (weights * second).sum(axis=1)
    alike = n * (weights * (first == second)).sum(axis=1)
    chance = one * other + (n - one) * (n - other)
    return _ratio(alike - chance, n * n - chance)


def krippendorff_alpha(right: Floats, wrong: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha for two categories, from how many raters call each answer right and wrong.

    At most 1; shape (k,). Answers with one rating or none do not count. NaN where all ratings are the same.
    """
    return nominal_alpha(np.stack([right, wrong], axis=1), right + wrong, weights)


def nominal_alpha(counts: Floats, ratings: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha for categories without order: `counts` of shape (n, categories) says how many
    raters put each thing into each, `ratings` of shape (n,) how many rated it.

    At most 1; shape (k,). Things with one rating or none do not count. NaN where all ratings are the same.
    """
    paired = weights * (ratings >= 2)
    apart = (counts * (ratings[:, None] - counts)).sum(axis=1) / np.maximum(ratings - 1, 1)
    totals = paired @ counts
    n = totals.sum(axis=1)
    return 1 - _ratio((n - 1) * (paired @ apart), n * n - (totals * totals).sum(axis=1))


def alpha_of_two(first: Floats, second: Floats, weights: Floats) -> Floats:
    """Krippendorff's alpha of two readings of 0 or 1."""
    ones = first + second
    return krippendorff_alpha(ones, 2 - ones, weights)


ROC_AUC = Statistic("roc_auc", roc_auc, "people call all of these answers right, or none", "percent")
SPEARMAN = Statistic("spearman", spearman, "one side does not vary")
AGREEMENT = Statistic("agreement", agreement, "nothing was decided by both", "percent", share=True)
KAPPA = Statistic("kappa", cohen_kappa, "both say the same of every answer")
ALPHA_OF_TWO = Statistic("alpha", alpha_of_two, "both say the same of every answer")
ALPHA = Statistic("alpha", krippendorff_alpha, "no answer has two ratings, or all ratings are the same")
NOMINAL_ALPHA = Statistic("alpha", nominal_alpha, "nothing has two ratings, or all ratings are the same")


def _by_value(series: Floats, weights: Floats) -> Floats:
    """The summed weights of each distinct value, in ascending order: shape (k, distinct values)."""
    order, starts, _ = _sorted(series)
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _centred_ranks(series: Floats, weights: Floats) -> Floats:
    """The rank of each answer within each resample less the mean rank, shape (k, n).

    Halves of whole numbers, so that a series which does not vary has a spread of exactly 0.
    """
    _, _, place = _sorted(series)
    held = _by_value(series, weights)
    ranks = np.cumsum(held, axis=1) - held / 2 - weights.sum(axis=1, keepdims=True) / 2
    centred: Floats = ranks[:, place]
    return centred


def _sorted(series: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """An order that sorts the series, where each distinct value begins in it, and each answer's value."""
    _, place, counts = np.unique(series, return_inverse=True, return_counts=True)
    return np.argsort(place, kind="stable"), np.cumsum(counts) - counts, place


def _ratio(above: Floats, below: Floats) -> Floats:
    ratios: Floats = np.full(above.shape, np.nan)
    return np.divide(above, below, out=ratios, where=below > 0)
