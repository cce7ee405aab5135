"""From groups to values: every metric over all groups and every subset, with n, clusters and interval."""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from sightline.metric_types import Metric, MetricValue, Unit
from sightline.metrics.metric_values import with_interval
from sightline.metrics.statistics import Floats, Interval, intervals
from sightline.types import (
    UNCHANGED,
    Group,
    Labels,
    Outcome,
    VerdictName,
)

# Undecided verdicts give a metric three readings. A row belongs to all of them or to one.
_EVERY, _AS_JUDGED, _DECIDED, _IF_RIGHT = range(4)

SCALES: dict[Unit, float] = {"percent": 100.0, "points": 100.0, "number": 1.0}
"""The value of a share of 1 in each unit."""

MOST_VALUES = 100
"""A label with more values than this (a file name, say) has no subsets: the table would be too long."""

MOST_CELLS = 4_000_000
"""Subsets times clusters of the metrics that are evaluated together: some tens of MB."""


def tally(
    groups: Iterable[Group], metrics: Sequence[Metric], *, seed: int = 0, resamples: int = 2000
) -> list[MetricValue]:
    """Evaluate every metric over all groups and over each subset.

    One pass over `groups`, of which only numbers are kept. A subset holds the groups, or terms, with one
    value of one label ('category=Attributes'). A metric whose terms all carry labels has the subsets of these
    labels; any other metric has those of the groups as well. A group without a cluster is its own cluster.

    The 95 % CIs resample whole clusters, for all metrics and subsets together; Wilson's interval applies
    where no cluster holds more than one unit. `value_decided` and `value_if_right` exist for metrics judged
    `correct` once any outcome is undecided.

    Args:
        groups: The judged groups.
        metrics: The metrics.
        seed: The seed of the bootstrap.
        resamples: The number of resamples.

    Returns:
        The values in the order of the metrics; within one, 'all' first, then the labels in the order of their
        first appearance with sorted values. Shares are percentages 0-100; `n` is the sum of the counts. A
        metric without a unit has the value None, n 0 and the reason.

    Raises:
        ValueError: A term is not finite.
    """
    ledger = _Ledger(metrics)
    for group in groups:
        ledger.enter(group)
    for sheet in ledger.sheets:
        # Without a verdict, the cases that need no judge (equal texts) would stand for all of them.
        if sheet.metric.judged is not None and sheet.metric.judged not in ledger.decided:
            sheet.clear()
    subsets = ledger.label_sets.subsets()
    # A few metrics at a time limit the memory of a large run.
    width = max(1, MOST_CELLS // (len(subsets.names) * ledger.clusters or 1))
    return [
        value
        for first in range(0, len(ledger.sheets), width)
        for value in _evaluated(ledger, ledger.sheets[first : first + width], subsets, seed, resamples)
    ]


class _Subsets(NamedTuple):
    """The names of all subsets, "all" first, and the label sets that they hold: shape (label sets,
    subsets)."""

    names: list[str]
    members: NDArray[np.bool_]


class _Table(NamedTuple):
    """One reading of a metric: its subsets, and their sums and counts, shape (subsets, clusters)."""

    chosen: NDArray[np.intp]
    sums: Floats
    counts: Floats

    def values(self, metric: Metric) -> list[float | None]:
        """The metric in each subset; None without a count."""
        scale = SCALES[metric.unit]
        totals = zip(self.sums.sum(axis=1).tolist(), self.counts.sum(axis=1).tolist(), strict=True)
        return [scale * total / n if n else None for total, n in totals]


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
        held = [
            [(name, value) for name, values in labels for value in _each(values)]
            for _, labels in self._numbers
        ]
        every: set[tuple[str, str]] = set().union(*held)
        sizes = Counter(name for name, _ in every)
        names = [
            name
            for name in dict.fromkeys(name for pairs in held for name, _ in pairs)
            if sizes[name] <= MOST_VALUES
        ]
        kept = (pair for pair in every if pair[0] in names)
        ordered = sorted(kept, key=lambda pair: (names.index(pair[0]), pair[1]))
        columns = {pair: column for column, pair in enumerate(ordered, start=1)}
        members = np.zeros((len(held), 1 + len(ordered)), dtype=bool)
        for number, ((overall, _), pairs) in enumerate(zip(self._numbers, held, strict=True)):
            members[number, 0] = overall
            members[number, [columns[pair] for pair in pairs if pair in columns]] = True
        return _Subsets(["all", *(f"{name}={value}" for name, value in ordered)], members)


class _MetricSums:
    """The rows of one metric by column: cluster, label set, reading, sum and count."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.clusters, self.label_sets, self.readings = array("q"), array("q"), array("q")
        self.sums, self.counts = array("d"), array("d")
        self.uses_group_labels = False
        self.has_partner = False

    def add(self, group: Group, cluster: int, label_set: int, reading: int, label_sets: _LabelSets) -> None:
        """Add the terms of the metric over one group."""
        for term in self.metric.terms(group):
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
            self.readings.append(reading)
            self.sums.append(term.sum)
            self.counts.append(term.count)

    def clear(self) -> None:
        """Remove every term."""
        for column in (self.clusters, self.label_sets, self.readings, self.sums, self.counts):
            del column[:]

    @property
    def is_share(self) -> bool:
        """Whether every term is a part of its count."""
        sums, counts = np.array(self.sums), np.array(self.counts)
        return self.metric.unit == "percent" and bool(((sums >= 0) & (sums <= counts)).all())

    @property
    def reason(self) -> str:
        """The reason why the metric has no value."""
        if self.metric.needs and not self.has_partner:
            how = " (--unchanged --repeats 4)" if self.metric.needs == UNCHANGED else ""
            return f"needs the answers of setting '{self.metric.needs}' of the same model, asked alike{how}"
        return self.metric.absent


class _Ledger:
    """The numbers of a stream of groups: a sheet per metric, and the names of clusters and label sets."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.sheets = [_MetricSums(metric) for metric in metrics]
        self.label_sets = _LabelSets()
        self.in_doubt = False
        self.decided: set[str] = {"correct"}
        self._clusters: dict[str, int] = {}
        self._group_label_sets: set[int] = set()
        self._judges: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)

    @property
    def clusters(self) -> int:
        """The number of clusters."""
        return len(self._clusters)

    def enter(self, group: Group) -> None:
        """Add the terms of every metric over one group."""
        cluster = self._clusters.setdefault(group.cluster or group.id, len(self._clusters))
        label_set = self.label_sets.number(group.labels)
        self._group_label_sets.add(label_set)
        self._note_judges(group)
        in_doubt = _is_in_doubt(group)
        self.in_doubt = self.in_doubt or in_doubt
        for sheet in self.sheets:
            if sheet.metric.needs in group.partners:
                sheet.has_partner = True
            for reading, read in _readings(group, sheet.metric) if in_doubt else ((_EVERY, group),):
                sheet.add(read, cluster, label_set, reading, self.label_sets)

    def table(self, sheet: _MetricSums, subsets: _Subsets, reading: int) -> _Table:
        """The sums and counts of a metric in one reading."""
        label_sets = set(sheet.label_sets)
        if sheet.uses_group_labels or not label_sets:
            label_sets |= self._group_label_sets
        chosen = np.union1d([0], np.flatnonzero(subsets.members[sorted(label_sets)].any(axis=0)))
        kept = np.isin(np.array(sheet.readings), (_EVERY, reading))
        rows, columns = np.nonzero(subsets.members[np.array(sheet.label_sets)[kept]][:, chosen])
        shape = len(chosen), len(self._clusters)
        cells = columns * len(self._clusters) + np.array(sheet.clusters)[kept][rows]

        def gather(amounts: Sequence[float]) -> Floats:
            flat = np.bincount(cells, np.array(amounts)[kept][rows], shape[0] * shape[1])
            return flat.reshape(shape).astype(np.float64, copy=False)

        return _Table(chosen, gather(sheet.sums), gather(sheet.counts))

    def judges(self, metric: Metric) -> str | None:
        """The names of the judges whose verdicts a metric uses."""
        if metric.judged is None:
            return None
        names = self._judges[metric.judged, None] | self._judges[metric.judged, metric.needs]
        return ", ".join(sorted(names)) or None

    def _note_judges(self, group: Group) -> None:
        for setting, outcomes in ((None, group.outcomes), *group.partners.items()):
            self._judges["correct", setting].update([outcome.judge for outcome in outcomes if outcome.judge])
        for verdict in group.judgements:
            self._judges[verdict.question, None].add(verdict.judge)
            if verdict.verdict in ("right", "wrong"):
                self.decided.add(verdict.question)


