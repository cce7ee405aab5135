"""Two runs beside each other, and how far the second is from the first."""

from __future__ import annotations

from collections.abc import Collection

from sightline.evaluation.compare import Comparison
from sightline.report.grid import Column, Field, Table, clusters_cell, n_cell, table, value_cell
from sightline.report.varied import short_names
from sightline.types import MetricValue, Result

NOTE = (
    "difference: the second run less the first within each group, averaged over groups; its 95 % interval"
    " resamples clusters, both runs together"
)


def comparison_table(comparison: Comparison, metrics: Collection[str], by: str | None) -> Table:
    """A row for each metric over all groups and, where `by` names a label, under each of its values."""
    rows = [
        change
        for change in comparison.differences
        if change.metric in metrics and (change.subset == "all" or change.subset.partition("=")[0] == by)
    ]
    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        _of_run("base", comparison.runs[0], comparison.base),
        _of_run("other", comparison.runs[1], comparison.other),
        (Column("value", "difference\n95 %", "difference"), value_cell),
        (Column("count", "groups", "groups"), n_cell),
        (Column("count", "clusters", "clusters"), clusters_cell),
    ]
    notes = [NOTE]
    if comparison.alone:
        notes.append(f"{comparison.alone:,} groups are in one of the runs alone, and are left out")
    return table(f"{comparison.other.benchmark}:{comparison.other.setting}", fields, rows, notes)


def _of_run(key: str, run: int, result: Result) -> Field[MetricValue]:
    values = {(metric.metric, metric.subset): metric for metric in result.metrics}
    name = short_names([result.model])[result.model]
    return (
        Column("value", f"run {run}\n{name}", key),
        lambda change: value_cell(values.get((change.metric, change.subset))),
    )
