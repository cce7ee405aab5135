"""From groups to values: every metric in every subset, with n, clusters and confidence interval."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from sightline.metrics.agreement import MAJORITY_OF
from sightline.metrics.statistics import (
    Floats,
    Interval,
    Pooled,
    difference_intervals,
    ratio_intervals,
    with_interval,
)
from sightline.plugins import wrong_return
from sightline.types import Group, Labels, Metric, MetricValue, Outcome, Term, Unit, VerdictName, subset_name

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
        stretches: The stretches of the clusters of these groups, or of more (`count_stretches`
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
        """Start without a group. `stretches`: the stretches of the clusters; None keeps every cluster until
        the last group.
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
        """Add the terms of every metric over one group. Raises ValueError: a term is not finite."""
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
            if not verdict.judge:
                continue  # equal answers, or a tie
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
            (number, subset_name(name, value))
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


# -- The subsets of metrics: one for each value of each label that sorts groups

ALL = 0
"""The number of the subset of all terms."""

MOST_VALUES = 100
"""A label with more values than this (a file name, say) has no subsets: the table would be too long."""


class LabelSubsets:
    """The values of labels that groups and terms carry, numbered in the order of their appearance.

    A label with more than MOST_VALUES values identifies groups rather than sorting them: its values are
    forgotten.
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[str, int] | None] = {}
        self._size = ALL + 1

    def numbers(self, labels: Labels) -> list[int]:
        """The subsets of a set of labels: those of each value of each label."""
        return [
            number
            for name, values in labels.items()
            for value in dict.fromkeys(each_value(values))
            if (number := self._number(name, value)) is not None
        ]

    def ordered(self) -> Iterator[tuple[int, str, str]]:
        """The subsets in the order of tables: labels by their first appearance, then by value.

        Yields:
            The number of the subset, the name of its label, and the value.
        """
        for name, values in self._values.items():
            for value in sorted(values or ()):
                yield (values or {})[value], name, value

    def _number(self, name: str, value: str) -> int | None:
        """The number of a subset; None if the label has too many values."""
        values = self._values.setdefault(name, {})
        if values is None:
            return None
        if value not in values:
            if len(values) == MOST_VALUES:
                self._values[name] = None
                return None
            values[value] = self._size
            self._size += 1
        return values[value]


def each_value(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


# -- The terms of some groups by column, before they are added up

TERMS_PER_CHUNK = 1 << 14
"""The number of terms from which a chunk is full."""


Variants = Iterable[tuple[int, Group]]
"""The scenarios of a metric, and a group in each."""


class ChunkRows(NamedTuple):
    """The terms of a chunk in each of their subsets."""

    rows: ClusterRows
    answered: Integers
    uses_group_labels: set[int]


class TermChunk:
    """The terms of some groups."""

    def __init__(self, metrics: Sequence[Metric], subsets: LabelSubsets) -> None:
        self.group_subsets: set[int] = set()
        self._metrics = metrics
        self._subsets = subsets
        self._label_sets: dict[tuple[tuple[str, str | tuple[str, ...]], ...], int] = {}
        self._members: list[list[int]] = []
        # One entry for each group, for each of its metrics and scenarios, and for each term.
        self._clusters, self._terms_of_group = array("q"), array("q")
        self._kinds, self._terms_of_kind = array("q"), array("q")
        self._sums, self._counts, self._sets = array("d"), array("d"), array("q")
        self._overall, self._answered = bytearray(), bytearray()

    def add(self, group: Group, cluster: int, variants: Callable[[Metric], Variants]) -> None:
        """Add the terms of every metric over a group.

        Args:
            cluster: The number of its cluster.

        Raises:
            ValueError: A term is not finite.
        """
        terms: list[Term] = []
        for column, metric in enumerate(self._metrics):
            for scenario, variant in variants(metric):
                before = len(terms)
                terms.extend(metric.terms(variant))
                if added := len(terms) - before:
                    self._kinds.append(column * SCENARIOS + scenario)
                    self._terms_of_kind.append(added)
                    if not group.complete:
                        self._answered += bytes(
                            isinstance(term, Term) and _is_answered(variant, term) for term in terms[before:]
                        )
        if group.complete:
            self._answered += b"\1" * len(terms)
        self._add_columns(group, terms)
        self._clusters.append(cluster)
        self._terms_of_group.append(len(terms))

    def _add_columns(self, group: Group, terms: Sequence[Term]) -> None:
        if not set(map(type, terms)) <= {Term}:
            self._refuse(group, terms)
        sums, counts = [term.sum for term in terms], [term.count for term in terms]
        if not isfinite(sum(sums) + sum(counts)) or min(counts, default=0) < 0:
            self._refuse(group, terms)
        # The terms of a group share the labels of its outcomes. As they all exist, so do these identities.
        own = self._number(group.labels)
        self.group_subsets.update(self._members[own])
        labels = {id(term.labels): term.labels for term in terms}
        # Below 0 if the term counts under the labels of its group.
        numbers = {key: -1 - own if one is None else self._number(one) for key, one in labels.items()}
        self._sets.extend([numbers[id(term.labels)] for term in terms])
        self._overall += bytes([term.overall for term in terms])
        self._sums.extend(sums)
        self._counts.extend(counts)

    def _refuse(self, group: Group, terms: Sequence[Term]) -> None:
        """Raise an error if a term is none or is not finite; the total of finite terms may be too large."""
        for metric, term in zip(self._metrics_of_last_terms(len(terms)), terms, strict=True):
            if not isinstance(term, Term):
                raise wrong_return(metric.terms, term, Term)
            if not (-inf < term.sum < inf and 0 <= term.count < inf):
                raise ValueError(f"metric {metric.name}, group {group.id}: the term {term} is not finite")

    def _metrics_of_last_terms(self, number: int) -> list[Metric]:
        pairs = zip(self._kinds, self._terms_of_kind, strict=True)
        every = [self._metrics[kind // SCENARIOS] for kind, length in pairs for _ in range(length)]
        return every[len(every) - number :]

    @property
    def is_full(self) -> bool:
        return len(self._sums) >= TERMS_PER_CHUNK

    def rows(self) -> ChunkRows:
        """The terms in each of their subsets."""
        sizes = np.array([len(numbers) for numbers in self._members], dtype=np.int64)
        members = np.array([number for numbers in self._members for number in numbers], dtype=np.int64)
        sets = np.array(self._sets, dtype=np.int64)
        is_own = sets < 0
        sets = np.where(is_own, -1 - sets, sets)
        kinds = np.repeat(
            np.array(self._kinds, dtype=np.int64), np.array(self._terms_of_kind, dtype=np.int64)
        )
        clusters = np.repeat(
            np.array(self._clusters, dtype=np.int64), np.array(self._terms_of_group, dtype=np.int64)
        )
        copies = sizes[sets]
        labelled = np.repeat(np.arange(len(sets)), copies)
        within = np.arange(len(labelled)) - np.repeat(np.cumsum(copies) - copies, copies)
        subsets = members[(np.cumsum(sizes) - sizes)[sets][labelled] + within]
        overall = np.flatnonzero(np.array(self._overall))
        terms = np.concatenate([overall, labelled])
        subsets = np.concatenate([np.full(len(overall), ALL, dtype=np.int64), subsets])
        cells = subsets * (len(self._metrics) * SCENARIOS) + kinds[terms]
        amounts = np.array(self._sums)[terms], np.array(self._counts)[terms]
        return ChunkRows(
            ClusterRows(cells, clusters[terms], *amounts),
            np.unique(cells[np.array(self._answered, dtype=np.bool_)[terms]]),
            set(np.unique(kinds[is_own] // SCENARIOS).tolist()),
        )

    def _number(self, labels: Labels) -> int:
        key = tuple(labels.items())
        number = self._label_sets.get(key)
        if number is None:
            number = self._label_sets[key] = len(self._members)
            self._members.append(self._subsets.numbers(labels))
        return number


def _is_answered(group: Group, term: Term) -> bool:
    """Whether the answers that a term is about exist: those with its labels, otherwise those of the group."""
    labels = term.labels or {}
    about = [outcome for outcome in group if all(_has_label(outcome, *label) for label in labels.items())]
    return any(outcome.answered for outcome in about or group)


def _has_label(outcome: Outcome, name: str, values: str | tuple[str, ...]) -> bool:
    return set(each_value(values)) <= set(each_value(outcome.labels.get(name, ())))


# -- When a cluster is complete: the groups of a cluster mostly follow each other, but not always

Stretches = Mapping[int, int]
"""The checksum of a cluster -> its number of stretches, for the clusters with several.

