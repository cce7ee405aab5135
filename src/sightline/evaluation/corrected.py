"""Metrics of judges that read all answers, corrected by humans who labelled a sample of the clusters."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.benchmarks.base import Benchmark
from sightline.evaluation.judges import (
    Judge,
    JudgedGroup,
    JudgePanel,
    RecordedJudge,
    concerns,
    judged_partners,
)
from sightline.evaluation.plan import AnswerLookup
from sightline.metrics.statistics import (
    LEAST_CLUSTERS,
    Estimates,
    Floats,
    intervals,
    ratio_estimates,
    two_sided_quantile,
    with_interval,
)
from sightline.metrics.tally import SCALES, Integers
from sightline.scoring.similarity import SIMILAR
from sightline.types import CorrectedValue, Group, Metric, MetricValue, Outcome, Range, difference_range

NOT_LABELLED = "humans labelled no whole cluster"
MIXED_INCLUSION = "some verdicts of humans state the probability of their cluster, and others do not"
EMPTY_STRATUM = "some strata of the project have no wholly labelled cluster: the labels do not stand for them"
CONTRADICTORY = "verdicts of humans on one cluster state different probabilities"

_COLUMNS = 4
"""The sum and the count by the judge, then those by the humans."""


def corrected_values(
    alone: JudgePanel,
    judge: Judge,
    humans: Sequence[RecordedJudge],
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
            sample.add(judged.group, labelled, _without_judge(alone.benchmark, judged.group))
    values = {value.metric: value for value in by_judge if value.value is not None}
    names = judge.name, ", ".join(human.name for human in humans)
    return [
        _corrected(names, metric, sample.clusters(column), values[metric.name])
        for column, metric in enumerate(sample.metrics)
        if metric.name in values and sample.is_part(column)
    ]


# -- The plan of an annotation: how many clusters of which strata to label for an interval of a given width


class StratumPlan(Struct, frozen=True):
    """How many clusters of a stratum to label; None if labels of all would not be enough."""

    name: str
    clusters: int
    labelled: int
    these: int | None
    population: int | None


class LabelPlan(Struct, frozen=True):
    """How many clusters humans have to label for a corrected value with an interval of a given half-width.

    Attributes:
        cases: How many cases a cluster has on average.
        strata: For the value of `these` clusters alone, and of the `population` that they stand for; the
            stratum whose next label narrows the interval of these most comes first.
        half_widths: The half-widths of both intervals now, in the unit of the metric. None without enough
            labels: the plan is then that of humans alone, whose labels vary like the verdicts of the judge.
    """

    metric: str
    cases: float
    strata: Sequence[StratumPlan]
    half_widths: tuple[float, float] | None


def plan_labels(
    groups: Iterable[Group],
    benchmark: Benchmark,
    metrics: Sequence[Metric],
    replies: AnswerLookup,
    human: RecordedJudge,
    stratum: Callable[[Group], str],
    half_width: float,
) -> list[LabelPlan]:
    """Plan the labels of the clusters of judged groups, for each metric that humans can label.

    Args:
        human: The humans so far, who need no verdict.
        half_width: In the unit of the metric, such as points.
    """
    own = [one for one in metrics if one.labels != "varying" and one.judged not in (None, SIMILAR)]
    own = [one for one in own if not human.verdicts or one.judged in {of.question for of in human.verdicts}]
    panel = JudgePanel(
        benchmark=benchmark, judges=[human], decide="majority", judged_partners=judged_partners(own)
    )
    sample = _Sample(own, stratum)
    for group in groups:
        if group.sent:
            (labelled,) = panel.judge([replace(group, judgements=())], replies)
            sample.add(group, labelled, _without_judge(benchmark, group))
    found = [(metric, sample.clusters(column)) for column, metric in enumerate(own)]
    return [_plan(metric, of, half_width) for metric, of in found if of.cases]


def _plan(metric: Metric, clusters: _Clusters, half_width: float) -> LabelPlan:
    named = np.where(clusters.needs_labels, clusters.strata, NOTHING_TO_LABEL)
    names, strata = np.unique(named, return_inverse=True)
    sizes = np.bincount(strata)
    labelled = np.bincount(strata[clusters.sample], minlength=len(names))
    scale, widths = SCALES[metric.unit], None
    if clusters.labelled >= LEAST_CLUSTERS and not isinstance(clusters.inclusion, str):
        own = strata[clusters.sample]
        found = correct(clusters.judged, clusters.human, clusters.sample, clusters.inclusion, own)
        if found.corrected.variances[0] > 0:
            variances = float(found.finite.variances[0]), float(found.corrected.variances[0])
            quantile = scale * float(two_sided_quantile(found.corrected.freedom)[0])
            widths = quantile * math.sqrt(variances[0]), quantile * math.sqrt(variances[1])
            moved, of_moved, unseen, beyond = found.moved, own, found.unseen, variances[1] - variances[0]
    if widths is None:
        _, moved = _influences(clusters.judged, np.ones(len(strata)))
        of_moved, unseen, beyond = strata, 0.0, float(moved @ moved)
    spreads = _spreads(moved, unseen, of_moved, sizes, names != NOTHING_TO_LABEL)
    half_width /= scale
    these = labels_needed(sizes, labelled, spreads, 0.0, half_width)
    population = labels_needed(sizes, labelled, spreads, max(0.0, beyond), half_width)
    first = np.argsort(-spreads / np.maximum(labelled, 0.5) ** 2, kind="stable")
    return LabelPlan(
        metric=metric.name,
        cases=clusters.cases / int(clusters.needs_labels.sum()),
        strata=[
            StratumPlan(
                str(names[one]),
                int(sizes[one]),
                int(labelled[one]),
                None if these is None else int(these[one]),
                None if population is None else int(population[one]),
            )
            for one in first
            if names[one] != NOTHING_TO_LABEL
        ],
        half_widths=widths,
    )


NOTHING_TO_LABEL = "(nothing to label)"
"""The stratum of clusters in which nothing needs a human: all of them are known."""

PRIOR = 10
"""The clusters whose variance is taken to be that of all strata, in the estimate of each stratum's own."""


