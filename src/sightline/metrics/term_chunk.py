"""The terms of some groups by column, before they are added up."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import NamedTuple

import numpy as np

from sightline.metric_types import Metric, Term
from sightline.metrics.cluster_pool import ClusterRows, Integers
from sightline.metrics.label_subsets import ALL, LabelSubsets, each_value
from sightline.metrics.scenarios import SCENARIOS
from sightline.plugins import wrong_return
from sightline.types import Group, Labels, Outcome

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
        """Whether the chunk holds as many terms as it should."""
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
