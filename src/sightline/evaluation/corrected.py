"""Metrics of judges that read all answers, corrected by humans who labelled a sample of the clusters."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.evaluation.judges import HumanJudge, Judge, JudgedGroup, JudgePanel, concerns
from sightline.evaluation.plan import AnswerLookup
from sightline.metrics.statistics import (
    Estimates,
    Floats,
    intervals,
    ratio_estimates,
    two_sided_quantile,
    with_interval,
)
from sightline.metrics.tally import SCALES, Integers
from sightline.types import CorrectedValue, Group, Metric, MetricValue, Outcome, Range, difference_range

NOT_LABELLED = "humans labelled no whole cluster"
MIXED_INCLUSION = "some verdicts of humans state the probability of their cluster, and others do not"
CONTRADICTORY = "verdicts of humans on one cluster state different probabilities"

_COLUMNS = 4
"""The sum and the count by the judge, then those by the humans."""


def corrected_values(
    alone: JudgePanel,
    judge: Judge,
    humans: Sequence[HumanJudge],
    metrics: Sequence[Metric],
    groups: Callable[[], Iterator[Group]],
    replies: AnswerLookup,
    by_judge: Sequence[MetricValue],
) -> list[CorrectedValue]:
    """The metrics of a judge, corrected by humans.

    A cluster is labelled if humans decided on everything that the judge read in it.
    """
    by_humans = replace(alone, judges=humans, decide="majority", only_labelled=False)
    asked = {verdict.question for human in humans for verdict in human.verdicts}
    own = [metric for metric in metrics if metric.labels != "varying" and metric.judged in asked]
    sample = _Sample(own)
    both = zip(alone.judge(groups(), replies), by_humans.judge(groups(), replies), strict=True)
    for judged, labelled in both:
        if judged.group.sent:
            equal = {
                frozenset(case.targets) for case in alone.benchmark.cases(judged.group) if case.needs_no_judge
            }
            sample.add(judged.group, labelled, equal)
    values = {value.metric: value for value in by_judge if value.value is not None}
    names = judge.name, ", ".join(human.name for human in humans)
    return [
        _corrected(names, metric, sample.clusters(column), values[metric.name])
        for column, metric in enumerate(sample.metrics)
        if metric.name in values and sample.is_part(column)
    ]


class _Clusters:
    """The clusters of one metric: k known ones of n.

    A cluster is known if humans labelled it, or if it has nothing to label: failed and empty answers need no
    judge, nor do two equal ones. `judged` has the terms of all n clusters, `human` those of the k at the
    positions `sample`. `inclusion` has the probabilities of these, or says why they are unknown. `labelled`
    clusters have labels for every case, `partly` labelled ones for some.
    """

    def __init__(self, amounts: Floats, cases: Integers, left: Integers, inclusion: Floats | str) -> None:
        used = (amounts[:, 1] > 0) | (amounts[:, 3] > 0)
        whole = left[used] == 0
        self.labelled = int((whole & (cases[used] > 0)).sum())
        self.partly = int(((left > 0) & (left < cases)).sum())
        self.judged = ClusterTerms(amounts[used, 0], amounts[used, 1])
        self.human = ClusterTerms(amounts[used, 2][whole], amounts[used, 3][whole])
        self.sample = np.flatnonzero(whole)
        self.inclusion = inclusion if isinstance(inclusion, str) else inclusion[used][whole]


class _Sample:
    """The terms of metrics by a judge and by humans, added up by cluster."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = metrics
        self._numbers: dict[str, int] = {}
        self._terms = array("d")
        # For each cluster and metric: how many cases the judge read, and how many of them humans left open.
        self._cases, self._open = array("q"), array("q")
        self._inclusion: list[defaultdict[str, set[float | None]]] = []

    def add(self, judged: Group, labelled: JudgedGroup, equal: Collection[frozenset[str]]) -> None:
        """Add a group as a judge and as humans judged it; `equal`: the targets of cases without a judge."""
        width = len(self.metrics)
        cluster = self._numbers.setdefault(judged.cluster or judged.id, len(self._numbers))
        if cluster == len(self._inclusion):
            self._inclusion.append(defaultdict(set))
            self._terms.extend([0.0] * (_COLUMNS * width))
            self._cases.extend([0] * width)
            self._open.extend([0] * width)
        for one in labelled.verdicts:
            if one.kind == "human":
                self._inclusion[cluster][one.question].add(one.inclusion)
        for column, metric in enumerate(self.metrics):
            cell = cluster * width + column
            cases, left = _cases(metric, judged, labelled.group, equal)
            self._cases[cell] += cases
            self._open[cell] += left
            for side, group in enumerate((judged, labelled.group)):
                for term in metric.terms(group):
                    if term.overall:
                        self._terms[_COLUMNS * cell + 2 * side] += term.sum
                        self._terms[_COLUMNS * cell + 2 * side + 1] += term.count

    def is_part(self, column: int) -> bool:
        """Whether humans decided some cases of a metric, and left others open."""
        cases, left = self._counts(column)
        return 0 < int(left.sum()) < int(cases.sum())

    def clusters(self, column: int) -> _Clusters:
        cases, left = self._counts(column)
        shape = len(self._numbers), len(self.metrics), _COLUMNS
        amounts = np.frombuffer(self._terms).reshape(shape)[:, column]
        question = self.metrics[column].judged or ""
        return _Clusters(amounts, cases, left, self._probabilities(question, cases, left))

    def _counts(self, column: int) -> tuple[Integers, Integers]:
        shape = len(self._numbers), len(self.metrics)
        cases, left = (np.frombuffer(one, dtype=np.int64) for one in (self._cases, self._open))
        return cases.reshape(shape)[:, column], left.reshape(shape)[:, column]

    def _probabilities(self, question: str, cases: Integers, left: Integers) -> Floats | str:
        """The probability with which each cluster is labelled; a cluster without a case needs no human."""
        labelled = (left == 0) & (cases > 0)
        found = [self._inclusion[number][question] for number in np.flatnonzero(labelled).tolist()]
        if any(len(one) > 1 for one in found):
            return CONTRADICTORY
        stated = [next(iter(one), None) for one in found]
        known = [one for one in stated if one is not None]
        if known and len(known) < len(stated):
            return MIXED_INCLUSION
        probabilities = np.ones(len(cases))
        probabilities[labelled] = known or labelled.sum() / max(1, int((cases > 0).sum()))
        return probabilities


