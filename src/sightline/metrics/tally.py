"""From groups to values: every metric in every subset, with n, clusters and confidence interval."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sightline.metric_types import Metric, MetricValue, Unit
from sightline.metrics.cluster_ends import OpenClusters, Stretches
from sightline.metrics.cluster_pool import (
    NO_ROWS,
    CellTable,
    ClusterPool,
    Integers,
    PooledRows,
    cell_table,
)
from sightline.metrics.label_subsets import ALL, LabelSubsets
from sightline.metrics.metric_values import with_interval
from sightline.metrics.scenarios import (
    ALL_SCENARIOS,
    AS_JUDGED,
    DECIDED,
    IF_RIGHT,
    SCENARIOS,
    contains_undecided,
    scenarios,
)
from sightline.metrics.statistics import Interval, difference_intervals, ratio_intervals
from sightline.metrics.term_chunk import TermChunk
from sightline.scoring.majority import MAJORITY_OF
from sightline.types import Group

SCALES: dict[Unit, float] = {"percent": 100.0, "points": 100.0, "number": 1.0}
"""The value of a share of 1 in each unit."""

NO_ANSWER = "no probe was answered"
"""The reason for a value of probes that all failed: nothing was measured, so the value is not 0."""


def tally(
    groups: Iterable[Group], metrics: Sequence[Metric], stretches: Stretches | None = None
) -> list[MetricValue]:
    """Evaluate every metric over all groups and over each subset.

    One pass over `groups`, of which only numbers are kept: those of each cluster to which later groups may
    belong, and pooled ones of all others. A subset holds the groups, or terms, with one value of one label
    ('category=Attributes'). A metric whose terms all carry labels has the subsets of these labels; any other
    metric has those of the groups as well. A subset without any answer has no value, except for metrics that
    count failures.

    The 95 % CIs follow from the variance between clusters (`metrics/statistics.py`). `value_decided`
    and `value_if_right` exist for metrics judged `correct` once any outcome is undecided.

    Args:
        stretches: The stretches of the clusters of these groups, or of more (`cluster_ends.count_stretches`
            of `group.cluster or group.id`). None keeps the numbers of every cluster until the last group.

    Returns:
        The values in the order of the metrics; within one, 'all' first, then the labels in the order of their
        first appearance with sorted values. Shares are percentages 0-100; `n` is the sum of the counts. A
        metric without a unit has the value None, n 0 and the reason.

    Raises:
        ValueError: A term is not finite.
    """
    found = Tally(metrics, stretches)
    for group in groups:
        found.add(group)
    return found.values()


class Tally:
    """The amounts of each metric over a stream of groups, and what is known of the groups (see `tally`)."""

    def __init__(self, metrics: Sequence[Metric], stretches: Stretches | None = None) -> None:
        """Start without a group.

        Args:
            stretches: The stretches of the clusters; None keeps every cluster until the last group.
        """
        self.metrics = metrics
        self.has_undecided = False
        self.has_answers = False
        self.partners: set[str] = set()
        self.varying: set[str] = set()
        self.decided: set[str] = {"correct"}
        self.judges: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)
        self.label_subsets = LabelSubsets()
        self.group_subsets: set[int] = set()
        self.uses_group_labels: set[int] = set()
        self.answered: Integers = np.empty(0, dtype=np.int64)
        self._clusters = OpenClusters(stretches)
        self._pool = ClusterPool(self._clusters)
        self._chunk = TermChunk(metrics, self.label_subsets)

    def add(self, group: Group) -> None:
        """Add the terms of every metric over one group.

        Raises:
            ValueError: A term is not finite.
        """
        self._add_judges(group)
        labels = group.labels
        for outcome in group.outcomes:
            if outcome.labels is not labels and outcome.labels != labels:
                self.varying.update(outcome.labels.keys() - labels.keys())
        self.has_answers = self.has_answers or any(outcome.answered for outcome in group)
        self.partners.update(group.partners)
        has_undecided = contains_undecided(group)
        self.has_undecided = self.has_undecided or has_undecided
        same = ((ALL_SCENARIOS, group),)
        self._chunk.add(
            group,
            self._clusters.number(group.cluster or group.id),
            lambda metric: scenarios(group, metric) if has_undecided else same,
        )
        if self._chunk.is_full:
            self._end_chunk()

    def values(self) -> list[MetricValue]:
        """End the stream."""
        self._end_chunk()
        tables = _Tables(self, self._pool.pooled())
        # One metric at a time limits the memory of many subsets.
        return [value for column in range(len(self.metrics)) for value in tables.values(column)]

    def _end_chunk(self) -> None:
        found = self._chunk.rows()
        self._pool.add(found.rows)
        self.answered = np.unique(np.concatenate([self.answered, found.answered]))
        self.uses_group_labels |= found.uses_group_labels
        self.group_subsets |= self._chunk.group_subsets
        self._chunk = TermChunk(self.metrics, self.label_subsets)

    def _add_judges(self, group: Group) -> None:
        for setting, outcomes in ((None, group.outcomes), *group.partners.items()):
            self.judges["correct", setting].update([outcome.judge for outcome in outcomes if outcome.judge])
        for verdict in group.judgements:
            self.judges[verdict.question, None].add(verdict.judge)
            if verdict.verdict in ("right", "wrong"):
                self.decided.add(verdict.question)


class _Tables:
    """The amounts of all groups, and the subsets of labels in the order of tables."""

    def __init__(self, groups: Tally, pooled: PooledRows) -> None:
        self._groups = groups
        self._pooled = pooled
        self._answered = {
            cell // SCENARIOS
            for cell in groups.answered.tolist()
            if cell % SCENARIOS in (ALL_SCENARIOS, AS_JUDGED)
        }
        self._labels = list(groups.label_subsets.ordered())

    def values(self, column: int) -> Iterator[MetricValue]:
        """The values of a metric in all subsets that it has."""
        groups, metric = self._groups, self._groups.metrics[column]
        scale = SCALES[metric.unit]
        # Without a verdict, the cases that need no judge (equal texts) would stand for all of them.
        pooled = self._pooled if metric.judged is None or metric.judged in groups.decided else NO_ROWS
        subsets = self._subsets(column, pooled)
        cells = np.array([subset * len(groups.metrics) + column for subset, _ in subsets], dtype=np.int64)
        table = cell_table(pooled, cells, AS_JUDGED)
        clusters = np.where(table.counts > 0, table.pooled.clusters, 0).sum(axis=1)
        reason = _reason(metric, has_partner=metric.needs in groups.partners)
        unknown: list[float | None] = [None] * len(subsets)
        decided, if_right = (
            _values(cell_table(pooled, cells, scenario), metric)
            if groups.has_undecided and metric.judged == "correct"
            else unknown
            for scenario in (DECIDED, IF_RIGHT)
        )
        rows = zip(subsets, cells, _values(table, metric), _intervals(table, metric), strict=True)
        for row, ((_, name), cell, value, interval) in enumerate(rows):
            if value is not None and not (metric.counts_failures or int(cell) in self._answered):
                yield MetricValue(metric.name, name, None, 0, 0, unit=metric.unit, reason=NO_ANSWER)
                continue
            n = float(table.counts[row].sum())
            metric_value = MetricValue(
                metric=metric.name,
                subset=name,
                value=value,
                n=int(n) if n.is_integer() else n,
                clusters=int(clusters[row]),
                unit=metric.unit,
                reason=(reason if groups.has_answers else NO_ANSWER) if value is None else None,
                value_decided=decided[row],
                value_if_right=if_right[row],
                judge=self._judges(metric),
            )
            yield with_interval(metric_value, interval, scale)

    def _subsets(self, column: int, pooled: PooledRows) -> list[tuple[int, str]]:
        """The subsets of a metric with their names: those of its terms and, unless all terms have labels of
        their own, those of the groups."""
        groups, metric = self._groups, self._groups.metrics[column]
        used, columns = np.divmod(np.unique(pooled.cells // SCENARIOS), len(groups.metrics))
        present = set(used[columns == column].tolist())
        if column in groups.uses_group_labels or not present:
            present |= groups.group_subsets
        return [(ALL, "all")] * (metric.labels != "varying") + [
            (number, f"{name}={value}")
            for number, name, value in self._labels
            if number in present
            and (metric.labels == "any" or (name in groups.varying) == (metric.labels == "varying"))
        ]

    def _judges(self, metric: Metric) -> str | None:
        """The names of the judges whose verdicts a metric uses."""
        if metric.judged is None:
            return None
        judges = self._groups.judges
        names = judges[metric.judged, None] | judges[metric.judged, metric.needs]
        return ", ".join(sorted(_without_parts(names))) or None


def _values(table: CellTable, metric: Metric) -> list[float | None]:
    """The metric in each subset; None without a count."""
    totals = zip(table.sums.sum(axis=1).tolist(), table.counts.sum(axis=1).tolist(), strict=True)
    return [SCALES[metric.unit] * total / n if n else None for total, n in totals]


def _intervals(table: CellTable, metric: Metric) -> list[Interval | str]:
    """The interval in each subset, before scaling; points are differences."""
    low, high = (None if bound is None else bound / SCALES[metric.unit] for bound in metric.range)
    find = difference_intervals if metric.unit == "points" else ratio_intervals
    ranges = [(low, high)] * len(table.sums)
    return find(table.sums, table.counts, ranges, pooled=table.pooled, graded=metric.graded)


def _reason(metric: Metric, *, has_partner: bool) -> str:
    """The reason why a metric has no value."""
    if metric.needs and not has_partner:
        how = f" ({metric.how_to_run})" if metric.how_to_run else ""
        return f"needs a run of setting '{metric.needs}' with the same model and the same options{how}"
    return metric.absent


def _without_parts(names: set[str]) -> set[str]:
    """Names of judges without those of some humans of a larger group: where one skipped an answer, the others
    are its majority."""
    members = {name: frozenset(name.removeprefix(MAJORITY_OF).split(", ")) for name in names}
    groups = [of for name, of in members.items() if name.startswith(MAJORITY_OF)]
    return {name for name, of in members.items() if not any(of < group for group in groups)}
