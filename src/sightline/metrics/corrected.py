"""Values of a judge, corrected by humans who labelled a sample of the clusters: prediction-powered inference.

A judge read all clusters, humans a random sample of whole clusters. The corrected value is the humans' value
plus what the judge knows of the other clusters (Angelopoulos, Bates et al. 2023; with the tuned weight of
Angelopoulos, Duchi and Zrnic 2023, PPI++):

    corrected = human(sample) + weight x (judge(all) - judge(sample))

Every value is a ratio of sums over clusters. Its variance is that of the clusters' influences: how far a
cluster moves the ratio. A cluster of the sample moves all three ratios: its influences are added first.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.metrics.statistics import Estimates, Floats, ratio_estimates, two_sided_quantile

UNSEEN = 1.0
"""The clusters on which judge and humans differ are counted as if so many more did, and as many more did not.

A sample without a difference would otherwise promise a judge without errors.
"""


class ClusterTerms(NamedTuple):
    """The summed terms of some clusters: arrays of shape (clusters,)."""

    sums: Floats
    counts: Floats


class Correction(Struct, frozen=True):
    """The humans' value and the corrected value of a metric, and the bias of the judge.

    Each of `human`, `sampled`, `corrected` and `bias` holds one value. Its clusters are those of the sample.

    Attributes:
        weight: How much the judge counts, 0-1; 0 where the judge would make the interval wider.
        shrinking: The part of the variance of the corrected value that falls with the number of labelled
            clusters. The other part is that of the judge's value.
    """

    human: Estimates
    sampled: Estimates
    corrected: Estimates
    bias: Estimates
    weight: float
    shrinking: float


def correct(
    judged: ClusterTerms, human: ClusterTerms, sample: NDArray[np.intp], inclusion: Floats
) -> Correction:
    """Correct the value of a judge by the labels of humans on a sample of the clusters.

    The leverage correction and the degrees of freedom are those of `ratio_estimates` (CR2, Satterthwaite;
    sample - 1 for clusters of equal size). The weight is that of PPI++, from the covariance of the influences
    of humans and judge in the sample and the variance of the judge's over all clusters. Where the sample is a
    large part of all clusters, the covariance of judge(all) with the rest is part of the variance.

    Args:
        inclusion: The probability with which each of the k clusters came into the sample, up to a factor.

    Returns:
        The values with their variances; NaN where the humans or the judge counted nothing, and NaN variances
        where one cluster holds everything.
    """
    weights = 1 / inclusion
    sampled = ClusterTerms(judged.sums[sample], judged.counts[sample])
    by_human = ratio_estimates((weights * human.sums)[None], (weights * human.counts)[None])
    value, own = _influences(human, weights)
    judge_value, of_all = _influences(judged, np.ones(len(judged.sums)))
    sample_value, of_sample = _influences(sampled, weights)
    unseen = _unseen(human, sampled, weights)

    def variances(weight: float) -> tuple[float, float]:
        """The variance, and the part of it that falls with the sample."""
        rest = own - weight * of_sample
        added = of_all * weight
        added[sample] += rest
        return float(added @ added) + weight**2 * unseen, float(rest @ rest) + weight**2 * unseen

    weight = _weight(own, of_sample, of_all)
    if variances(weight)[0] > variances(0)[0]:
        weight = 0.0
    variance, shrinking = variances(weight)
    difference = of_sample - own
    return Correction(
        human=by_human,
        sampled=ratio_estimates((weights * sampled.sums)[None], (weights * sampled.counts)[None]),
        corrected=_estimate(value + weight * (judge_value - sample_value), variance, by_human),
        bias=_estimate(sample_value - value, float(difference @ difference) + unseen, by_human),
        weight=weight,
        shrinking=shrinking,
    )


def clusters_to_halve(correction: Correction, clusters: int) -> int | None:
    """How many more clusters humans would have to label, so that the corrected interval is half as wide.

    Args:
        clusters: The number of all clusters.

    Returns:
        The number; None if the interval stays wider even with all clusters labelled, or there is none.
    """
    variance, labelled = float(correction.corrected.variances[0]), int(correction.corrected.clusters[0])
    if not variance > 0:
        return None
    fixed = variance - correction.shrinking

    def width(number: int) -> float:
        quantile = two_sided_quantile(np.array(max(1.0, number - 1)))
        return float(quantile) * math.sqrt(max(0.0, correction.shrinking * labelled / number + fixed))

    wanted = width(labelled) / 2
    if width(clusters) > wanted:
        return None
    few, enough = labelled, clusters
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if width(middle) <= wanted else (middle, enough)
    return enough - labelled


def _influences(terms: ClusterTerms, weights: Floats) -> tuple[float, Floats]:
    """The ratio, and how far each cluster moves it, divided by the square root of 1 - leverage (as HC2)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = weights * terms.counts
        units = counts.sum()
        value = float((weights * terms.sums).sum() / units)
        influences: Floats = (weights * terms.sums - value * counts) / units
        influences /= np.sqrt((units - counts) / units)
        return value, influences


def _weight(own: Floats, of_sample: Floats, of_all: Floats) -> float:
    """The weight of the judge that makes the variance smallest, by PPI++.

    The variance of the judge's influences is that of all clusters, not of the sample: a small sample in which
    judge and humans never differ says little about a judge.
    """
    covariance = len(own) * float(own @ of_sample)
    variance = len(of_all) * float(of_all @ of_all)
    if not (covariance > 0 and variance > 0):
        return 0.0
    return min(1.0, covariance / variance)


def _unseen(human: ClusterTerms, sampled: ClusterTerms, weights: Floats) -> float:
    """The variance of differences between judge and humans that the sample is too small to show.

    The share of clusters on which they differ, d of k, is taken as (d + 1) of (k + 2), as Agresti and Coull
    (1998) and, for paired shares, Bonett and Price (2012) do. A further difference is as large as those that
    were seen; without any, it is a whole cluster.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (weights @ human.counts) / weights.sum()
        differences = (sampled.sums - human.sums) / mean
        differ = differences != 0
        sizes = differences[differ] if differ.any() else human.counts / mean
        number, differing = len(differ), int(differ.sum())
        seen, expected = differing / number, (differing + UNSEEN) / (number + 2 * UNSEEN)
        missing = max(0.0, expected * (1 - expected) - seen * (1 - seen))
        return float(np.mean(sizes**2)) * missing / number


def _estimate(value: float, variance: float, sample: Estimates) -> Estimates:
    """A value with the degrees of freedom and the clusters of the sample."""
    return sample._replace(values=np.array([value]), variances=np.array([variance]))
