"""The compact table of a result by one label: the leading metrics beside the paper's first figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sightline.metric_types import MetricValue, PublishedValue, Result
from sightline.registry import benchmark_class
from sightline.report.notes import published_notes, value_notes
from sightline.report.report_table import (
    Column,
    Field,
    ReportTable,
    build_table,
    clusters_cell,
    n_cell,
    published_cell,
    value_cell,
)


def breakdown(result: Result, label: str) -> ReportTable | None:
    """The leading metrics under each value of `label`; None where none of them has a value there.

    Those that its benchmark names (`Benchmark.leading_metrics`); where a label has none of them, its first
    three. n, clusters and the published figures are those of the first metric; where another averages over
    other numbers, a note says over which.
    """
    lines = _lines(result, label)
    shown = _leading(result.benchmark, lines)
    if not shown:
        return None
    first, *others = shown
    fields: list[Field[_LabelRow]] = [
        (Column("text", label, label), lambda line: line.label),
        (Column("count", "n", "n"), lambda line: n_cell(line.metrics.get(first))),
        (Column("count", "clusters", "clusters"), lambda line: clusters_cell(line.metrics.get(first))),
        *(_value_field(name) for name in shown),
        *_printed_fields(lines, first, f"{first}\n" if others else ""),
    ]
    values = [(line.label, value) for line in lines for value in line.published(first).values()]
    metrics = [line.metrics[name] for line in lines for name in shown if name in line.metrics]
    notes = [*_other_counts(lines, first, others), *published_notes(values), *value_notes(metrics)]
    return build_table(f"By {label}", fields, lines, notes)


def label_of(metric: MetricValue) -> tuple[str, str]:
    """'category=Attributes' -> ('category', 'Attributes'); 'all' -> ('', '')."""
    name, _, value = metric.subset.partition("=")
    return (name, value) if value else ("", "")


class _LabelRow(Struct, frozen=True):
    """A row in the making: a value of the label, and the metrics under it."""

    label: str
    metrics: Mapping[str, MetricValue]

    def published(self, name: str) -> dict[str, PublishedValue]:
        """Of each row of the paper its first figure for this metric."""
        metric = self.metrics.get(name)
        values = (metric.published if metric else None) or []
        return {value.row: value for value in reversed(values)}


def _lines(result: Result, label: str) -> list[_LabelRow]:
    metrics: dict[str, dict[str, MetricValue]] = {}
    for metric in result.metrics:
        name, value = label_of(metric)
        if name == label:
            metrics.setdefault(value, {})[metric.metric] = metric
    return [_LabelRow(value, under) for value, under in metrics.items()]


def _leading(benchmark: str, lines: Sequence[_LabelRow]) -> list[str]:
    carried = list(dict.fromkeys(name for line in lines for name in line.metrics))
    leading = [name for name in benchmark_class(benchmark).leading_metrics if name in carried] or carried[:3]
    defined = {name for line in lines for name, metric in line.metrics.items() if metric.value is not None}
    return [name for name in leading if name in defined]


def _value_field(name: str) -> Field[_LabelRow]:
    return Column("value", f"{name}\n95 %", name), lambda line: value_cell(line.metrics.get(name))


def _printed_fields(lines: Sequence[_LabelRow], name: str, head: str) -> list[Field[_LabelRow]]:
    tables = {row: value.table for line in lines for row, value in line.published(name).items()}
    return [_printed_field(name, row, f"{head}{row}\n{tables[row]}") for row in _rows(lines, name)]


def _printed_field(name: str, row: str, head: str) -> Field[_LabelRow]:
    column = Column("published", head, f"{name} {row}", differences=False)
    return column, lambda line: published_cell(line.metrics.get(name), line.published(name).get(row))


def _rows(lines: Sequence[_LabelRow], name: str) -> list[str]:
    """The paper's rows in the order in which they were attached."""
    published = (line.metrics[name].published or [] for line in lines if name in line.metrics)
    return list(dict.fromkeys(value.row for values in published for value in values))


def _other_counts(lines: Sequence[_LabelRow], first: str, others: Sequence[str]) -> list[str]:
    """Which numbers the other metrics average over, where these are not the first one's."""
    counts = {
        name: [f"{line.metrics[name].n:g}" if name in line.metrics else "none" for line in lines]
        for name in (first, *others)
    }
    return [
        f"n is that of {first}; of {name}: {', '.join(counts[name])}"
        for name in others
        if counts[name] != counts[first]
    ]
