"""The compact table of a result by one label: leading metrics with the first figures of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sightline.metric_types import MetricValue, PublishedValue, Result
from sightline.reporting.leading import leading_metrics
from sightline.reporting.notes import label_of, published_notes, value_notes
from sightline.reporting.report_table import (
    Column,
    Field,
    ReportTable,
    build_table,
    clusters_cell,
    heading,
    n_cell,
    published_cell,
    value_cell,
)


def breakdown(result: Result, label: str) -> ReportTable | None:
    """The leading metrics under each value of a label.

    The leading metrics are `Benchmark.leading_metrics`, or the first three of the label. n and clusters are
    those of the first metric; a note gives the n of metrics that average over other numbers. Published
    figures are those of the first metric, and of others for which the paper prints none over all samples, so
    that no other table shows them (CODIS, Table 6).

    Returns:
        The table; None if none of the metrics has a value under the label.
    """
    lines = _lines(result, label)
    defined = {name for line in lines for name, metric in line.metrics.items() if metric.value is not None}
    shown = [name for name in leading_metrics(result.benchmark, [result.metrics], label) if name in defined]
    if not shown:
        return None
    first, *others = shown
    overall = {metric.metric for metric in result.metrics if metric.subset == "all" and metric.published}
    compared = [first, *(name for name in others if name not in overall)]
    fields: list[Field[_LabelRow]] = [
        (Column("text", heading(label), label), lambda line: line.label),
        (Column("count", "n", "n"), lambda line: n_cell(line.metrics.get(first))),
        (Column("count", "clusters", "clusters"), lambda line: clusters_cell(line.metrics.get(first))),
        *(_value_field(name) for name in shown),
        *(
            field
            for name in compared
            for field in _published_fields(lines, name, f"{name}\n" if others else "")
        ),
    ]
    values = [
        (line.label, value) for name in compared for line in lines for value in line.published(name).values()
    ]
    metrics = [line.metrics[name] for line in lines for name in shown if name in line.metrics]
    notes = [*_other_counts(lines, first, others), *published_notes(values), *value_notes(metrics)]
    return build_table(f"By {label}", fields, lines, notes)


class _LabelRow(Struct, frozen=True):
    """A row: a value of the label, and the metrics under it."""

    label: str
    metrics: Mapping[str, MetricValue]

    def published(self, name: str) -> dict[str, PublishedValue]:
        """The first figure for a metric in each row of the paper."""
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


def _value_field(name: str) -> Field[_LabelRow]:
    return Column("value", f"{name}\n95 %", name), lambda line: value_cell(line.metrics.get(name))


def _published_fields(lines: Sequence[_LabelRow], name: str, head: str) -> list[Field[_LabelRow]]:
    tables = {row: value.table for line in lines for row, value in line.published(name).items()}
    return [_published_field(name, row, f"{head}{row}\n{tables[row]}") for row in _rows(lines, name)]


def _published_field(name: str, row: str, head: str) -> Field[_LabelRow]:
    column = Column("published", head, f"{name} {row}", differences=False)
    return column, lambda line: published_cell(line.metrics.get(name), line.published(name).get(row))


def _rows(lines: Sequence[_LabelRow], name: str) -> list[str]:
    """The rows of the paper in the order of the figures."""
    published = (line.metrics[name].published or [] for line in lines if name in line.metrics)
    return list(dict.fromkeys(value.row for values in published for value in values))


def _other_counts(lines: Sequence[_LabelRow], first: str, others: Sequence[str]) -> list[str]:
    """The numbers that metrics average over if they differ from those of the first metric."""
    counts = {
        name: [f"{line.metrics[name].n:g}" if name in line.metrics else "none" for line in lines]
        for name in (first, *others)
    }
    return [
        f"n is that of {first}; of {name}: {', '.join(counts[name])}"
        for name in others
        if counts[name] != counts[first]
    ]