def _evaluated(
    ledger: _Ledger, sheets: Sequence[_MetricSums], subsets: _Subsets, seed: int, resamples: int
) -> Iterator[MetricValue]:
    """The values of some metrics; their intervals use the same resamples as those of all others."""
    tables = [ledger.table(sheet, subsets, _AS_JUDGED) for sheet in sheets]
    bounds = _bounds(sheets, tables, seed, resamples)
    for sheet, table in zip(sheets, tables, strict=True):
        yield from _values(ledger, sheet, subsets, table, bounds)


def _bounds(
    sheets: Sequence[_MetricSums], tables: Sequence[_Table], seed: int, resamples: int
) -> Iterator[Interval | None]:
    """The intervals of all metrics and subsets in turn, from the same resamples."""
    if not tables:
        return iter(())
    shares = [np.full(len(table.chosen), sheet.is_share) for sheet, table in zip(sheets, tables, strict=True)]
    return iter(
        intervals(
            np.vstack([table.sums for table in tables]).T,
            np.vstack([table.counts for table in tables]).T,
            np.concatenate(shares),
            seed=seed,
            resamples=resamples,
        )
    )


def _values(
    ledger: _Ledger, sheet: _MetricSums, subsets: _Subsets, table: _Table, bounds: Iterator[Interval | None]
) -> Iterator[MetricValue]:
    metric, judge = sheet.metric, ledger.judges(sheet.metric)
    scale = SCALES[metric.unit]
    unknown: list[float | None] = [None] * len(table.chosen)
    decided, if_right = (
        ledger.table(sheet, subsets, reading).values(metric)
        if ledger.in_doubt and metric.judged == "correct"
        else unknown
        for reading in (_DECIDED, _IF_RIGHT)
    )
    for row, value in enumerate(table.values(metric)):
        n = float(table.counts[row].sum())
        metric_value = MetricValue(
            metric=metric.name,
            subset=subsets.names[table.chosen[row]],
            value=value,
            n=int(n) if n.is_integer() else n,
            clusters=int(np.count_nonzero(table.counts[row])),
            unit=metric.unit,
            reason=sheet.reason if value is None else None,
            value_decided=decided[row],
            value_if_right=if_right[row],
            judge=judge,
        )
        yield with_interval(metric_value, next(bounds), scale)


