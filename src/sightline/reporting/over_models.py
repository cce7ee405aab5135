"""Tables over models: correlations of metrics and their spread, and what the image adds to each task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from statistics import stdev
from typing import NamedTuple

import numpy as np

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark_class
from sightline.metrics.association import SPEARMAN, value_of
from sightline.metrics.statistics import Floats, correlation, correlation_interval
from sightline.reporting.notes import interval_notes
from sightline.reporting.table import (
    Cell,
    Column,
    Field,
    ReportTable,
    Value,
    build_table,
    estimate,
    n_cell,
)
from sightline.reporting.tables import leading_metrics
from sightline.types import MetricValue, Result

Coefficient = Callable[[Floats, Floats], float | None]


COEFFICIENTS: Mapping[str, tuple[str, Coefficient]] = {
    "pearson": ("Pearson", correlation),
    "spearman": ("Spearman", partial(value_of, SPEARMAN)),
}
"""`Benchmark.correlation` -> its name for a reader, and how it is computed."""

FEWEST_MODELS = 3


def over_models(results: Sequence[Result]) -> list[ReportTable]:
    """The correlations and the spread over models that the paper of a benchmark discusses.

    Of several tasks, the correlations of their first leading metrics. Nothing if a model was run twice.
    """
    tasks: dict[str, dict[str, Result]] = {}
    for result in results:
        of_task = tasks.setdefault(f"{result.benchmark}:{result.setting}", {})
        if of_task.setdefault(result.model_identity, result).options != result.options:
            return []
    if len(tasks) > 1:
        tables = [_between_tasks(tasks)]
    else:
        known, task = benchmark_class(results[0].benchmark), next(iter(tasks))
        of_models = list(tasks[task].values())
        tables = [_correlations(known, task, of_models), _spread(known, task, of_models)]
    return [table for table in tables if table.rows]


def _correlations(known: type[Benchmark], task: str, results: Sequence[Result]) -> ReportTable:
    """The correlation of each pair of metrics over at least three models that have both values."""
    rows: list[tuple[Cell, ...]] = []
    for first, second in known.correlated_metrics:
        points = [(_value(result, first), _value(result, second)) for result in results]
        both = [(x.value, y.value) for x, y in points if x and y]
        if len(both) >= FEWEST_MODELS:
            rows.append((first, second, _correlation(known.correlation, both), len(both)))
    columns = (
        Column("text", "metric", "first"),
        Column("text", "with", "second"),
        Column("value", f"{COEFFICIENTS[known.correlation][0]}\n95 %", known.correlation),
        Column("count", "models", "models"),
    )
    return ReportTable(f"{task}, over models", columns, tuple(rows), legend=(CORRELATION,) if rows else ())


def _between_tasks(tasks: Mapping[str, Mapping[str, Result]]) -> ReportTable:
    """The correlations of the first leading metrics of each two tasks over the models that have both."""
    leading = {
        task: leading_metrics(one.benchmark, [result.metrics for result in of_task.values()])[0]
        for task, of_task in tasks.items()
        for one in [next(iter(of_task.values()))]
    }
    rows: list[tuple[Cell, ...]] = []
    for first, second in combinations(tasks, 2):
        points = [
            (_value(result, leading[first]), _value(tasks[second][model], leading[second]))
            for model, result in tasks[first].items()
            if model in tasks[second]
        ]
        both = [(x.value, y.value) for x, y in points if x and y]
        if len(both) >= FEWEST_MODELS:
            names = (f"{first} {leading[first]}", f"{second} {leading[second]}")
            rows.append((*names, *(_correlation(kind, both) for kind in COEFFICIENTS), len(both)))
    columns = (
        Column("text", "metric", "first"),
        Column("text", "with", "second"),
        *(Column("value", f"{name}\n95 %", kind) for kind, (name, _) in COEFFICIENTS.items()),
        Column("count", "models", "models"),
    )
    return ReportTable("tasks, over models", columns, tuple(rows), legend=(CORRELATION,) if rows else ())


def _correlation(kind: str, points: Sequence[tuple[float | None, float | None]]) -> Value:
    value = COEFFICIENTS[kind][1](*np.array(points).T)
    bounds = None if value is None else correlation_interval(value, len(points), of_ranks=kind == "spearman")
    low, high = bounds or (None, None)
    return Value(value, low, high, "number")


CORRELATION = (
    "95 % CI of a correlation: Fisher's z, for Spearman with the variance of Bonett and Wright; it covers the"
    " choice of the models, needs 4 of them, and is wide for few"
)


def _spread(known: type[Benchmark], task: str, results: Sequence[Result]) -> ReportTable:
    """The sample standard deviation, minimum and maximum of each metric over at least three models."""
    rows: list[tuple[Cell, ...]] = []
    for name in known.spread_metrics:
        found = [m for m in (_value(result, name) for result in results) if m is not None]
        values = [m.value for m in found if m.value is not None]
        if len(values) >= FEWEST_MODELS:
            numbers = (stdev(values), min(values), max(values))
            rows.append((name, *(Value(number, unit=found[0].unit) for number in numbers), len(values)))
    columns = (
        Column("text", "metric", "metric"),
        Column("value", "standard\ndeviation", "deviation"),
        Column("value", "least", "least"),
        Column("value", "most", "most"),
        Column("count", "models", "models"),
    )
    return ReportTable(f"{task}, spread over models", columns, tuple(rows))


def _value(result: Result, name: str) -> MetricValue | None:
    """The metric over all samples; None without a value."""
    found = (m for m in result.metrics if m.metric == name and m.subset == "all" and m.value is not None)
    return next(found, None)


# -- What the image adds, by task and model


class ImageRow(NamedTuple):
    """A metric of a run with images, of one without them, and the difference; `others` are other options that
    differ. `chance` is None if it is not one number."""

    task: str
    model: str
    values: Sequence[MetricValue]
    chance: float | None
    others: Sequence[str]


def image_table(rows: Sequence[ImageRow]) -> ReportTable:
    """A table of each metric with and without the images of the same samples (II-Bench, Table 6)."""
    fields: list[Field[ImageRow]] = [
        (Column("text", "task", "task"), lambda row: row.task),
        (Column("text", "model", "model"), lambda row: row.model),
        (Column("text", "metric", "metric"), lambda row: row.values[0].metric),
        (Column("value", "with\n95 %", "with"), lambda row: estimate(row.values[0])),
        (Column("value", "without\n95 %", "without"), lambda row: estimate(row.values[1])),
        (Column("value", "chance", "chance"), lambda row: None if row.chance is None else Value(row.chance)),
        (Column("value", "with - without\n95 %", "difference"), lambda row: estimate(row.values[2])),
        (Column("count", "n", "n"), lambda row: n_cell(row.values[2])),
    ]
    notes = [
        f"{row.task}, {row.model}: the runs also differ in {', '.join(row.others)}"
        for row in rows
        if row.others
    ]
    legend = (
        "without: the same samples without their images. A value above chance may be leakage, or what the"
        " text alone gives away; the difference is paired by group",
        *interval_notes([value for row in rows for value in row.values]),
    )
    return build_table("with and without the image", fields, rows, notes, legend)
