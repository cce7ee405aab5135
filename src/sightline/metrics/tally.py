"""From groups to values: every metric in every subset, with n, clusters and confidence interval."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.metric_types import Metric, MetricValue, Term, Unit
from sightline.metrics.metric_values import with_interval
from sightline.metrics.scenarios import (
    ALL_SCENARIOS,
    AS_JUDGED,
    DECIDED,
    IF_RIGHT,
    contains_undecided,
    scenarios,
)
from sightline.metrics.statistics import Floats, Interval, difference_intervals, ratio_intervals
from sightline.plugins import wrong_return
from sightline.types import (
    Group,
    Labels,
    Outcome,
)

SCALES: dict[Unit, float] = {"percent": 100.0, "points": 100.0, "number": 1.0}
"""The value of a share of 1 in each unit."""

NO_ANSWER = "no probe was answered"
"""The reason for a value of probes that all failed: nothing was measured, so the value is not 0."""

MOST_VALUES = 100
"""A label with more values than this (a file name, say) has no subsets: the table would be too long."""


def tally(groups: Iterable[Group], metrics: Sequence[Metric]) -> list[MetricValue]:
    """Evaluate every metric over all groups and over each subset.

    One pass over `groups`, of which only numbers are kept. A subset holds the groups, or terms, with one
    value of one label ('category=Attributes'). A metric whose terms all carry labels has the subsets of these
    labels; any other metric has those of the groups as well. A group without a cluster is its own cluster.
    A subset without any answer has no value, except for metrics that count failures.

    The 95 % CIs follow from the variance between clusters (`metrics/statistics.py`). `value_decided`
    and `value_if_right` exist for metrics judged `correct` once any outcome is undecided.

    Args:
        groups: The judged groups.
        metrics: The metrics.

    Returns:
        The values in the order of the metrics; within one, 'all' first, then the labels in the order of their
        first appearance with sorted values. Shares are percentages 0-100; `n` is the sum of the counts. A
        metric without a unit has the value None, n 0 and the reason.

    Raises:
        ValueError: A term is not finite.
    """
    accumulator = _Accumulator(metrics)
    for group in groups:
        accumulator.add(group)
    for metric_rows in accumulator.all_rows:
        # Without a verdict, the cases that need no judge (equal texts) would stand for all of them.
        if metric_rows.metric.judged is not None and metric_rows.metric.judged not in accumulator.decided:
            metric_rows.clear()
    subsets = accumulator.label_sets.subsets()
    # One metric at a time limits the memory of a large run.
    return [value for rows in accumulator.all_rows for value in _values(accumulator, rows, subsets)]


class _Subsets(NamedTuple):
    """The names of all subsets, "all" first, and the label sets that they hold: shape (label sets,
    subsets)."""

    names: list[str]
    members: NDArray[np.bool_]


class _Table(NamedTuple):
    """A metric in one scenario: its subsets, whether each holds an answer, and their sums and counts.

    The sums and counts have the shape (subsets, clusters).
    """

    chosen: NDArray[np.intp]
    answered: NDArray[np.bool_]
    sums: Floats
    counts: Floats

    def values(self, metric: Metric) -> list[float | None]:
        """The metric in each subset; None without a count."""
        scale = SCALES[metric.unit]
        totals = zip(self.sums.sum(axis=1).tolist(), self.counts.sum(axis=1).tolist(), strict=True)
        return [scale * total / n if n else None for total, n in totals]

    def intervals(self, metric: Metric) -> list[Interval | str]:
        """The interval in each subset, before scaling; points are differences."""
        low, high = (None if bound is None else bound / SCALES[metric.unit] for bound in metric.range)
        find = difference_intervals if metric.unit == "points" else ratio_intervals
        return find(self.sums, self.counts, [(low, high)] * len(self.chosen), graded=metric.graded)


class _LabelSets:
    """The distinct sets of labels that groups and terms carry, numbered."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[bool, tuple[tuple[str, str | tuple[str, ...]], ...]], int] = {}

    def number(self, labels: Labels, overall: bool = True) -> int:
        """The number of these labels, for terms that count overall or under their labels alone."""
        return self._numbers.setdefault((overall, tuple(labels.items())), len(self._numbers))

    def subsets(self) -> _Subsets:
        """The subset of each value of each label; a label set belongs to every value that it holds.

        A label with more than MOST_VALUES values identifies groups rather than sorting them: it has no
        subsets.
        """
        pairs_by_number = [
            [(name, value) for name, values in labels for value in _each(values)]
            for _, labels in self._numbers
        ]
        every: set[tuple[str, str]] = set().union(*pairs_by_number)
        sizes = Counter(name for name, _ in every)
        names = [
            name
            for name in dict.fromkeys(name for pairs in pairs_by_number for name, _ in pairs)
            if sizes[name] <= MOST_VALUES
        ]
        present = (pair for pair in every if pair[0] in names)
        ordered = sorted(present, key=lambda pair: (names.index(pair[0]), pair[1]))
        columns = {pair: column for column, pair in enumerate(ordered, start=1)}
        members = np.zeros((len(pairs_by_number), 1 + len(ordered)), dtype=bool)
        for number, ((overall, _), pairs) in enumerate(zip(self._numbers, pairs_by_number, strict=True)):
            members[number, 0] = overall
            members[number, [columns[pair] for pair in pairs if pair in columns]] = True
        return _Subsets(["all", *(f"{name}={value}" for name, value in ordered)], members)