def _cases(
    metric: Metric, judged: Group, labelled: Group, equal: Collection[frozenset[str]]
) -> tuple[int, int]:
    """How many cases of a metric a judge decided in a group, and how many of them humans left open."""
    if metric.judged != "correct":
        asked, given = (
            {
                frozenset(one.targets)
                for one in group.judgements
                if concerns(metric, judged, one.question, one.targets)
            }.difference(equal)
            for group in (judged, labelled)
        )
        return len(asked), len(asked - given)
    pairs = zip(_outcomes(judged, metric), _outcomes(labelled, metric), strict=True)
    open_cases = [not other.judge for one, other in pairs if one.judge]
    return len(open_cases), sum(open_cases)


def _outcomes(group: Group, metric: Metric) -> tuple[Outcome, ...]:
    return (*group.outcomes, *(group.partners.get(metric.needs, ()) if metric.needs else ()))


def _corrected(
    names: tuple[str, str], metric: Metric, clusters: _Clusters, judged: MetricValue
) -> CorrectedValue:
    judge, humans = names
    unit = "points" if metric.unit == "percent" else metric.unit
    human = MetricValue(metric.name, "all", None, 0, clusters.labelled, unit=metric.unit, judge=humans)
    found = CorrectedValue(
        metric=metric.name,
        judge=judge,
        humans=humans,
        labelled=clusters.labelled,
        partly=clusters.partly,
        judged=judged,
        human=human,
        corrected=replace(human, judge=f"{judge}, corrected by {humans}"),
        bias=replace(human, unit=unit, judge=judge),
    )
    if isinstance(clusters.inclusion, str) or not clusters.labelled:
        reason = clusters.inclusion if isinstance(clusters.inclusion, str) else NOT_LABELLED
        return replace(
            found,
            human=replace(found.human, reason=reason),
            corrected=replace(found.corrected, reason=reason),
            bias=replace(found.bias, reason=reason),
        )
    correction = correct(clusters.judged, clusters.human, clusters.sample, clusters.inclusion)
    return _with_values(found, metric, correction, float(clusters.human.counts.sum()))


