"""Statistics over models: correlations of two metrics, and the spread of a metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import stdev

import numpy as np

from sightline.metric_types import MetricValue, Result
from sightline.metrics.association import SPEARMAN, value_of
from sightline.metrics.statistics import Floats, correlation
from sightline.registry import benchmark_class
from sightline.reporting.report_table import Cell, Column, ReportTable, Value

Coefficient = Callable[[Floats, Floats], float | None]


COEFFICIENTS: Mapping[str, tuple[str, Coefficient]] = {
    "pearson": ("Pearson", correlation),
    "spearman": ("Spearman", partial(value_of, SPEARMAN)),
}
"""`Benchmark.correlation` -> its name for a reader, and how it is computed."""

FEWEST_MODELS = 3


def over_models(results: Sequence[Result]) -> list[ReportTable]:
    """The correlations and the spread over models that the paper of a benchmark discusses."""
    kinds = {(result.benchmark, result.setting) for result in results}
    models = {result.model_identity for result in results}
    swept = len({(result.model_identity, repr(result.options)) for result in results}) > len(models)
    if len(kinds) != 1 or swept:
        return []
    return [table for table in (_correlations(results), _spread(results)) if table is not None]


def _correlations(results: Sequence[Result]) -> ReportTable | None:
    """The correlation of each pair of metrics over at least three models that have both values."""
    known = benchmark_class(results[0].benchmark)
    name, coefficient = COEFFICIENTS[known.correlation]
    rows = []
    for first, second in known.correlated_metrics:
        points = [(_value(result, first), _value(result, second)) for result in results]
        both = [(x, y) for x, y in points if x is not None and y is not None]
        if len(both) >= FEWEST_MODELS:
            value = coefficient(*np.array(both).T)
            rows.append((first, second, Value(value, unit="number"), len(both)))
    columns = (
        Column("text", "metric", "first"),
        Column("text", "with", "second"),
        Column("value", name, known.correlation),
        Column("count", "models", "models"),
    )
    return ReportTable(f"{_kind(results)}, over models", columns, tuple(rows)) if rows else None


def _spread(results: Sequence[Result]) -> ReportTable | None:
    """The sample standard deviation, minimum and maximum of each metric over at least three models."""
    rows: list[tuple[Cell, ...]] = []
    for name in benchmark_class(results[0].benchmark).spread_metrics:
        found = [m for m in (_metric(result, name) for result in results) if m is not None]
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
    return ReportTable(f"{_kind(results)}, spread over models", columns, tuple(rows)) if rows else None


def _kind(results: Sequence[Result]) -> str:
    return f"{results[0].benchmark}:{results[0].setting}"


def _value(result: Result, name: str) -> float | None:
    metric = _metric(result, name)
    return None if metric is None else metric.value


def _metric(result: Result, name: str) -> MetricValue | None:
    return next((m for m in result.metrics if m.metric == name and m.subset == "all"), None)
