"""From groups to values: every metric in every subset, with n, clusters and confidence interval."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from sightline.metrics.agreement import MAJORITY_OF
from sightline.metrics.flips import GroupPair
from sightline.metrics.statistics import (
    Floats,
    Interval,
    cluster_positions,
    difference_intervals,
    ratio_intervals,
    with_interval,
)
from sightline.plugins import wrong_return
from sightline.types import (
    Group,
    Labels,
    Metric,
    MetricValue,
    Outcome,
    Term,
    Unit,
    Usage,
    Verdict,
    VerdictName,
    each_value,
    subset_name,
)

SCALES: dict[Unit, float] = {"percent": 100.0, "points": 100.0, "number": 1.0}
"""The value of a share of 1 in each unit."""

NO_ANSWER = "no probe was answered"
"""The reason for a value of probes that all failed: nothing was measured, so the value is not 0."""

Integers = NDArray[np.int64]


def tally(groups: Iterable[Group], metrics: Sequence[Metric]) -> list[MetricValue]:
    """Evaluate every metric over all groups and over each subset.

    One pass over `groups`, of which only the numbers of their terms are kept. A subset holds the groups, or
    terms, with one value of one label ('category=Attributes'). A metric whose terms all carry labels has the
    subsets of these labels; any other metric has those of the groups as well. A subset without any answer has
    no value, except for metrics that count failures.

    The 95 % CIs follow from the variance between clusters (`metrics/statistics.py`). `value_decided`
    and `value_if_right` exist for metrics judged `correct` once any outcome is undecided.

    Returns:
        The values in the order of the metrics; within one, 'all' first, then the labels in the order of their
        first appearance with sorted values. Shares are percentages 0-100; `n` is the sum of the counts. A
        metric without a unit has the value None, n 0 and the reason.

    Raises:
        ValueError: A term is not finite.
    """
    found = Tally(metrics)
    for group in groups:
        found.add(group)
    return found.values()


def group_values(group: Group, metrics: Iterable[Metric]) -> list[float | None]:
    """Each metric of one group alone, in its unit; None where the group has no unit of it."""
    values: list[float | None] = []
    for metric in metrics:
        terms = [term for term in metric.terms(group) if term.overall]
        n = sum(term.count for term in terms)
        values.append(SCALES[metric.unit] * sum(term.sum for term in terms) / n if n else None)
    return values


class Tally:
    """The terms of each metric over a stream of groups, and what is known of the groups (see `tally`)."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics
        self.terms = TermTable(metrics)
        self._has_undecided = False
        self._has_answers = False
        self._partners: set[str] = set()
        self._varying: set[str] = set()
        self._decided: set[str] = {"correct"}
        self._judges: defaultdict[tuple[str, str | None], set[str]] = defaultdict(set)

    def add(self, group: Group, pattern: PatternOf | None = None) -> None:
        """Add the terms of every metric over one group. Raises ValueError: a term is not finite.

        `pattern` says what metrics of verdicts read; by default, the verdicts of the group.
        """
        self._add_judges(group)
        labels = group.labels
        for outcome in group.outcomes:
            if outcome.labels is not labels and outcome.labels != labels:
                self._varying.update(outcome.labels.keys() - labels.keys())
        if not self._has_answers:
            self._has_answers = any(outcome.answered for outcome in group)
        self._partners.update(group.partners)
        has_undecided = contains_undecided(group)
        self._has_undecided = self._has_undecided or has_undecided
        self.terms.add(group, has_undecided=has_undecided, pattern=pattern)

    def _add_judges(self, group: Group) -> None:
        for setting, outcomes in ((None, group.outcomes), *group.partners.items()):
            self._judges["correct", setting].update([outcome.judge for outcome in outcomes if outcome.judge])
        for verdict in group.judgements:
            if not verdict.judge:
                continue  # equal answers, or a tie
            self._judges[verdict.question, None].add(verdict.judge)
            if verdict.verdict in ("right", "wrong"):
                self._decided.add(verdict.question)

    def values(self) -> list[MetricValue]:
        """End the stream."""
        self.terms.end()
        # One metric at a time limits the memory of many subsets.
        return [value for column in range(len(self._metrics)) for value in self._values(column)]

    def _values(self, column: int) -> Iterator[MetricValue]:
        """The values of a metric in all subsets that it has."""
        metric = self._metrics[column]
        # Without a verdict, the cases that need no judge (equal texts) would stand for all of them.
        terms = self.terms.of(column) if metric.judged is None or metric.judged in self._decided else NO_TERMS
        subsets = self._subsets(column, terms)
        rows_per_block = max(1, CELLS_PER_BLOCK // max(1, self.terms.clusters))
        for first in range(0, len(subsets), rows_per_block):
            yield from self._block(metric, terms, subsets[first : first + rows_per_block])

    def _block(
        self, metric: Metric, terms: Terms, subsets: Sequence[tuple[int, str]]
    ) -> Iterator[MetricValue]:
        numbers = [number for number, _ in subsets]
        table = self.terms.table(terms, numbers, AS_JUDGED)
        has_scenarios = self._has_undecided and metric.judged == "correct"
        decided, if_right = (
            _values(self.terms.table(terms, numbers, scenario), metric)
            if has_scenarios
            else [None] * len(subsets)
            for scenario in (DECIDED, IF_RIGHT)
        )
        missing = _reason(metric, has_partner=metric.needs in self._partners)
        counts, clusters = table.counts.sum(axis=1), np.count_nonzero(table.counts, axis=1)
        rows = zip(subsets, _values(table, metric), _intervals(table, metric), strict=True)
        for row, ((_, name), value, interval) in enumerate(rows):
            if value is not None and not (metric.counts_failures or table.answered[row]):
                yield MetricValue(metric.name, name, None, 0, 0, unit=metric.unit, reason=NO_ANSWER)
                continue
            n = float(counts[row])
            metric_value = MetricValue(
                metric=metric.name,
                subset=name,
                value=value,
                n=int(n) if n.is_integer() else n,
                clusters=int(clusters[row]),
                unit=metric.unit,
                reason=(missing if self._has_answers else NO_ANSWER) if value is None else None,
                value_decided=decided[row],
                value_if_right=if_right[row],
                judge=self._judges_of(metric),
            )
            yield with_interval(metric_value, interval, SCALES[metric.unit])

    def _subsets(self, column: int, terms: Terms) -> list[tuple[int, str]]:
        """The subsets of a metric with their names: those of its terms and, unless all terms have labels of
        their own, those of the groups."""
        metric, present = self._metrics[column], self.terms.subsets_of(column, terms)
        return [(ALL, "all")] * (metric.labels != "varying") + [
            (number, subset_name(name, value))
            for number, name, value in self.terms.subsets.ordered()
            if number in present
            and (metric.labels == "any" or (name in self._varying) == (metric.labels == "varying"))
        ]

    def _judges_of(self, metric: Metric) -> str | None:
        """The names of the judges whose verdicts a metric uses."""
        if metric.judged is None:
            return None
        names = self._judges[metric.judged, None] | self._judges[metric.judged, metric.needs]
        return ", ".join(sorted(_without_parts(names))) or None


def _values(table: ClusterTable, metric: Metric) -> list[float | None]:
    """The metric in each subset; None without a count."""
    totals = zip(table.sums.sum(axis=1).tolist(), table.counts.sum(axis=1).tolist(), strict=True)
    return [SCALES[metric.unit] * total / n if n else None for total, n in totals]


def _intervals(table: ClusterTable, metric: Metric) -> list[Interval | str]:
    """The interval in each subset, before scaling; points are differences."""
    low, high = (None if bound is None else bound / SCALES[metric.unit] for bound in metric.range)
    find = difference_intervals if metric.unit == "points" else ratio_intervals
    return find(table.sums, table.counts, [(low, high)] * len(table.sums), graded=metric.graded)


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


# -- The terms of all groups, in arrays

TERMS_PER_CHUNK = 1 << 16
"""The number of terms that are collected before they become the smallest arrays that hold them."""

CELLS_PER_BLOCK = 1 << 16
"""The number of sums, each of one cluster in one subset, that are computed together."""

Column = NDArray[Any]


class Terms(NamedTuple):
    """Terms of one metric: arrays of shape (terms,).

    Attributes:
        clusters: The cluster of each, by number; of a chunk, the group.
        sets: The sets of labels, by number (see `TermTable`).
        answered: Whether there is an answer that the term is about.
    """

    clusters: Column
    scenarios: Column
    sets: Column
    sums: Column
    counts: Column
    overall: NDArray[np.bool_]
    answered: NDArray[np.bool_]


NO_TERMS = Terms(*(np.empty(0, dtype) for dtype in (*[np.int64] * 3, *[np.float64] * 2, *[np.bool_] * 2)))


class ClusterTable(NamedTuple):
    """The sums and counts of clusters in some subsets, shape (subsets, clusters).

    Attributes:
        answered: Whether there is an answer that a term of the subset is about, shape (subsets,).
    """

    sums: Floats
    counts: Floats
    answered: NDArray[np.bool_]


class TermTable:
    """The terms of metrics over a stream of groups: about 10 bytes a term."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.subsets = LabelSubsets()
        self.clusters = 0
        # The cluster of each group: its hash, which takes a tenth of the memory of its name.
        self._hashes = array("q")
        self._metrics = metrics
        columns = [(column * SCENARIOS, metric, metric.terms) for column, metric in enumerate(metrics)]
        self._others = [column for column in columns if column[1].reads == "answers"]
        self._by_verdicts = [column for column in columns if column not in self._others]
        self._with_letters = any(metric.reads == "letters" for metric in metrics)
        self._patterns: dict[Hashable, _PatternTerms] = {}
        self._sets: dict[tuple[int, ...], int] = {}
        self._group_sets: set[int] = set()
        self._with_group_labels: set[int] = set()
        self._chunks: list[list[Terms]] = [[] for _ in metrics]
        self._begin_chunk()

    def _begin_chunk(self) -> None:
        self._set_of_labels: dict[tuple[tuple[str, str | tuple[str, ...]], ...], int] = {}
        self._first_group = len(self._hashes)
        self._terms_of_group = array("q")
        # One entry for each term. A set is below 0, -1 - set, if the term has the labels of its group.
        self._kinds, self._term_sets = array("q"), array("q")
        self._sums, self._counts = array("d"), array("d")
        self._overall, self._answered = bytearray(), bytearray()

    def add(self, group: Group, *, has_undecided: bool, pattern: PatternOf | None = None) -> None:
        """Add the terms of every metric over a group. Raises ValueError: a term is not finite."""
        group_set = self._set(group.labels)
        self._group_sets.add(group_set)
        first, columns = len(self._sums), self._others
        if self._by_verdicts:
            found = None
            if group.complete and not has_undecided:
                found = (pattern or verdict_pattern)(group, letters=self._with_letters)
            if found is None:
                columns = [*self._by_verdicts, *self._others]
            else:
                self._add_pattern(group, group_set, found)
        terms: list[Term] = []
        kinds: list[int] = []
        same = ((ALL_SCENARIOS, group, None),)
        for first_kind, metric, terms_of in columns:
            for scenario, variant, own in scenarios(group, metric) if has_undecided else same:
                terms += terms_of(variant) if own is None else own
                if added := len(terms) - len(kinds):
                    kinds += [first_kind + scenario] * added
                    if not group.complete:
                        self._answered += bytes(
                            isinstance(term, Term) and _is_answered(variant, term) for term in terms[-added:]
                        )
        if terms:
            if group.complete:
                self._answered += b"\1" * len(terms)
            sums, counts = self._checked(group, terms, kinds)
            self._term_sets.extend(
                [-1 - group_set if term.labels is None else self._set(term.labels) for term in terms]
            )
            self._kinds.extend(kinds)
            self._sums.extend(sums)
            self._counts.extend(counts)
            self._overall += bytes([term.overall for term in terms])
        self._hashes.append(hash(group.cluster or group.id))
        self._terms_of_group.append(len(self._sums) - first)
        if len(self._sums) >= TERMS_PER_CHUNK:
            self._end_chunk()

    def _add_pattern(self, group: Group, group_set: int, pattern: VerdictPattern) -> None:
        """Add the terms of the metrics of verdicts over a group that is answered and decided."""
        found = self._patterns.get(pattern.key)
        if found is None:
            if len(self._patterns) >= MOST_PATTERNS:
                self._patterns.clear()
            found = self._patterns[pattern.key] = self._of_pattern(group, pattern)
        self._kinds.extend(found.kinds)
        self._sums.extend(found.sums)
        self._counts.extend(found.counts)
        self._overall += found.overall
        self._answered += b"\1" * len(found.kinds)
        sets: dict[_PatternLabels | None, int] = {None: -1 - group_set}
        for labels in found.of_labels:
            sets[labels] = self._set(pattern.labels[labels] if isinstance(labels, int) else dict(labels))
        self._term_sets.extend([sets[labels] for labels in found.labels])

    def _of_pattern(self, group: Group, pattern: VerdictPattern) -> _PatternTerms:
        stand_in, terms, kinds = pattern.stand_in(), list[Term](), list[int]()
        for first_kind, _, terms_of in self._by_verdicts:
            terms += terms_of(stand_in)
            kinds += [first_kind + ALL_SCENARIOS] * (len(terms) - len(kinds))
        sums, counts = self._checked(group, terms, kinds)
        labels = [None if term.labels is None else _labels_in_pattern(term.labels) for term in terms]
        overall = bytes([term.overall for term in terms])
        return _PatternTerms(array("q", kinds), array("d", sums), array("d", counts), overall, labels)

    def _checked(
        self, group: Group, terms: Sequence[Term], kinds: Sequence[int]
    ) -> tuple[list[float], list[float]]:
        """The sums and counts of terms, all of which are finite."""
        if set(map(type, terms)) <= {Term}:
            sums, counts = [term.sum for term in terms], [term.count for term in terms]
            if isfinite(sum(sums) + sum(counts)) and min(counts, default=0) >= 0:
                return sums, counts
        for kind, term in zip(kinds, terms, strict=True):
            metric = self._metrics[kind // SCENARIOS]
            if not isinstance(term, Term):
                raise wrong_return(metric.terms, term, Term)
            if not (isfinite(term.sum) and 0 <= term.count < inf):
                raise ValueError(f"metric {metric.name}, group {group.id}: the term {term} is not finite")
        # The total of finite terms may be too large.
        return [term.sum for term in terms], [term.count for term in terms]

    def _set(self, labels: Labels) -> int:
        """The number of a set of labels: of the subsets that it belongs to."""
        key = tuple(labels.items())
        number = self._set_of_labels.get(key)
        if number is None:
            number = self._sets.setdefault(tuple(self.subsets.numbers(labels)), len(self._sets))
            self._set_of_labels[key] = number
        return number

    def _end_chunk(self) -> None:
        """Give the terms to their metrics."""
        columns, found = np.divmod(np.array(self._kinds), SCENARIOS)
        sets = np.array(self._term_sets)
        self._with_group_labels |= set(np.unique(columns[sets < 0]).tolist())
        groups = np.repeat(np.arange(self._first_group, len(self._hashes)), np.array(self._terms_of_group))
        numbers = (
            groups,
            found,
            np.where(sets < 0, -1 - sets, sets),
            np.array(self._sums),
            np.array(self._counts),
        )
        flags = (np.array(one, dtype=np.bool_) for one in (self._overall, self._answered))
        terms = Terms(*numbers, *flags)
        for column in np.unique(columns).tolist():
            own = columns == column
            self._chunks[column].append(Terms(*(_narrow(values[own]) for values in terms)))
        self._begin_chunk()

    def end(self) -> None:
        """Number the clusters in the order of their first groups, and list the sets of each subset."""
        self._end_chunk()
        self._sets_of: defaultdict[int, list[int]] = defaultdict(list)
        for subsets, number in self._sets.items():
            for subset in subsets:
                self._sets_of[subset].append(number)
        self._clusters = cluster_positions(np.array(self._hashes)).astype(np.int32)
        self.clusters = int(self._clusters.max(initial=-1)) + 1

    def of(self, column: int) -> Terms:
        """The terms of a metric over all groups."""
        chunks = self._chunks[column]
        if not chunks:
            return NO_TERMS
        terms = Terms(*map(np.concatenate, zip(*chunks, strict=True)))
        return terms._replace(clusters=self._clusters[terms.clusters])

    def of_subset(self, terms: Terms, subset: str) -> tuple[Floats, NDArray[np.int64]]:
        """The sums of the terms of a subset, as judged, and their clusters."""
        chosen = self._chosen(terms, self.names[subset]) & _in_scenario(terms, AS_JUDGED)
        return terms.sums[chosen].astype(np.float64), terms.clusters[chosen].astype(np.int64)

    @cached_property
    def names(self) -> dict[str, int]:
        """The numbers of all subsets by their names."""
        labelled = {subset_name(name, value): number for number, name, value in self.subsets.ordered()}
        return {"all": ALL, **labelled}

    def subsets_of(self, column: int, terms: Terms) -> set[int]:
        """The subsets of these terms of a metric, and those of the groups if it uses their labels."""
        used = set(np.unique(terms.sets).tolist())
        if column in self._with_group_labels or not used:
            used |= self._group_sets
        return {subset for subsets, number in self._sets.items() if number in used for subset in subsets}

    def table(self, terms: Terms, subsets: Sequence[int], scenario: int) -> ClusterTable:
        """Add up the terms of one metric in one scenario."""
        shape = len(subsets), self.clusters
        sums, counts, answered = np.zeros(shape), np.zeros(shape), np.zeros(len(subsets), dtype=np.bool_)
        in_scenario = _in_scenario(terms, scenario)
        for row, subset in enumerate(subsets):
            chosen = in_scenario & self._chosen(terms, subset)
            clusters = terms.clusters[chosen]
            sums[row] = np.bincount(clusters, terms.sums[chosen], minlength=self.clusters)
            counts[row] = np.bincount(clusters, terms.counts[chosen], minlength=self.clusters)
            answered[row] = terms.answered[chosen].any()
        used = counts.any(axis=0)
        return ClusterTable(sums[:, used], counts[:, used], answered)

    def _chosen(self, terms: Terms, subset: int) -> NDArray[np.bool_]:
        """Which terms belong to a subset."""
        if subset == ALL:
            return terms.overall
        is_part = np.zeros(len(self._sets), dtype=np.bool_)
        is_part[self._sets_of[subset]] = True
        found: NDArray[np.bool_] = is_part[terms.sets]
        return found


def _in_scenario(terms: Terms, scenario: int) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (terms.scenarios == ALL_SCENARIOS) | (terms.scenarios == scenario)
    return found


_PatternLabels = int | tuple[tuple[str, str | tuple[str, ...]], ...]
"""Labels of answers, by their number in the pattern, or labels of a term's own."""


class _PatternTerms(NamedTuple):
    """The terms of a pattern; the labels of each are None for those of the group."""

    kinds: array[int]
    sums: array[float]
    counts: array[float]
    overall: bytes
    labels: list[_PatternLabels | None]

    @property
    def of_labels(self) -> Iterator[_PatternLabels]:
        return (labels for labels in dict.fromkeys(self.labels) if labels is not None)


def _narrow(values: Column) -> Column:
    """The same numbers in the smallest type that holds them."""
    if values.dtype != np.bool_:
        for kind in (np.int8, np.int16, np.int32):
            with np.errstate(invalid="ignore"):
                small = values.astype(kind)
            if (small == values).all():
                return small
    return values


def _is_answered(group: Group, term: Term) -> bool:
    """Whether the answers that a term is about exist: those with its labels, otherwise those of the group."""
    labels = term.labels or {}
    about = [outcome for outcome in group if all(_has_label(outcome, *label) for label in labels.items())]
    return any(outcome.answered for outcome in about or group)


def _has_label(outcome: Outcome, name: str, values: str | tuple[str, ...]) -> bool:
    return set(each_value(values)) <= set(each_value(outcome.labels.get(name, ())))


# -- What metrics of verdicts read of a group: groups with the same pattern have the same terms

MOST_PATTERNS = 4096
"""The number of patterns whose terms are kept."""

_TEXT = "..."
"""Stands for an extracted text."""

_LABEL = "labels of answers"


class VerdictPattern(NamedTuple):
    """The verdicts of a group, and the different labels of its answers, by their numbers in the pattern.

    `stand_in` makes a group with these verdicts: it has numbers for the labels, and neither texts nor names.
    """

    key: Hashable
    labels: Sequence[Labels]
    stand_in: Callable[[], Group]


class PatternOf(Protocol):
    """Finds what metrics of verdicts read of a group; None where they read the group itself."""

    def __call__(self, group: Group, *, letters: bool) -> VerdictPattern | None: ...


def verdict_pattern(group: Group, *, letters: bool) -> VerdictPattern:
    """What a metric may read that declares to read verdicts, or `letters`, too.

    Of each answer the variant, verdict, status, finish reason and whole-numbered scores, whether a text was
    extracted, which answers share labels or a key, and whether there are references and options; and of each
    verdict on several of them the question, the answers, whether it has a value, and such scores. `letters`
    adds extracted letters and the references, which make many patterns.
    """
    keys: dict[str, int] = {}
    labels: list[Labels] = []
    answers = []
    for outcome in group.outcomes:
        own, extracted = outcome.labels, outcome.extracted
        if own not in labels:
            labels.append(own)
        answers.append(
            (
                outcome.variant,
                outcome.verdict,
                outcome.status,
                outcome.finish_reason,
                extracted if not extracted or (letters and len(extracted) == 1) else _TEXT,
                labels.index(own) if own else -1,
                outcome.references if letters else bool(outcome.references),
                bool(outcome.options),
                keys.setdefault(outcome.key, len(keys)),
                _whole_scores(outcome.scores) if outcome.scores else (),
            )
        )
    judged = [
        (
            verdict.question,
            tuple([keys[target] for target in verdict.targets]),
            verdict.verdict,
            verdict.value is None,
            _whole_scores(verdict.scores) if verdict.scores else (),
        )
        for verdict in group.judgements
        if all(target in keys for target in verdict.targets)
    ]
    key = (tuple(answers), tuple(judged))
    return VerdictPattern(key, labels, lambda: _stand_in(*key))


def _stand_in(answers: Sequence[tuple[Any, ...]], judged: Sequence[tuple[Any, ...]]) -> Group:
    outcomes = tuple(
        Outcome(
            sample="",
            variant=variant,
            draw=0,
            key=str(key),
            labels={} if labels < 0 else {_LABEL: str(labels)},
            response="",
            status=status,
            finish_reason=finish_reason,
            usage=Usage(),
            verdict=verdict,
            extracted=extracted,
            references=references if isinstance(references, tuple) else (_TEXT,) * references,
            options=("",) if has_options else (),
            scores=dict(scores),
        )
        for (
            variant,
            verdict,
            status,
            finish_reason,
            extracted,
            labels,
            references,
            has_options,
            key,
            scores,
        ) in answers
    )
    judgements = tuple(
        Verdict(
            targets=tuple(map(str, targets)),
            question=question,
            scorer="",
            judge="",
            kind="rules",
            verdict=verdict,
            value=None if has_no_value else 0.0,
            scores=dict(scores),
        )
        for question, targets, verdict, has_no_value, scores in judged
    )
    return Group("", 0, "", outcomes, judgements)


def _whole_scores(scores: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    return tuple([(name, score) for name, score in scores.items() if float(score).is_integer()])


def _labels_in_pattern(labels: Labels) -> _PatternLabels:
    return int(str(labels[_LABEL])) if _LABEL in labels else tuple(labels.items())


# -- What undecided verdicts can change: a group as each scenario of a metric reads it

SCENARIOS = 4
ALL_SCENARIOS, AS_JUDGED, DECIDED, IF_RIGHT = range(SCENARIOS)
"""The scenarios: as judged, without undecided verdicts, and as if they were right. The first means all."""


def scenarios(group: Group, metric: Metric) -> Iterator[tuple[int, Group, Sequence[Term] | None]]:
    """List a group with undecided verdicts as each scenario of a metric reads it.

    Yields:
        The scenario, the group, and those terms of it that count; None for all.
    """
    if metric.judged != "correct":
        yield ALL_SCENARIOS, group, None
        return
    yield AS_JUDGED, group, None
    right = if_right(group)
    yield IF_RIGHT, right, None
    if metric.per_group:
        best, worst = list(metric.terms(right)), list(metric.terms(if_wrong(group)))
        if len(best) == len(worst):
            yield DECIDED, right, [one for one, other in zip(best, worst, strict=True) if one == other]
        return
    decided = _decided(group, metric.needs)
    if decided.outcomes:
        yield DECIDED, decided, None


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


def undecided_ends(pair: GroupPair) -> tuple[GroupPair, GroupPair]:
    """A pair with all undecided verdicts of the base wrong and those of the other right, and the reverse.

    A group of which both runs hold the same answers, judged alike, is the same whatever the verdicts are.
    """
    base, other = pair
    answers = [[(one.key, one.verdict, one.judge) for one in group] for group in pair]
    if answers[0] == answers[1] or not any(map(contains_undecided, pair)):
        return pair, pair
    return GroupPair(if_wrong(base), if_right(other)), GroupPair(if_right(base), if_wrong(other))


def _each_outcome(group: Group, decide: Callable[[tuple[Outcome, ...]], tuple[Outcome, ...]]) -> Group:
    partners = {setting: decide(outcomes) for setting, outcomes in group.partners.items()}
    return structs.replace(group, outcomes=decide(group.outcomes), partners=partners)