def _with_values(found: CorrectedValue, metric: Metric, correction: Correction, n: float) -> CorrectedValue:
    scale, whole = SCALES[metric.unit], int(n) if n.is_integer() else n
    low, high = (None if bound is None else bound / scale for bound in metric.range)

    def measured(value: MetricValue, estimates: Estimates, *, difference: bool = False) -> MetricValue:
        bounds = difference_range((low, high)) if difference else (low, high)
        within = _within(float(estimates.values[0]), bounds)
        if math.isnan(within):
            return replace(value, reason=metric.absent)
        known = estimates._replace(values=np.array([within]), clusters=np.array([found.labelled]))
        (interval,) = intervals(known, [bounds], graded=metric.graded)
        return with_interval(replace(value, value=scale * within, n=whole), interval, scale)

    human = measured(found.human, correction.human)
    corrected = measured(found.corrected, correction.corrected)
    finite = measured(found.corrected, correction.finite)
    sampled = replace(found.human, judge=found.judge)
    return replace(
        found,
        human=human,
        sampled=measured(sampled, correction.sampled),
        corrected=corrected,
        finite=finite,
        bias=measured(found.bias, correction.bias, difference=True),
        weight=correction.weight,
        narrowed=_narrowed(human, corrected),
        needed=clusters_to_halve(correction, found.judged.clusters) if corrected.interval else None,
    )


def _within(value: float, bounds: Range) -> float:
    """The value, or the bound that it exceeds; NaN stays."""
    least, most = bounds
    if least is not None and value < least:
        return least
    return most if most is not None and value > most else value


def _narrowed(human: MetricValue, corrected: MetricValue) -> float | None:
    if human.low is None or human.high is None or corrected.low is None or corrected.high is None:
        return None
    width = human.high - human.low
    # Equal widths differ by rounding errors, which would be shown as -0.0.
    return round(100 * (1 - (corrected.high - corrected.low) / width), 9) + 0.0 if width else None


