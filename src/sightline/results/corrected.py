"""Metrics of judges that read all answers, corrected by humans who labelled a sample of the clusters."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.judging.groups import AnswerLookup
from sightline.judging.judges import HumanJudge, Judge
from sightline.judging.panel import JudgedGroup, JudgePanel
from sightline.metric_types import CorrectedValue, Metric, MetricValue, Range, difference_range
from sightline.metrics.corrected import ClusterTerms, Correction, clusters_to_halve, correct
from sightline.metrics.metric_values import with_interval
from sightline.metrics.statistics import Estimates, Floats, intervals
from sightline.metrics.tally import SCALES
from sightline.types import Group, Outcome

NOT_LABELLED = "humans labelled no whole cluster"
MIXED_INCLUSION = "some verdicts of humans state the probability of their cluster, and others do not"
CONTRADICTORY = "verdicts of humans on one cluster state different probabilities"

Counts = NDArray[np.int64]

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
    by_humans = replace(alone, judges=humans, decide="majority")
    sample = _Sample([metric for metric in metrics if metric.labels != "varying"])
    both = zip(alone.judge(groups(), replies), by_humans.judge(groups(), replies), strict=True)
    for judged, labelled in both:
        if judged.group.sent:
            sample.add(judged.group, labelled)
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
    judge. `judged` has the terms of all n clusters, `human` those of the k at the positions `sample`.
    `inclusion` has the probabilities of these, or says why they are unknown. `labelled` clusters have labels
    for every case, `partly` labelled ones for some.
    """

    def __init__(self, amounts: Floats, cases: Counts, left: Counts, inclusion: Floats | str) -> None:
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
        self._inclusion: list[set[float | None]] = []

    def add(self, judged: Group, labelled: JudgedGroup) -> None:
        """Add a group as the judge decides it, and as the humans do."""
        width = len(self.metrics)
        cluster = self._numbers.setdefault(judged.cluster or judged.id, len(self._numbers))
        if cluster == len(self._inclusion):
            self._inclusion.append(set())
            self._terms.extend([0.0] * (_COLUMNS * width))
            self._cases.extend([0] * width)
            self._open.extend([0] * width)
        self._inclusion[cluster].update(one.inclusion for one in labelled.verdicts if one.kind == "human")
        for column, metric in enumerate(self.metrics):
            cell = cluster * width + column
            cases, left = _cases(metric, judged, labelled.group)
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
        """The clusters of a metric."""
        cases, left = self._counts(column)
        shape = len(self._numbers), len(self.metrics), _COLUMNS
        amounts = np.frombuffer(self._terms).reshape(shape)[:, column]
        return _Clusters(amounts, cases, left, self._probabilities(cases, left))

    def _counts(self, column: int) -> tuple[Counts, Counts]:
        shape = len(self._numbers), len(self.metrics)
        cases, left = (np.frombuffer(one, dtype=np.int64) for one in (self._cases, self._open))
        return cases.reshape(shape)[:, column], left.reshape(shape)[:, column]

    def _probabilities(self, cases: Counts, left: Counts) -> Floats | str:
        """The probability with which each cluster is labelled; a cluster without a case needs no human."""
        labelled = (left == 0) & (cases > 0)
        found = [self._inclusion[number] for number in np.flatnonzero(labelled).tolist()]
        if any(len(one) > 1 for one in found):
            return CONTRADICTORY
        stated = [next(iter(one), None) for one in found]
        known = [one for one in stated if one is not None]
        if known and len(known) < len(stated):
            return MIXED_INCLUSION
        probabilities = np.ones(len(cases))
        probabilities[labelled] = known or labelled.sum() / max(1, int((cases > 0).sum()))
        return probabilities


def _cases(metric: Metric, judged: Group, labelled: Group) -> tuple[int, int]:
    """How many cases of a metric a judge decided in a group, and how many of them humans left open."""
    if metric.judged != "correct":
        asked, given = (
            {frozenset(one.targets) for one in group.judgements if one.question == metric.judged}
            for group in (judged, labelled)
        )
        return len(asked), len(asked - given)
    pairs = zip(_outcomes(judged, metric), _outcomes(labelled, metric), strict=True)
    open_cases = [not other.judge for one, other in pairs if one.judge]
    return len(open_cases), sum(open_cases)


def _outcomes(group: Group, metric: Metric) -> tuple[Outcome, ...]:
    """The outcomes that a metric reads: those of the group and of the setting that it needs."""
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
    sampled = replace(found.human, judge=found.judge)
    return replace(
        found,
        human=human,
        sampled=measured(sampled, correction.sampled),
        corrected=corrected,
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
    """By how much the corrected interval is narrower, in percent."""
    if human.low is None or human.high is None or corrected.low is None or corrected.high is None:
        return None
    width = human.high - human.low
    # Equal widths differ by rounding errors, which would be shown as -0.0.
    return round(100 * (1 - (corrected.high - corrected.low) / width), 9) + 0.0 if width else None