def _spreads(
    moved: Floats,
    unseen: float,
    strata: NDArray[np.intp],
    sizes: NDArray[np.intp],
    drawn_from: NDArray[np.bool_],
) -> Floats:
    """The variance that one labelled cluster of each stratum would leave in the value, without `fixed`.

    A few labels say little about how much a stratum varies: its variance is drawn to that of all.
    """
    number, squared_parts = np.bincount(strata, minlength=len(sizes)), (sizes / sizes.sum()) ** 2
    own = number * np.bincount(strata, _centred(moved, strata) ** 2, len(sizes)) / squared_parts
    freedom = np.maximum(0, number - 1) * drawn_from
    of_all = float(own @ freedom / freedom.sum()) if freedom.any() else len(moved) * float(moved @ moved)
    shrunk = (freedom * own + PRIOR * of_all) / (freedom + PRIOR)
    spreads: Floats = squared_parts * (shrunk + len(moved) * unseen)
    return spreads


def labels_needed(
    sizes: NDArray[np.intp], labelled: NDArray[np.intp], spreads: Floats, fixed: float, half_width: float
) -> NDArray[np.intp] | None:
    """How many clusters of each stratum to label for an interval of this half-width, or narrower.

    The next label always goes where it lowers the variance most, which is the exact optimal allocation
    (Wright 2012). Each stratum has at least two, and all together LEAST_CLUSTERS.

    Args:
        sizes: The number of clusters of each stratum.
        spreads: The variance of the value with one labelled cluster in a stratum.
        fixed: The variance that is left when all clusters are labelled.

    Returns:
        The numbers; None if labels of all clusters would not be enough.
    """
    first = np.maximum(labelled, np.minimum(2, sizes))
    which = np.repeat(np.arange(len(sizes)), sizes - first)
    ranks = np.concatenate([np.arange(one, most) for one, most in zip(first, sizes, strict=True)])
    gains = spreads[which] / (ranks * (ranks + 1.0))
    order = np.argsort(-gains, kind="stable")
    start = float(spreads @ (1 / first - 1 / sizes))
    left = start - np.concatenate([[0.0], np.cumsum(gains[order])])
    freedom = np.maximum(1.0, first.sum() + np.arange(len(left)) - len(sizes))
    reached = two_sided_quantile(freedom) * np.sqrt(fixed + np.maximum(0, left)) <= half_width * (1 + 1e-9)
    # Fewer clusters have no interval.
    reached &= first.sum() + np.arange(len(left)) >= min(LEAST_CLUSTERS, int(sizes.sum()))
    if not reached.any():
        return None
    needed: NDArray[np.intp] = first + np.bincount(
        which[order[: int(reached.argmax())]], minlength=len(sizes)
    )
    return needed