# -- Prediction-powered inference: a judge read all clusters, humans a random sample of whole clusters
#
# The corrected value is the humans' value plus what the judge knows of the other clusters (Angelopoulos,
# Bates et al. 2023; with the tuned weight of Angelopoulos, Duchi and Zrnic 2023, PPI++):
#
#     corrected = human(sample) + weight x (judge(all) - judge(sample))
#
# A weight that is tuned on the clusters that it weights makes the value biased towards 0 or 1. So the weights
# are cross-fitted (as the predictions of Zrnic and Candes 2024): the difference is the sum of the shares of
# the labelled clusters, and the share of each has the weight that the other labelled clusters give.
#
# Every value is a ratio of sums over clusters. Its variance is that of the clusters' influences: how far a
# cluster moves the ratio. A cluster of the sample moves all three ratios and the weight: its influences are
# added first.

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

    Each of the estimates holds one value. Its clusters are those of the sample.

    Attributes:
        finite: The corrected value as that of all clusters here, and not of the clusters that they stand for:
            its variance is that of the choice of the sample alone, 0 if humans labelled all.
        weight: How much the judge counts, 0-1: the mean of the weights of the labelled clusters.
        shrinking: The part of the variance of the corrected value that falls with the number of labelled
            clusters. The other part is that of the judge's value.
    """

    human: Estimates
    sampled: Estimates
    corrected: Estimates
    finite: Estimates
    bias: Estimates
    weight: float
    shrinking: float


def correct(
    judged: ClusterTerms, human: ClusterTerms, sample: NDArray[np.intp], inclusion: Floats
) -> Correction:
    """Correct the value of a judge by the labels of humans on a sample of the clusters.

    The leverage correction and the degrees of freedom are those of `ratio_estimates` (CR2, Satterthwaite;
    sample - 1 for clusters of equal size). A cluster also moves the value by its influence on the weight, as
    in the jackknife: without it, intervals are too narrow where the sample says little about the weight.
    Where the sample is a large part of all clusters, the covariance of judge(all) with the rest is part of
    the variance.

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
    unseen = float(_unseen(human, sampled, weights, np.sum))

    own_weights = _weights_of_others(human, sampled, weights, of_all)
    weight = float(own_weights.mean())
    moved = float(own_weights @ _shares(judged, sample, weights))
    rest = own - own_weights * of_sample + (weight - own_weights) * (judge_value - sample_value)
    influences = weight * of_all
    influences[sample] = rest + own_weights * of_all[sample]
    allowance = weight**2 * unseen
    difference = of_sample - own
    # The probabilities, of which a factor is open: together the sample stands for all clusters.
    left_out = np.maximum(0, 1 - inclusion * (weights.sum() / len(judged.sums)))
    chosen = float(left_out @ rest**2) + allowance * float(left_out.mean())
    return Correction(
        human=by_human,
        sampled=ratio_estimates((weights * sampled.sums)[None], (weights * sampled.counts)[None]),
        corrected=_estimate(value + moved, float(influences @ influences) + allowance, by_human),
        finite=_estimate(value + moved, chosen, by_human),
        bias=_estimate(sample_value - value, float(difference @ difference) + unseen, by_human),
        weight=weight,
        shrinking=float(rest @ rest) + allowance,
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


def _shares(judged: ClusterTerms, sample: NDArray[np.intp], weights: Floats) -> Floats:
    """The shares of the labelled clusters in judge(all) - judge(sample).

    They are measured from the judge's value of the other clusters. So the share of a cluster that stands for
    itself alone is 0: with labels of all clusters, the corrected value is the humans'.
    """
    sums, counts = judged.sums[sample], judged.counts[sample]
    units = judged.counts.sum()
    others = units - counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (judged.sums.sum() - sums.sum()) / others if others > 0 else judged.sums.sum() / units
        found: Floats = (sums - value * counts) * (1 / units - weights / (weights * counts).sum())
    return found


def _weights_of_others(human: ClusterTerms, sampled: ClusterTerms, weights: Floats, of_all: Floats) -> Floats:
    """For each labelled cluster, the weight by PPI++ that makes the variance smallest for the other ones.

    The variance of the judge's influences is that of all clusters, not of the sample: a small sample in which
    judge and humans never differ says little about a judge. The allowance for unseen differences is part of
    the variance.

    Returns:
        Shape (clusters of the sample,), 0-1.
    """
    right, size = weights * human.sums, weights * human.counts
    read, read_size = weights * sampled.sums, weights * sampled.counts
    number = len(weights) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        units, read_units = _others(size), _others(read_size)
        value, read_value = _others(right) / units, _others(read) / read_units
        products = _others(right * read) - read_value * _others(right * read_size)
        products += value * (read_value * _others(size * read_size) - _others(size * read))
        covariances = number * products / (units * read_units)
        variances = len(of_all) * float(of_all @ of_all) + number * _unseen(human, sampled, weights, _others)
        return np.nan_to_num(np.clip(covariances / variances, 0, 1))


def _others(amounts: Floats) -> Floats:
    """For each cluster, the sum over the other ones."""
    found: Floats = amounts.sum() - amounts
    return found


def _unseen(
    human: ClusterTerms, sampled: ClusterTerms, weights: Floats, total: Callable[[Floats], Floats]
) -> Floats:
    """The variance of differences between judge and humans that the sample is too small to show.

    The share of clusters on which they differ, d of k, is taken as (d + 1) of (k + 2), as Agresti and Coull
    (1998) and, for paired shares, Bonett and Price (2012) do. A further difference is as large as those that
    were seen; without any, it is a whole cluster.

    Args:
        total: Adds up the clusters: all, or for each cluster the other ones.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (weights @ human.counts) / weights.sum()
        differences, sizes = (sampled.sums - human.sums) / mean, human.counts / mean
        differ = (differences != 0).astype(np.float64)
        number, differing = total(np.ones(len(differ))), total(differ)
        seen, expected = differing / number, (differing + UNSEEN) / (number + 2 * UNSEEN)
        missing = np.maximum(0, expected * (1 - expected) - seen * (1 - seen))
        squares = np.where(differing > 0, total(differences**2) / differing, total(sizes**2) / number)
        found: Floats = squares * missing / number
    return found


def _estimate(value: float, variance: float, sample: Estimates) -> Estimates:
    """A value with the degrees of freedom and the clusters of the sample."""
    return sample._replace(values=np.array([value]), variances=np.array([variance]))
