"""Runs beside each other, and how far the second ones are from the first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from sightline.errors import unknown_name
from sightline.evaluation.compare import Comparison
from sightline.report.grid import Column, Field, Table, clusters_cell, n_cell, table, value_cell
from sightline.report.varied import short_names
from sightline.types import MetricValue

NOTE = (
    "difference: the second run less the first within each group, averaged over groups; its 95 % interval"
    " resamples clusters, both runs together"
)

TOGETHER = "{} together: a group counts once in each, and the interval is of the data, not of seeds"


def comparison_table(comparison: Comparison, metrics: Collection[str], by: str | None) -> Table:
    """A row for each metric over all groups and, where `by` names a label, under each of its values."""
    rows = [
        change
        for change in comparison.differences
        if change.metric in metrics and (change.subset == "all" or change.subset.partition("=")[0] == by)
    ]
    bases, others = (list(dict.fromkeys(runs)) for runs in zip(*comparison.runs, strict=True))
    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda change: change.metric),
        (Column("text", "subset", "subset"), lambda change: change.subset),
        _of_runs("base", bases, comparison.models[0], comparison.base),
        _of_runs("other", others, comparison.models[1], comparison.other),
        (Column("value", "difference\n95 %", "difference"), value_cell),
        (Column("count", "groups", "groups"), n_cell),
        (Column("count", "clusters", "clusters"), clusters_cell),
    ]
    notes = [NOTE]
    if comparison.each:
        fields.append((Column("text", "of each", "each"), partial(each_pair, comparison)))
        notes.append(TOGETHER.format(f"{len(comparison.runs)} pairs of runs"))
    if comparison.alone:
        notes.append(f"{comparison.alone:,} groups are in one of the runs alone, and are left out")
    return table(comparison.task, fields, rows, notes)


def check_label(by: str | None, comparisons: Sequence[Comparison]) -> None:
    """Raise UserError for a label under which these comparisons tell nothing."""
    subsets = (change.subset for comparison in comparisons for change in comparison.differences)
    known = list(dict.fromkeys(subset.partition("=")[0] for subset in subsets if subset != "all"))
    if by is not None and by not in known:
        raise unknown_name("label", by, known)


def each_pair(comparison: Comparison, change: MetricValue) -> str:
    """A difference in each pair of runs alone."""
    place = (change.metric, change.subset)
    values = [{(one.metric, one.subset): one.value for one in pair}.get(place) for pair in comparison.each]
    return " ".join("-" if value is None else f"{value:+.1f}" for value in values)


def _of_runs(key: str, runs: Sequence[int], model: str, metrics: Sequence[MetricValue]) -> Field[MetricValue]:
    values = {(metric.metric, metric.subset): metric for metric in metrics}
    title = f"run{'s' if len(runs) > 1 else ''} {', '.join(map(str, runs))}\n{short_names([model])[model]}"
    return Column("value", title, key), lambda change: value_cell(values.get((change.metric, change.subset)))
