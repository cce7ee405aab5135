"""The terms of some groups by column, before they are added up."""

from __future__ import annotations

from array import array
from math import inf

import numpy as np

from sightline.metric_types import Metric, Term
from sightline.metrics.cluster_pool import ClusterRows, Integers
from sightline.metrics.label_subsets import ALL, LabelSubsets, each_value
from sightline.metrics.scenarios import SCENARIOS
from sightline.plugins import wrong_return
from sightline.types import Group, Labels, Outcome

TERMS_PER_CHUNK = 1 << 14
"""The number of terms from which a chunk is full."""


class TermChunk:
    """The terms of some groups.

    Attributes:
        group_subsets: The subsets of the labels of these groups.
        uses_group_labels: The columns of the metrics with a term under the labels of its group.
    """

    def __init__(self, metrics: int, subsets: LabelSubsets) -> None:
        """Start without a term.

        Args:
            metrics: The number of metrics. Their columns are 0 to metrics - 1.
            subsets: Numbers the subsets.
        """
        self.group_subsets: set[int] = set()
        self.uses_group_labels: set[int] = set()
        self._subsets = subsets
        self._width = metrics * SCENARIOS
        self._label_sets: dict[tuple[bool, tuple[tuple[str, str | tuple[str, ...]], ...]], int] = {}
        self._members: list[list[int]] = []
        # One entry for each metric of a group, and one for each of its terms.
        self._kinds, self._clusters, self._lengths = array("q"), array("q"), array("q")
        self._sums, self._counts, self._sets, self._answered = array("d"), array("d"), array("q"), array("b")
        self._known: dict[tuple[int, bool], tuple[Labels, int]] = {}
        self._cluster = self._group_set = 0

    def enter(self, labels: Labels, cluster: int) -> None:
        """Start a group.

        Args:
            labels: The labels that its outcomes share.
            cluster: The number of its cluster.
        """
        self._cluster = cluster
        self._known.clear()
        self._group_set = self._number(labels, overall=True)
        self.group_subsets.update(self._members[self._group_set])

    def add(self, metric: Metric, column: int, scenario: int, group: Group) -> None:
        """Add the terms of a metric over the group.

        Args:
            metric: The metric.
            column: The column of the metric.
            scenario: The scenario.
            group: The group in this scenario.

        Raises:
            ValueError: A term is not finite.
        """
        before, complete = len(self._sums), group.complete
        for term in metric.terms(group):
            if not isinstance(term, Term):
                raise wrong_return(metric.terms, term, Term)
            if not (-inf < term.sum < inf and 0 <= term.count < inf):
                raise ValueError(f"metric {metric.name}, group {group.id}: the term {term} is not finite")
            labels = term.labels
            if labels is None:
                self.uses_group_labels.add(column)
                self._sets.append(self._group_set)
            else:
                known = self._known.get((id(labels), term.overall))
                self._sets.append(self._number(labels, overall=term.overall) if known is None else known[1])
            self._sums.append(term.sum)
            self._counts.append(term.count)
            self._answered.append(complete or _is_answered(group, term))
        if len(self._sums) > before:
            self._kinds.append(column * SCENARIOS + scenario)
            self._clusters.append(self._cluster)
            self._lengths.append(len(self._sums) - before)

    @property
    def is_full(self) -> bool:
        """Whether the chunk holds as many terms as it should."""
        return len(self._sums) >= TERMS_PER_CHUNK

    def rows(self) -> tuple[ClusterRows, Integers]:
        """The terms in each of their subsets.

        Returns:
            The rows; and the cells that hold an answer. A cell is subset x metrics + column.
        """
        sizes = np.array([len(numbers) for numbers in self._members], dtype=np.int64)
        members = np.array([number for numbers in self._members for number in numbers], dtype=np.int64)
        sets, lengths = np.array(self._sets, dtype=np.int64), np.array(self._lengths, dtype=np.int64)
        copies = sizes[sets]
        terms = np.repeat(np.arange(len(sets)), copies)
        within = np.arange(len(terms)) - np.repeat(np.cumsum(copies) - copies, copies)
        subsets = members[(np.cumsum(sizes) - sizes)[sets][terms] + within]
        cells = subsets * self._width + np.repeat(np.array(self._kinds, dtype=np.int64), lengths)[terms]
        clusters = np.repeat(np.array(self._clusters, dtype=np.int64), lengths)[terms]
        rows = ClusterRows(cells, clusters, np.array(self._sums)[terms], np.array(self._counts)[terms])
        return rows, np.unique(cells[np.array(self._answered, dtype=np.bool_)[terms]])

    def _number(self, labels: Labels, *, overall: bool) -> int:
        """The number of these labels, for terms that count overall or under their labels alone."""
        key = (overall, tuple(labels.items()))
        number = self._label_sets.get(key)
        if number is None:
            number = self._label_sets[key] = len(self._members)
            self._members.append([ALL] * overall + self._subsets.numbers(labels))
        # Outcomes share their labels among terms. The reference keeps the identity from being used again.
        self._known[id(labels), overall] = labels, number
        return number


def _is_answered(group: Group, term: Term) -> bool:
    """Whether the answers that a term is about exist: those with its labels, otherwise those of the group."""
    labels = term.labels or {}
    about = [outcome for outcome in group if all(_has_label(outcome, *label) for label in labels.items())]
    return any(outcome.answered for outcome in about or group)


def _has_label(outcome: Outcome, name: str, values: str | tuple[str, ...]) -> bool:
    return set(each_value(values)) <= set(each_value(outcome.labels.get(name, ())))
