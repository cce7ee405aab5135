"""The charts of results: which one a table has, and its values."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.benchmarks.published import paper_of
from sightline.errors import UserError, unknown_name
from sightline.metric_types import MetricValue, Result
from sightline.registry import benchmark_class
from sightline.reporting.charts.chart_values import Chart, ChartKind, ChartValue
from sightline.reporting.leading import leading_metrics
from sightline.reporting.notes import label_of
from sightline.reporting.pivot import in_label_order, value_labels
from sightline.reporting.tables import run_names, title_of
from sightline.reporting.varied_options import ResultPoint, row_names


def default_chart(points: Sequence[ResultPoint], by: str | None, *, pivot: bool) -> ChartKind:
    """The chart of a table of results.

    Args:
        by: The label of the table; None for a table over all samples.
    """
    from sightline.reporting.charts.curves import numeric_options

    if len(numeric_options([point.values for point in points])) == 1:
        return "curves"
    if by == "judges":
        return "matrix"
    if by in benchmark_class(points[0].result.benchmark).radar_labels:
        return "radar"
    return "bars" if pivot else "forest"


def results_chart(
    results: Sequence[Result],
    by: str | None = None,
    metrics: Sequence[str] = (),
    runs: Sequence[str] = (),
) -> Chart:
    """The values of a chart of results: every metric of one result, or the leading ones of several or by a
    label.

    Args:
        by: The label whose values are rows; None for the metrics over all samples.
    """
    chosen = _chosen(results, by, metrics)
    names = run_names(results, runs) if len(results) > 1 else [""]
    held = [
        (name, metric)
        for name, result in zip(names, results, strict=True)
        for metric in result.metrics
        if metric.metric in chosen and label_of(metric)[0] == (by or "") and metric.value is not None
    ]
    held.sort(key=lambda one: chosen.index(one[1].metric))
    if not held:
        raise UserError("nothing to plot: no metric of the table has a value")
    values = tuple(
        ChartValue(metric.metric, label_of(metric)[1], name, metric)
        if by
        else ChartValue(_over_all(metric), metric.metric, name, metric)
        for name, metric in held
    )
    return Chart(
        title_of(results, by, runs), values, humans=_humans(results), ranges=_ranges(results, values)
    )


def varied_chart(points: Sequence[ResultPoint], metrics: Sequence[str] = ()) -> Chart:
    """The values of a chart with models as rows and varied options as series."""
    results = [point.result for point in points]
    points = in_label_order(points)
    chosen = _chosen(results, None, metrics, several=True)
    values = [
        ChartValue(metric.metric, name, ", ".join(value_labels(point)), metric)
        for name, point in zip(row_names(points), points, strict=True)
        for metric in point.result.metrics
        if metric.metric in chosen and metric.subset == "all" and metric.value is not None
    ]
    values.sort(key=lambda value: chosen.index(value.panel))
    if not values:
        raise UserError("nothing to plot: no metric of the table has a value")
    return Chart(
        title_of(results, None), tuple(values), humans=_humans(results), ranges=_ranges(results, values)
    )


def _chosen(
    results: Sequence[Result], by: str | None, metrics: Sequence[str], *, several: bool = False
) -> list[str]:
    """The metrics that a chart shows."""
    shown = [[m for m in result.metrics if label_of(m)[0] == (by or "")] for result in results]
    if by is not None and not any(shown):
        labels = (label_of(m)[0] for result in results for m in result.metrics if m.subset != "all")
        raise unknown_name("label", by, dict.fromkeys(labels))
    known = list(dict.fromkeys(metric.metric for run in shown for metric in run))
    for name in metrics:
        if name not in known:
            raise unknown_name("metric of the plot", name, known)
    if metrics:
        return list(dict.fromkeys(metrics))
    if by is None and len(results) == 1 and not several:
        return known
    return leading_metrics(results[0].benchmark, [result.metrics for result in results], by)


def _over_all(metric: MetricValue) -> str:
    """The panel of a metric over all samples: metrics of one unit share an axis."""
    return {"percent": "value", "points": "difference", "number": metric.metric}[metric.unit]


def _ranges(
    results: Sequence[Result], values: Sequence[ChartValue]
) -> dict[str, tuple[float | None, float | None]]:
    """The range of each panel; that of differences is what is drawn."""
    defined = {name: one.range for result in results for name, one in result.metric_definitions.items()}
    return {
        value.panel: defined.get(value.metric.metric, (None, None))
        for value in values
        if value.metric.unit == "number"
    } | {value.panel: (None, None) for value in values if value.metric.unit == "points"}


def _humans(results: Sequence[Result]) -> Sequence[str]:
    paper = paper_of(results[0].benchmark)
    return () if paper is None else paper.human_rows