# -- The terms of metrics by a judge and by humans, added up by cluster


def _without_judge(benchmark: Benchmark, group: Group) -> set[frozenset[str]]:
    return {frozenset(case.targets) for case in benchmark.cases(group) if case.needs_no_judge}


class _Clusters:
    """The clusters of one metric: k known ones of n.

    A cluster is known if humans labelled it, or if it has nothing to label: failed and empty answers need no
    judge, nor do two equal ones. `judged` has the terms of all n clusters, `human` those of the k at the
    positions `sample`. `inclusion` has the probabilities of these, or says why they are unknown. `labelled`
    clusters have labels for every case, `partly` labelled ones for some. `strata` names the stratum of each.
    """

    def __init__(
        self,
        amounts: Floats,
        cases: Integers,
        left: Integers,
        inclusion: Floats | str,
        strata: NDArray[np.str_],
    ) -> None:
        used = (amounts[:, 1] > 0) | (amounts[:, 3] > 0)
        whole = left[used] == 0
        self.labelled = int((whole & (cases[used] > 0)).sum())
        self.partly = int(((left > 0) & (left < cases)).sum())
        self.judged = ClusterTerms(amounts[used, 0], amounts[used, 1])
        self.human = ClusterTerms(amounts[used, 2][whole], amounts[used, 3][whole])
        self.sample = np.flatnonzero(whole)
        self.strata = strata[used]
        self.cases, self.needs_labels = int(cases.sum()), cases[used] > 0
        self.inclusion = inclusion if isinstance(inclusion, str) else inclusion[used][whole]