A stretch is a series of neighbours of one cluster.
"""


def count_stretches(clusters: Iterable[str]) -> Stretches:
    """Find the clusters that appear again after others.

    It keeps four bytes per stretch while it counts. Clusters that share a checksum are counted together: the
    first of them is complete when the last one is.

    >>> count_stretches("aabcc")
    {}
    >>> list(count_stretches("aabcca").values())
    [2]
    """
    checksums, last = array("I"), None
    for cluster in clusters:
        if cluster != last:
            checksums.append(_checksum(cluster))
            last = cluster
    if not checksums:
        return {}
    ordered = np.frombuffer(checksums, dtype=np.uint32)
    ordered.sort()
    repeated, further = np.unique(ordered[1:][ordered[1:] == ordered[:-1]], return_counts=True)
    return dict(zip(repeated.tolist(), (further + 1).tolist(), strict=True))


class OpenClusters:
    """The clusters of a stream of groups that later groups may belong to, by number."""

    def __init__(self, stretches: Stretches | None) -> None:
        """Start before the first group.

        Args:
            stretches: The stretches of the clusters that appear again. Groups may be left out of the stream
                since they were counted. None if they were not counted: every cluster then stays open.
        """
        self._left = None if stretches is None else dict(stretches)
        self._numbers: dict[str, int] = {}
        self._entered = 0
        self._last: str | None = None

    def number(self, cluster: str) -> int:
        """The number of the cluster of the next group."""
        if cluster == self._last:
            return self._numbers[cluster]
        self._last = cluster
        if self._left and (checksum := _checksum(cluster)) in self._left:
            self._left[checksum] -= 1
        if cluster not in self._numbers:
            self._numbers[cluster] = self._entered
            self._entered += 1
        return self._numbers[cluster]

    def close(self) -> list[int]:
        """Forget the clusters that are complete.

        Returns:
            The numbers of the clusters that are still open, in ascending order.
        """
        left = self._left
        if left is not None:
            self._numbers = {
                cluster: number
                for cluster, number in self._numbers.items()
                if cluster == self._last or (left and left.get(_checksum(cluster), 0) > 0)
            }
        return list(self._numbers.values())


def _checksum(cluster: str) -> int:
    return crc32(cluster.encode("utf-8", "surrogatepass"))


# -- Sums of clusters in many cells, pooled as soon as a cluster is complete: memory holds open clusters
#    only

Integers = NDArray[np.int64]

Column = NDArray[Any]
"""A column of numbers: integers in cells and clusters (of `ClusterRows`), floats in all others."""

FEWEST_ROWS = 1 << 15
"""The number of rows that are kept before clusters are pooled."""


class ClusterRows(NamedTuple):
    """Amounts of clusters: arrays of shape (rows,).

    A cell is a number of the caller times SCENARIOS plus the number of a scenario.
    """

    cells: Column
    clusters: Column
    sums: Column
    counts: Column


class PooledRows(NamedTuple):
    """Complete clusters by cell, units and sign of their sums: arrays of shape (rows,)."""

    cells: Column
    units: Column
    clusters: Column
    sums: Column
    deviations: Column


Rows = TypeVar("Rows", ClusterRows, PooledRows)

NO_ROWS = PooledRows(np.empty(0, dtype=np.int64), *(np.empty(0) for _ in range(4)))


class CellTable(NamedTuple):
    """The sums and counts of several cells, shape (cells, columns), and the clusters of each column."""

    sums: Floats
    counts: Floats
    pooled: Pooled


class ClusterPool:
    """The amounts of all clusters of a stream."""

    def __init__(self, open_clusters: OpenClusters) -> None:
        self._open_clusters = open_clusters
        self._rows: list[ClusterRows] = []
        self._size, self._limit = 0, FEWEST_ROWS
        self._pooled = NO_ROWS

    def add(self, rows: ClusterRows) -> None:
        self._rows.append(rows)
        self._size += len(rows.cells)
        if self._size > self._limit:
            self._pool(self._open_clusters.close())
            # Rows of open clusters are read again; waiting for as many others limits how often.
            self._limit = max(FEWEST_ROWS, 2 * self._size)

    def pooled(self) -> PooledRows:
        """End the stream."""
        self._pool([])
        return self._pooled

    def _pool(self, open_clusters: list[int]) -> None:
        if not self._rows:
            return
        rows = _joined(self._rows)
        is_open = np.isin(rows.clusters, open_clusters)
        held, complete = _summed(_chosen(rows, is_open)), _summed(_each_scenario(_chosen(rows, ~is_open)))
        ones, zeros = np.ones(len(complete.cells)), np.zeros(len(complete.cells))
        new = PooledRows(complete.cells, complete.counts, ones, complete.sums, zeros)
        self._pooled = _merged(_joined([self._pooled, new]))
        self._rows, self._size = [held], len(held.cells)


def cell_table(pooled: PooledRows, cells: Integers, scenario: int) -> CellTable:
    """The clusters of some cells in one scenario, in the form that `statistics` takes."""
    order = np.argsort(cells)
    own, scenarios = np.divmod(pooled.cells, SCENARIOS)
    chosen = np.isin(own, cells) & np.isin(scenarios, (ALL_SCENARIOS, scenario))
    _, units, clusters, sums, deviations = _chosen(pooled, chosen)
    places = order[np.searchsorted(cells, own[chosen], sorter=order)]
    classes = np.stack([scenarios[chosen], units, np.sign(sums)], axis=1)
    distinct, columns = np.unique(classes, axis=0, return_inverse=True)

    def gather(amounts: Floats) -> Floats:
        table = np.zeros((len(cells), len(distinct)))
        table[places, columns.ravel()] = amounts
        return table

    return CellTable(gather(sums), gather(units * clusters), Pooled(gather(clusters), gather(deviations)))


def _chosen(rows: Rows, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Rows:
    """Some of the rows: those of a mask, or of positions."""
    return type(rows)(*(column[chosen] for column in rows))


def _joined(parts: Sequence[Rows]) -> Rows:
    return type(parts[0])(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _each_scenario(rows: ClusterRows) -> ClusterRows:
    """The amounts of clusters that differ between scenarios, in each of them; other rows stay as they are."""
    scenarios = rows.cells % SCENARIOS
    differing = np.unique(rows.clusters[scenarios != ALL_SCENARIOS])
    if not len(differing):
        return rows
    copies = np.where((scenarios == ALL_SCENARIOS) & np.isin(rows.clusters, differing), SCENARIOS - 1, 1)
    places = np.repeat(np.arange(len(copies)), copies)
    copied = copies[places] > 1
    found = _chosen(rows, places)
    numbers = np.tile(np.arange(ALL_SCENARIOS + 1, SCENARIOS), np.count_nonzero(copies > 1))
    found.cells[copied] += numbers
    return found


def _summed(rows: ClusterRows) -> ClusterRows:
    if not len(rows.cells):
        return rows
    keys = rows.clusters * (int(rows.cells.max()) + 1) + rows.cells
    order = np.argsort(keys, kind="stable")
    starts = _starts(keys[order])
    first = order[starts]
    sums, counts = (np.add.reduceat(column[order], starts) for column in (rows.sums, rows.counts))
    return ClusterRows(rows.cells[first], rows.clusters[first], sums, counts)


def _merged(rows: PooledRows) -> PooledRows:
    """One row for each cell, number of units and sign.

    The deviations from a common mean are those from each row's mean, plus those of the means.
    """
    if not len(rows.cells):
        return rows
    signs = np.sign(rows.sums)
    order = np.lexsort((signs, rows.units, rows.cells))
    starts = _starts(rows.cells[order], rows.units[order], signs[order])
    cells, units, clusters, sums, deviations = _chosen(rows, order)
    totals, numbers = np.add.reduceat(sums, starts), np.add.reduceat(clusters, starts)
    means = np.repeat(totals / numbers, np.diff(starts, append=len(order)))
    deviations += clusters * (sums / clusters - means) ** 2
    return PooledRows(cells[starts], units[starts], numbers, totals, np.add.reduceat(deviations, starts))


def _starts(*keys: NDArray[np.int64] | Floats) -> NDArray[np.intp]:
    """The positions at which one of several sorted keys changes."""
    changes = np.zeros(len(keys[0]), dtype=np.bool_)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)


# -- What undecided verdicts can change: a group as each scenario of a metric reads it

SCENARIOS = 4
ALL_SCENARIOS, AS_JUDGED, DECIDED, IF_RIGHT = range(SCENARIOS)
"""The scenarios: as judged, without undecided verdicts, and as if they were right. The first means all."""


def scenarios(group: Group, metric: Metric) -> Iterator[tuple[int, Group]]:
    """List a group with undecided verdicts as each scenario of a metric reads it."""
    if metric.judged != "correct":
        yield ALL_SCENARIOS, group
        return
    yield AS_JUDGED, group
    yield IF_RIGHT, if_right(group)
    if metric.per_group:
        if list(metric.terms(if_wrong(group))) == list(metric.terms(if_right(group))):
            yield DECIDED, if_right(group)
        return
    decided = _decided(group, metric.needs)
    if decided.outcomes:
        yield DECIDED, decided


def contains_undecided(group: Group) -> bool:
    """Check whether a group, or one of its partners, has an undecided verdict."""
    return any(map(_is_undecided, group.outcomes)) or any(
        _is_undecided(outcome) for outcomes in group.partners.values() for outcome in outcomes
    )


def _is_undecided(outcome: Outcome) -> bool:
    return outcome.verdict == "undecided"


def _decided(group: Group, needs: str | None) -> Group:
    """The group without its undecided outcomes and without those whose counterpart in a partner is undecided.

    Counterparts have the same position and the same variant (CODIS: the pair without its context). A
    partner that contains something else, such as the draws of one image, excludes its own undecided outcomes.
    """
    partner = group.partners.get(needs, ()) if needs else ()
    paired = [outcome.variant for outcome in group] == [outcome.variant for outcome in partner]
    sides = (group.outcomes, partner) if paired else (group.outcomes,)
    dropped = {
        position for outcomes in sides for position, outcome in enumerate(outcomes) if _is_undecided(outcome)
    }

    def keep(outcomes: tuple[Outcome, ...], *, by_position: bool) -> tuple[Outcome, ...]:
        return tuple(
            outcome
            for position, outcome in enumerate(outcomes)
            if not (position in dropped if by_position else _is_undecided(outcome))
        )

    partners = {setting: keep(outcomes, by_position=paired) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=keep(group.outcomes, by_position=True), partners=partners)


def if_right(group: Group) -> Group:
    """The group as if every undecided verdict were right.

    If several probes share one answer, such as both contexts of a pair that is asked without them, the
    answer can be right for one reference at most.
    """

    def decide(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        right = {outcome.key: outcome.references for outcome in outcomes if outcome.right}
        settled = []
        for outcome in outcomes:
            if _is_undecided(outcome):
                credited = right.setdefault(outcome.key, outcome.references)
                verdict: VerdictName = "right" if credited == outcome.references else "wrong"
                outcome = structs.replace(outcome, verdict=verdict)
            settled.append(outcome)
        return tuple(settled)

    return _each_outcome(group, decide)


def if_wrong(group: Group) -> Group:
    """The group as if every undecided verdict were wrong."""
    return _each_outcome(
        group,
        lambda outcomes: tuple(
            structs.replace(outcome, verdict="wrong") if _is_undecided(outcome) else outcome
            for outcome in outcomes
        ),
    )


def _each_outcome(group: Group, decide: Callable[[tuple[Outcome, ...]], tuple[Outcome, ...]]) -> Group:
    partners = {setting: decide(outcomes) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=decide(group.outcomes), partners=partners)
