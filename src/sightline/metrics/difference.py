"""The change of a metric from one run to another, as a difference within each group."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

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

NO_SHARED_GROUP = "no group has a value in both runs"


def mean_of_shared_groups(metric: Metric, counterpart_metric: Metric, counterpart: Counterpart) -> Metric:
    """A metric of one run as the mean over the groups that have a value in both runs.

    Each group counts once, whatever its number of answers: the difference of the values of both runs is the
    mean difference of `difference`.

    Args:
        metric: The metric of the run.
        counterpart_metric: The same metric of the other run.
        counterpart: Returns the group of the other run for a group of the run.

    Returns:
        The metric over the groups of the run.
    """

    def terms(group: Group) -> Iterator[Term]:
        for label, _, here in _both(metric, counterpart_metric, counterpart, group):
            yield _group_term(here, label)

    return replace(metric, terms=terms, absent=NO_SHARED_GROUP)


def difference(metric: Metric, base: Metric, before: Counterpart) -> Metric:
    """A metric as the difference of two runs, averaged over groups.

    Under a label it is the difference of the terms with that label.

    Args:
        metric: The metric of the second run.
        base: The same metric of the first run.
        before: Returns the group of the first run for a group of the second.

    Returns:
        The metric over the groups of the second run, in points instead of percent.
    """

    def terms(group: Group) -> Iterator[Term]:
        for label, there, here in _both(metric, base, before, group):
            yield _group_term(here - there, label)

    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(
        metric,
        terms=terms,
        range=difference_range(metric.range),
        unit=unit,
        absent=NO_SHARED_GROUP,
    )


def paired(
    groups: Iterable[Group], metric: Metric, base: Metric, before: Counterpart
) -> dict[str, PairedValues]:
    """The values that `difference` averages over.

    Args:
        groups: The groups of the second run.
        metric: The metric of the second run.
        base: The same metric of the first run.
        before: Returns the group of the first run for a group of the second.

    Returns:
        The two values of each group, by subset ('all', 'category=Attributes').
    """
    values: defaultdict[str, list[tuple[float, float, int]]] = defaultdict(list)
    clusters: dict[str, int] = {}
    for group in groups:
        cluster = clusters.setdefault(group.cluster or group.id, len(clusters))
        for label, there, here in _both(metric, base, before, group):
            values["all" if label is None else "=".join(label)].append((there, here, cluster))
    columns = {subset: tuple(zip(*rows, strict=True)) for subset, rows in values.items()}
    return {
        subset: PairedValues(np.array(there, float), np.array(here, float), np.array(numbers, np.intp))
        for subset, (there, here, numbers) in columns.items()
    }


def _group_term(value: float, label: Label) -> Term:
    """A group as one unit, overall or under one label."""
    return Term(value, 1, {} if label is None else dict([label]), overall=label is None)


def _both(
    metric: Metric, base: Metric, before: Counterpart, group: Group
) -> Iterator[tuple[Label, float, float]]:
    """The values of a group in both runs, overall and under each label that both runs have.

    Values that differ by less than the precision of measurements by models are made equal: a part of 1 for
    percentages, otherwise of the larger value. Both orders of the runs give the same values.
    """
    earlier, absolute = before(group), 0.0 if metric.unit == "number" else PRECISION
    here, there = _means(metric.terms(group), group), _means(base.terms(earlier), earlier)
    for label, value in here.items():
        if label in there:
            both = there[label], value
            equal = math.isclose(*both, rel_tol=PRECISION, abs_tol=absolute)
            yield label, *((sum(both) / 2,) * 2 if equal else both)


def _means(terms: Iterable[Term], group: Group) -> dict[Label, float]:
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
