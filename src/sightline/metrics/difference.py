"""What changes from one run to another on the same groups: every metric as a difference within a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sightline.types import Group, Metric, Term, Unit

Label = tuple[str, str] | None
Before = Callable[[Group], Group]
"""The same group in the run that it is held against, with the judgements of that run."""


def difference(metric: Metric, base: Metric, before: Before) -> Metric:
    """The metric of a group less `base` of the same group before, averaged over groups; under each label,
    that of the terms which carry it.

    For groups of equal size the mean of these is the difference of the two runs' values.
    """

    def terms(group: Group) -> Iterator[Term]:
        earlier = before(group)
        here, there = _means(metric.terms(group), group), _means(base.terms(earlier), earlier)
        for label, value in here.items():
            if label in there:
                labels = {} if label is None else dict([label])
                yield Term(value - there[label], 1, labels, overall=label is None)

    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(metric, terms=terms, unit=unit, absent="no group counts in both runs")


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