class _MetricRows:
    """The rows of one metric by column; `answered` says whether the answers of a row exist."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.clusters, self.label_sets, self.scenarios = array("q"), array("q"), array("q")
        self.sums, self.counts = array("d"), array("d")
        self.answered = array("b")
        self.uses_group_labels = False
        self.has_partner = False

    def add(self, group: Group, cluster: int, label_set: int, scenario: int, label_sets: _LabelSets) -> None:
        """Add the terms of the metric over one group."""
        complete = all(outcome.answered for outcome in group)
        for term in self.metric.terms(group):
            if not isinstance(term, Term):
                raise wrong_return(self.metric.terms, term, Term)
            self.answered.append(complete or _is_answered(group, term))
            if term.labels is None:
                self.uses_group_labels = True
                self.label_sets.append(label_set)
            else:
                self.label_sets.append(label_sets.number(term.labels, term.overall))
            if not (math.isfinite(term.sum) and math.isfinite(term.count) and term.count >= 0):
                raise ValueError(
                    f"metric {self.metric.name}, group {group.id}: the term {term} is not finite"
                )
            self.clusters.append(cluster)
            self.scenarios.append(scenario)
            self.sums.append(term.sum)
            self.counts.append(term.count)

    def clear(self) -> None:
        """Remove every term."""
        for column in (self.clusters, self.label_sets, self.scenarios, self.sums, self.counts, self.answered):
            del column[:]

    @property
    def reason(self) -> str:
        """The reason why the metric has no value."""
        if self.metric.needs and not self.has_partner:
            how = f" ({self.metric.how_to_run})" if self.metric.how_to_run else ""
            needed = f"needs a run of setting '{self.metric.needs}'"
            return f"{needed} with the same model and the same options{how}"
        return self.metric.absent


class _Accumulator:
    """The rows of each metric over a stream of groups, and the numbers of clusters and label sets."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.all_rows = [_MetricRows(metric) for metric in metrics]
        self.label_sets = _LabelSets()
        self.has_undecided = False
        self.has_answers = False
        self._varying: set[str] = set()
        self.decided: set[str] = {"correct"}
        self._clusters: dict[str, int] = {}
        self._group_label_sets: set[int] = set()
        self._judges: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return len(self._clusters)

    def add(self, group: Group) -> None:
        """Add the terms of every metric over one group."""
        cluster = self._clusters.setdefault(group.cluster or group.id, len(self._clusters))
        label_set = self.label_sets.number(group.labels)
        self._group_label_sets.add(label_set)
        self._add_judges(group)
        shared = group.labels
        self._varying.update(name for one in group.outcomes for name in one.labels.keys() - shared.keys())
        self.has_answers = self.has_answers or any(outcome.answered for outcome in group)
        has_undecided = contains_undecided(group)
        self.has_undecided = self.has_undecided or has_undecided
        for metric_rows in self.all_rows:
            if metric_rows.metric.needs in group.partners:
                metric_rows.has_partner = True
            groups = scenarios(group, metric_rows.metric) if has_undecided else ((ALL_SCENARIOS, group),)
            for scenario, scenario_group in groups:
                metric_rows.add(scenario_group, cluster, label_set, scenario, self.label_sets)

    def table(self, metric_rows: _MetricRows, subsets: _Subsets, scenario: int) -> _Table:
        """The sums and counts of a metric in one scenario."""
        label_sets = set(metric_rows.label_sets)
        if metric_rows.uses_group_labels or not label_sets:
            label_sets |= self._group_label_sets
        chosen = np.union1d([0], np.flatnonzero(subsets.members[sorted(label_sets)].any(axis=0)))
        kept = [self._has_subset(metric_rows.metric, subsets.names[column]) for column in chosen]
        chosen = chosen[np.array(kept, dtype=bool)]
        in_scenario = np.isin(np.array(metric_rows.scenarios), (ALL_SCENARIOS, scenario))
        rows, columns = np.nonzero(subsets.members[np.array(metric_rows.label_sets)[in_scenario]][:, chosen])
        shape = len(chosen), len(self._clusters)
        cells = columns * len(self._clusters) + np.array(metric_rows.clusters)[in_scenario][rows]

        def gather(amounts: Sequence[float]) -> Floats:
            flat = np.bincount(cells, np.array(amounts)[in_scenario][rows], shape[0] * shape[1])
            return flat.reshape(shape).astype(np.float64, copy=False)

        answered = np.array(metric_rows.answered, dtype=bool)[in_scenario][rows]
        hold_answers = np.bincount(columns[answered], minlength=len(chosen)) > 0
        return _Table(chosen, hold_answers, gather(metric_rows.sums), gather(metric_rows.counts))

    def _has_subset(self, metric: Metric, subset: str) -> bool:
        """Whether a metric has a value for a subset, by whether its label varies within a group."""
        if metric.labels == "any" or (subset == "all" and metric.labels == "shared"):
            return True
        return (subset.partition("=")[0] in self._varying) == (metric.labels == "varying")

    def judges(self, metric: Metric) -> str | None:
        """The names of the judges whose verdicts a metric uses."""
        if metric.judged is None:
            return None
        names = self._judges[metric.judged, None] | self._judges[metric.judged, metric.needs]
        return ", ".join(sorted(names)) or None

    def _add_judges(self, group: Group) -> None:
        for setting, outcomes in ((None, group.outcomes), *group.partners.items()):
            self._judges["correct", setting].update([outcome.judge for outcome in outcomes if outcome.judge])
        for verdict in group.judgements:
            self._judges[verdict.question, None].add(verdict.judge)
            if verdict.verdict in ("right", "wrong"):
                self.decided.add(verdict.question)