def _readings(group: Group, metric: Metric) -> Iterator[tuple[int, Group]]:
    """A group with undecided verdicts, in each reading of a metric."""
    if metric.judged != "correct":
        yield _EVERY, group
        return
    yield _AS_JUDGED, group
    yield _IF_RIGHT, _if_right(group)
    if metric.per_group:
        if list(metric.terms(_if_wrong(group))) == list(metric.terms(_if_right(group))):
            yield _DECIDED, _if_right(group)
        return
    decided = _decided(group, metric.needs)
    if decided.outcomes:
        yield _DECIDED, decided


def _is_in_doubt(group: Group) -> bool:
    return any(map(_is_undecided, group.outcomes)) or any(
        _is_undecided(outcome) for outcomes in group.partners.values() for outcome in outcomes
    )


def _is_undecided(outcome: Outcome) -> bool:
    return outcome.verdict == "undecided"


def _decided(group: Group, needs: str | None) -> Group:
    """The group without its undecided outcomes and without those whose counterpart in a partner is undecided.

    Counterparts have the same position and the same variant (CODIS: the pair without its context). A
    partner that holds something else, such as the draws of one image, leaves out its own undecided outcomes.
    """
    partner = group.partners.get(needs, ()) if needs else ()
    paired = [outcome.variant for outcome in group] == [outcome.variant for outcome in partner]
    sides = (group.outcomes, partner) if paired else (group.outcomes,)
    dropped = {
        place for outcomes in sides for place, outcome in enumerate(outcomes) if _is_undecided(outcome)
    }

    def keep(outcomes: tuple[Outcome, ...], *, by_place: bool) -> tuple[Outcome, ...]:
        return tuple(
            outcome
            for place, outcome in enumerate(outcomes)
            if not (place in dropped if by_place else _is_undecided(outcome))
        )

    partners = {setting: keep(outcomes, by_place=paired) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=keep(group.outcomes, by_place=True), partners=partners)


def _if_right(group: Group) -> Group:
    """The group as if every undecided verdict were right.

    If several probes share one answer, such as both contexts of a pair that is asked without them, the
    answer can be right for one reference at most.
    """

    def read(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        right = {outcome.key: outcome.references for outcome in outcomes if outcome.right}
        settled = []
        for outcome in outcomes:
            if _is_undecided(outcome):
                against = right.setdefault(outcome.key, outcome.references)
                verdict: VerdictName = "right" if against == outcome.references else "wrong"
                outcome = structs.replace(outcome, verdict=verdict)
            settled.append(outcome)
        return tuple(settled)

    return _each_outcome(group, read)


def _if_wrong(group: Group) -> Group:
    """The group as if every undecided verdict were wrong."""
    return _each_outcome(
        group,
        lambda outcomes: tuple(
            structs.replace(outcome, verdict="wrong") if _is_undecided(outcome) else outcome
            for outcome in outcomes
        ),
    )


def _each_outcome(group: Group, read: Callable[[tuple[Outcome, ...]], tuple[Outcome, ...]]) -> Group:
    partners = {setting: read(outcomes) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=read(group.outcomes), partners=partners)


def _each(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values
