"""What changes from one run to another on the same groups: every metric as a difference within a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from sightline.metrics.significance import PairedValues
from sightline.types import Group, Metric, Range, Term, Unit

Label = tuple[str, str] | None
Before = Callable[[Group], Group]
"""The same group in the run that it is held against, with the judgements of that run."""


def difference(metric: Metric, base: Metric, before: Before) -> Metric:
    """The metric of a group less `base` of the same group before, averaged over groups; under each label,
    that of the terms which carry it.

    For groups of equal size the mean of these is the difference of the two runs' values.
    """

    def terms(group: Group) -> Iterator[Term]:
        for label, there, here in _both(metric, base, before, group):
            labels = {} if label is None else dict([label])
            yield Term(here - there, 1, labels, overall=label is None)

    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(
        metric,
        terms=terms,
        range=difference_range(metric.range),
        unit=unit,
        absent="no group counts in both runs",
    )


def difference_range(bounds: Range) -> Range:
    """The range of the difference of two values.

    Args:
        bounds: The range of each value.

    Returns:
        The smallest and the largest difference; None without a bound.

    >>> difference_range((0.0, 100.0))
    (-100.0, 100.0)
    """
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)


def paired(groups: Iterable[Group], metric: Metric, base: Metric, before: Before) -> dict[str, PairedValues]:
    """What `difference` averages over, by subset ('all', 'category=Attributes'): each group's two values."""
    values: defaultdict[str, list[tuple[float, float, int]]] = defaultdict(list)
    clusters: dict[str, int] = {}
    for group in groups:
        cluster = clusters.setdefault(group.cluster or group.id, len(clusters))
        for label, there, here in _both(metric, base, before, group):
            values["all" if label is None else "=".join(label)].append((there, here, cluster))
    found = {subset: tuple(zip(*rows, strict=True)) for subset, rows in values.items()}
    return {
        subset: PairedValues(np.array(there, float), np.array(here, float), np.array(numbers, np.intp))
        for subset, (there, here, numbers) in found.items()
    }


def _both(metric: Metric, base: Metric, before: Before, group: Group) -> Iterator[tuple[Label, float, float]]:
    """A group before and now, over all and under each label that both have a value for."""
    earlier = before(group)
    here, there = _means(metric.terms(group), group), _means(base.terms(earlier), earlier)
    for label, value in here.items():
        if label in there:
            yield label, there[label], value


def _means(terms: Iterable[Term], group: Group) -> dict[Label, float]:
    """The mean over a group, under None, and over its terms with each label: their own, or the group's."""
    sums: defaultdict[Label, float] = defaultdict(float)
    counts: defaultdict[Label, float] = defaultdict(float)
    for term in terms:
        carried: list[Label] = [None] if term.overall else []
        for name, values in (group.labels if term.labels is None else term.labels).items():
            carried += [(name, value) for value in ((values,) if isinstance(values, str) else values)]
        for label in carried:
            sums[label] += term.sum
            counts[label] += term.count
    return {label: total / counts[label] for label, total in sums.items() if counts[label]}