def _values(accumulator: _Accumulator, metric_rows: _MetricRows, subsets: _Subsets) -> Iterator[MetricValue]:
    """The values of a metric in all subsets that it has."""
    table = accumulator.table(metric_rows, subsets, AS_JUDGED)
    metric, judge = metric_rows.metric, accumulator.judges(metric_rows.metric)
    scale = SCALES[metric.unit]
    reason = metric_rows.reason if accumulator.has_answers else NO_ANSWER
    unknown: list[float | None] = [None] * len(table.chosen)
    decided, if_right = (
        accumulator.table(metric_rows, subsets, scenario).values(metric)
        if accumulator.has_undecided and metric.judged == "correct"
        else unknown
        for scenario in (DECIDED, IF_RIGHT)
    )
    intervals = table.intervals(metric)
    for row, value in enumerate(table.values(metric)):
        n, subset = float(table.counts[row].sum()), subsets.names[table.chosen[row]]
        if value is not None and not (metric.counts_failures or table.answered[row]):
            yield MetricValue(metric.name, subset, None, 0, 0, unit=metric.unit, reason=NO_ANSWER)
            continue
        metric_value = MetricValue(
            metric=metric.name,
            subset=subset,
            value=value,
            n=int(n) if n.is_integer() else n,
            clusters=int(np.count_nonzero(table.counts[row])),
            unit=metric.unit,
            reason=reason if value is None else None,
            value_decided=decided[row],
            value_if_right=if_right[row],
            judge=judge,
        )
        yield with_interval(metric_value, intervals[row], scale)


def _is_answered(group: Group, term: Term) -> bool:
    """Whether the answers that a term is about exist: those with its labels, otherwise those of the group."""
    labels = term.labels or {}
    about = [outcome for outcome in group if all(_has_label(outcome, *label) for label in labels.items())]
    return any(outcome.answered for outcome in about or group)


def _has_label(outcome: Outcome, name: str, values: str | tuple[str, ...]) -> bool:
    return set(_each(values)) <= set(_each(outcome.labels.get(name, ())))


def _each(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values
