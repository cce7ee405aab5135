"""The results on a page, and what it looks up in them: values by label, scales, leading metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from sightline.benchmarks.published import paper_of
from sightline.metric_types import MetricValue, Result
from sightline.outcome_index.group_filter import GroupFilter
from sightline.registry import benchmark_class
from sightline.reporting.html.plots import PERCENT_SCALE, Scale, scale_of
from sightline.reporting.leading import leading_metrics
from sightline.reporting.notes import label_of


class NamedResult(Struct, frozen=True):
    """A result, and what the page calls it.

    Attributes:
        count: The number of groups that a filter selects; None where the answers are not indexed.
    """

    name: str
    result: Result
    count: Callable[[GroupFilter], int] | None = None

    def value(self, metric: str, subset: str = "all") -> MetricValue | None:
        """The value of a metric over a subset; None if the result has none."""
        found = (one for one in self.result.metrics if one.metric == metric and one.subset == subset)
        return next(found, None)

    def by_label(self, metric: str, label: str) -> dict[str, MetricValue]:
        """The values of a metric under each value of a label, in the order of the result."""
        return {
            value: one
            for one in self.result.metrics
            if one.metric == metric and (found := label_of(one))[0] == label and (value := found[1])
        }


def leading(runs: Sequence[NamedResult]) -> list[str]:
    """The metrics that lead the page of some runs of one benchmark."""
    return leading_metrics(runs[0].result.benchmark, [run.result.metrics for run in runs])


def human_rows(benchmark: str) -> Sequence[str]:
    paper = paper_of(benchmark)
    return paper.human_rows if paper else ()


def chance_of(benchmark: str, metric: str) -> float | None:
    """The value that guessing gives, if it is one number."""
    return benchmark_class(benchmark).chance_levels.get(metric)


def metric_scale(runs: Sequence[NamedResult], metric: str, values: Iterable[MetricValue]) -> Scale:
    definitions = (run.result.metric_definitions.get(metric) for run in runs)
    definition = next((one for one in definitions if one is not None), None)
    if definition is None:
        return PERCENT_SCALE
    numbers = [number for one in values for number in (one.value, one.low, one.high)]
    return scale_of(definition.range, numbers)


def meaning(runs: Sequence[NamedResult], metric: str) -> str:
    """What a metric means, in one line; '' if the results do not say."""
    definitions = (run.result.metric_definitions.get(metric) for run in runs)
    return next((one.meaning for one in definitions if one is not None), "")


def number_of(value: MetricValue | None) -> float:
    return 0.0 if value is None or value.value is None else value.value


def words_of(label: str) -> str:
    """What a page calls a label."""
    return label.replace("_", " ")
