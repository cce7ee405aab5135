"""The change of a metric from one run to another, as a difference within each group."""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from sightline.metric_types import (
    Metric,
    Term,
    Unit,
    difference_range,
)
from sightline.metrics.significance import PairedValues
from sightline.scoring.similarity import PRECISION
from sightline.types import Group

Label = tuple[str, str] | None
Counterpart = Callable[[Group], Group]
"""Returns the same group of the other run, with the judgements of that run."""

_Columns = tuple["array[float]", "array[float]", "array[int]"]
"""The values before, the values after, and the clusters."""

NO_SHARED_GROUP = "no group has a value in both runs"


def mean_of_shared_groups(metric: Metric, counterpart_metric: Metric, counterpart: Counterpart) -> Metric:
    """A metric of one run as the mean over the groups that have a value in both runs.

    Each group counts once, whatever its number of answers: the difference of the values of both runs is the
    mean difference of `difference`.
    """

    def terms(group: Group) -> Iterator[Term]:
        for label, _, here in _both(metric, counterpart_metric, counterpart(group), group):
            yield _group_term(here, label)

    return replace(metric, terms=terms, absent=NO_SHARED_GROUP)


def difference(metric: Metric, base: Metric, before: Counterpart) -> Metric:
    """A metric as the difference of two runs, averaged over groups.

    Under a label it is the difference of the terms with that label.

    Returns:
        The metric over the groups of the second run, in points instead of percent.
    """

    def terms(group: Group) -> Iterator[Term]:
        for label, there, here in _both(metric, base, before(group), group):
            yield _group_term(here - there, label)

    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(
        metric,
        terms=terms,
        range=difference_range(metric.range),
        unit=unit,
        absent=NO_SHARED_GROUP,
    )


class PairedTally:
    """The values that `difference` averages over, from groups that are added one by one."""

    def __init__(self, metrics: Sequence[tuple[Metric, Metric]]) -> None:
        self._metrics = metrics
        self._clusters: dict[str, int] = {}
        self._columns: list[defaultdict[str, _Columns]] = [defaultdict(_columns) for _ in metrics]

    def add(self, before: Group, after: Group) -> None:
        cluster = self._clusters.setdefault(after.cluster or after.id, len(self._clusters))
        for (metric, base), columns in zip(self._metrics, self._columns, strict=True):
            for label, there, here in _both(metric, base, before, after):
                earlier, later, clusters = columns["all" if label is None else "=".join(label)]
                earlier.append(there)
                later.append(here)
                clusters.append(cluster)

    def values(self) -> list[dict[str, PairedValues]]:
        """The two values of each group."""
        return [
            {
                subset: PairedValues(np.array(there), np.array(here), np.array(clusters, np.intp))
                for subset, (there, here, clusters) in columns.items()
            }
            for columns in self._columns
        ]


def _columns() -> _Columns:
    return array("d"), array("d"), array("q")


def _group_term(value: float, label: Label) -> Term:
    """A group as one unit, overall or under one label."""
    return Term(value, 1, {} if label is None else dict([label]), overall=label is None)


def _both(metric: Metric, base: Metric, earlier: Group, group: Group) -> Iterator[tuple[Label, float, float]]:
    """The values of a group in both runs, overall and under each label that both runs have.

    Values that differ by less than the precision of measurements by models are made equal: a part of 1 for
    percentages, otherwise of the larger value. Both orders of the runs give the same values.
    """
    absolute = 0.0 if metric.unit == "number" else PRECISION
    here, there = _means(metric, group), _means(base, earlier)
    for label, value in here.items():
        if label in there:
            both = there[label], value
            equal = math.isclose(*both, rel_tol=PRECISION, abs_tol=absolute)
            yield label, *((sum(both) / 2,) * 2 if equal else both)


def _means(metric: Metric, group: Group) -> dict[Label, float]:
    """The mean over a group, which both sides and their difference need: each group keeps it."""
    return group.once((_means, metric.terms), lambda one: _means_of_terms(metric.terms(one), one))


def _means_of_terms(terms: Iterable[Term], group: Group) -> dict[Label, float]:
    """The mean over a group: under None overall, and under each label over the terms with that label."""
    sums: defaultdict[Label, float] = defaultdict(float)
    counts: defaultdict[Label, float] = defaultdict(float)
    for term in terms:
        own_labels: list[Label] = [None] if term.overall else []
        for name, values in (group.labels if term.labels is None else term.labels).items():
            own_labels += [(name, value) for value in ((values,) if isinstance(values, str) else values)]
        for label in own_labels:
            sums[label] += term.sum
            counts[label] += term.count
    return {label: total / counts[label] for label, total in sums.items() if counts[label]}