class _Sample:
    """The terms of metrics by a judge and by humans, added up by cluster.

    Without `stratum`, the verdicts of humans name the strata of their clusters.
    """

    def __init__(self, metrics: Sequence[Metric], stratum: Callable[[Group], str] | None = None) -> None:
        self.metrics = metrics
        self._stratum = stratum
        # For each cluster: the stratum that the verdicts of humans name, and that of `stratum`.
        self._strata: list[str] = []
        self._named: list[str] = []
        self._numbers: dict[str, int] = {}
        self._terms = array("d")
        # For each cluster and metric: how many cases the judge read, and how many of them humans left open.
        self._cases, self._open = array("q"), array("q")
        self._inclusion: list[defaultdict[str, set[float | None]]] = []
        self._of_strata = 0

    def add(self, judged: Group, labelled: JudgedGroup, equal: Collection[frozenset[str]]) -> None:
        """Add a group as a judge and as humans judged it; `equal`: the targets of cases without a judge."""
        width = len(self.metrics)
        cluster = self._numbers.setdefault(judged.cluster or judged.id, len(self._numbers))
        if cluster == len(self._inclusion):
            self._inclusion.append(defaultdict(set))
            self._strata.append("")
            if self._stratum:
                self._named.append(self._stratum(judged))
            self._terms.extend([0.0] * (_COLUMNS * width))
            self._cases.extend([0] * width)
            self._open.extend([0] * width)
        for one in labelled.verdicts:
            if one.kind == "human":
                self._inclusion[cluster][one.question].add(one.inclusion)
                self._strata[cluster] = one.stratum
                self._of_strata = max(self._of_strata, one.strata)
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
        probabilities = self._probabilities(question, cases, left)
        strata = np.array(self._named or self._strata, dtype=np.str_)
        return _Clusters(amounts, cases, left, probabilities, strata)

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
        strata = {self._strata[number] for number in np.flatnonzero(labelled).tolist()}
        if len(strata) < self._of_strata:
            return EMPTY_STRATUM
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
    _, strata = np.unique(clusters.strata[clusters.sample], return_inverse=True)
    correction = correct(clusters.judged, clusters.human, clusters.sample, clusters.inclusion, strata)
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
        moved: How far each labelled cluster moves the corrected value by its choice.
        unseen: The variance of errors of the judge that the sample is too small to show.
    """

    human: Estimates
    sampled: Estimates
    corrected: Estimates
    finite: Estimates
    bias: Estimates
    weight: float
    moved: Floats
    unseen: float


def correct(
    judged: ClusterTerms,
    human: ClusterTerms,
    sample: NDArray[np.intp],
    inclusion: Floats,
    strata: NDArray[np.intp] | None = None,
) -> Correction:
    """Correct the value of a judge by the labels of humans on a sample of the clusters.

    The leverage correction and the degrees of freedom are those of `ratio_estimates` (CR2, Satterthwaite;
    sample - 1 for clusters of equal size). A cluster also moves the value by its influence on the weight, as
    in the jackknife: without it, intervals are too narrow where the sample says little about the weight.
    Where the sample is a large part of all clusters, the covariance of judge(all) with the rest is part of
    the variance.

    Args:
        inclusion: The probability with which each of the k clusters came into the sample, up to a factor.
        strata: The number, from 0, of the stratum that each of the k clusters was drawn from; None for one.

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
    strata = np.zeros(len(sample), dtype=np.intp) if strata is None else strata
    chosen = float(left_out @ _centred(rest, strata) ** 2) + allowance * float(left_out.mean())
    # The choice within strata does not vary between them.
    between, by_humans_between = (
        float(left_out @ (moves**2 - _centred(moves, strata) ** 2)) for moves in (rest, own)
    )
    freedom = np.maximum(1, by_human.freedom - (strata.max() if len(strata) else 0))
    by_human = by_human._replace(variances=by_human.variances - by_humans_between, freedom=freedom)
    return Correction(
        human=by_human,
        sampled=ratio_estimates((weights * sampled.sums)[None], (weights * sampled.counts)[None]),
        corrected=_estimate(value + moved, float(influences @ influences) + allowance - between, by_human),
        finite=_estimate(value + moved, chosen, by_human),
        bias=_estimate(sample_value - value, float(difference @ difference) + unseen, by_human),
        weight=weight,
        moved=rest,
        unseen=allowance,
    )


def _centred(moved: Floats, strata: NDArray[np.intp]) -> Floats:
    """How far each cluster of a sample moves a value, compared with the others of its stratum.

    The sum of the squares is the variance of the value. A cluster alone in its stratum is compared with all.
    """
    number = np.bincount(strata)
    if len(number) < 2:
        return moved
    own = number[strata]
    means = np.bincount(strata, moved)[strata] / own
    # Of the whole sample, the moves are scaled to the variance already (as HC2).
    scale = np.sqrt(own / np.maximum(own - 1, 1) * (1 - 1 / len(moved)))
    return np.where(own > 1, (moved - means) * scale, moved)


def clusters_to_halve(correction: Correction, clusters: int) -> int | None:
    """How many more clusters humans would have to label, so that the corrected interval is half as wide.

    Args:
        clusters: The number of all clusters.

    Returns:
        The number; None if the interval stays wider even with all clusters labelled, or there is none.
    """
    labelled = int(correction.corrected.clusters[0])
    variance, of_choice = (float(one.variances[0]) for one in (correction.corrected, correction.finite))
    if not variance > 0 or labelled >= clusters:
        return None
    half = float(two_sided_quantile(np.array(max(1.0, labelled - 1)))) * math.sqrt(variance) / 2
    spread = np.array([of_choice / (1 / labelled - 1 / clusters)])
    needed = labels_needed(np.array([clusters]), np.array([labelled]), spread, variance - of_choice, half)
    return None if needed is None else int(needed[0]) - labelled


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
