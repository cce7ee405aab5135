"""What changes from one run to another on the same groups: every metric as a difference within a group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from sightline.types import Group, Metric, Term, Unit

BASE = "base"
"""The partner of a group that it is held against: the outcomes of the same probes in the other run."""

Label = tuple[str, str] | None


def difference(metric: Metric) -> Metric:
    """The metric of a group less that of its partner BASE, averaged over groups; under each label, that of
    the terms which carry it.

    For groups of equal size the mean of these is the difference of the two runs' values.
    """
    unit: Unit = "points" if metric.unit == "percent" else metric.unit
    return replace(metric, terms=_apart(metric.terms), unit=unit, absent="no group counts in both runs")


def before(group: Group) -> Group:
    """The group as it was in the run that it is held against."""
    return replace(group, outcomes=group.partners[BASE], partners={})


def _apart(terms: Callable[[Group], Iterable[Term]]) -> Callable[[Group], Iterator[Term]]:
    def apart(group: Group) -> Iterator[Term]:
        here, there = _means(terms(group)), _means(terms(before(group)))
        for label, value in here.items():
            if label in there:
                labels = {} if label is None else dict([label])
                yield Term(value - there[label], 1, labels, overall=label is None)

    return apart


def _means(terms: Iterable[Term]) -> dict[Label, float]:
    """The mean over a group, under None, and over its terms with each label."""
    sums: defaultdict[Label, float] = defaultdict(float)
    counts: defaultdict[Label, float] = defaultdict(float)
    for term in terms:
        carried: list[Label] = [None] if term.overall else []
        for name, values in (term.labels or {}).items():
            carried += [(name, value) for value in ((values,) if isinstance(values, str) else values)]
        for label in carried:
            sums[label] += term.sum
            counts[label] += term.count
    return {label: total / counts[label] for label, total in sums.items() if counts[label]}
