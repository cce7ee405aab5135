"""Draws the chart of a command's table and writes it: which function draws which kind of chart."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import paper_of
from sightline.errors import UserError, unknown_name
from sightline.formats.files import write_atomically
from sightline.formats.jsonl import are_named
from sightline.metrics.significance import Comparison
from sightline.reporting.chart_kinds import (
    ChartKind,
    bars,
    curves,
    forest,
    matrix,
    numeric_options,
    radar,
    scatter,
)
from sightline.reporting.chart_parts import Chart, ChartValue
from sightline.reporting.judges import JudgeReport, with_short_names
from sightline.reporting.notes import ResultPoint, label_of, row_names, short_names
from sightline.reporting.pivot import in_label_order, value_labels
from sightline.reporting.tables import leading_metrics, run_names, title_of
from sightline.types import MetricValue, Result, split_subset

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LABEL_DRAWERS = {"forest": forest, "bars": bars, "radar": radar}


class ChartRequest(Struct, frozen=True):
    """What the user asks of a chart; `kind` is None for that of the table."""

    path: Path
    kind: ChartKind | None = None
    metrics: tuple[str, ...] = ()
    columns: PaperColumns = 2

    @property
    def width(self) -> float:
        """The width in inches."""
        return WIDTHS[self.columns]


def draw_results(
    points: Sequence[ResultPoint],
    request: ChartRequest,
    *,
    by: str | None = None,
    pivot: bool = False,
    runs: Sequence[str] = (),
) -> ChartKind:
    kind = request.kind or default_chart(points, by, pivot=pivot)
    results = [point.result for point in points]

    def figure() -> Figure:
        match kind:
            case "curves":
                return curves(points, request.width, request.metrics)
            case "scatter":
                return scatter(results, request.width, request.metrics, runs)
            case "matrix":
                return matrix(title_of(results, by, runs), _agreements(results), request.width)
            case _ if pivot and by is None:
                return LABEL_DRAWERS[kind](varied_chart(points, request.metrics), request.width)
        return LABEL_DRAWERS[kind](results_chart(results, by, request.metrics, runs), request.width)

    write_chart(request.path, figure)
    return kind


def draw_comparison(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float | None, request: ChartRequest
) -> None:
    """Draw the differences of a comparison; `margin` is in percentage points."""
    _write(request, comparison_chart(comparison, rows, margin))


def draw_judges(report: JudgeReport, request: ChartRequest) -> None:
    """Draw a judge report: the judges over all answers, or with the kind `matrix` every two humans."""
    if request.kind == "matrix":
        pairs = report.humans.pairs
        write_chart(request.path, lambda: matrix("Agreement of every two humans", pairs, request.width))
    else:
        _write(request, judges_chart(report))


def _write(request: ChartRequest, chart: Chart) -> None:
    write_chart(request.path, lambda: forest(chart, request.width))


def _agreements(results: Sequence[Result]) -> list[MetricValue]:
    """The agreement of every two judges of the first result."""
    return [metric for metric in results[0].metrics if metric.subset.startswith("judges=")]


# -- The charts of results: which one a table has, and its values


def default_chart(points: Sequence[ResultPoint], by: str | None, *, pivot: bool) -> ChartKind:
    """The chart of a table of results; `by` is its label."""
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
    """Every metric of one result, or the leading ones of several; the values of the label `by` are rows."""
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


# -- The chart of a comparison: a forest plot of its differences


def comparison_chart(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float | None = None
) -> Chart:
    """The differences of a table, with the margin of equivalence in percentage points."""
    labelled = any(row.subset != "all" for row in rows)
    values = tuple(
        ChartValue(f"difference of {row.metric}", split_subset(row.subset)[1] or "all", "", row)
        if labelled
        else ChartValue("difference", row.metric, "", row)
        for row in rows
        if row.value is not None
    )
    if not values:
        raise UserError("nothing to plot: no difference of the table has a value")
    base, other = comparison.sides
    return Chart(
        f"{comparison.task}: {_named(other.runs, other.model)} minus {_named(base.runs, base.model)}",
        values,
        zero=True,
        margin=margin,
    )


def _named(runs: Sequence[str], model: str) -> str:
    """One side: its names; of runs without a name also the model."""
    if are_named(runs):
        return ", ".join(runs)
    return f"{', '.join(runs)} ({short_names([model])[model]})"


# -- The chart of a judge report: every judge compared with the majority of the humans

MEASURES = ("roc_auc", "spearman", "agreement")
NAMES = {"roc_auc": "ROC-AUC", "spearman": "Spearman", "agreement": "agreement"}


def judges_chart(report: JudgeReport) -> Chart:
    values = [
        ChartValue(NAMES[name], row.judge, "", metric)
        for name in MEASURES
        for row in with_short_names(report).rows
        if row.subset == "all" and (metric := getattr(row, name)).value is not None
    ]
    return Chart(
        "Judges and metrics compared with the human majority",
        tuple(values),
        ranges={NAMES["spearman"]: (-1.0, 1.0)},
    )


# -- The file of a chart: PNG, SVG or PDF for one or two columns of a paper; equal data give equal bytes

FORMS: Mapping[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}
"""The file types, and the metadata that would differ between two calls or two versions."""

PaperColumns = Literal[1, 2]

WIDTHS: Mapping[PaperColumns, float] = {1: 3.35, 2: 6.9}
"""The width of a chart in inches: 85 and 175 mm, one and two columns of a paper."""

SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.linewidth": 0.6,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "hatch.linewidth": 0.6,
    # Ids inside an SVG would be random, and its letters depend on the fonts of the reader.
    "svg.hashsalt": "sightline",
    "svg.fonttype": "path",
    # TrueType: publishers refuse Type 3 fonts.
    "pdf.fonttype": 42,
}


def check_chart_file(path: Path) -> None:
    """Check before any work that a chart can be written."""
    from importlib.util import find_spec

    if path.suffix.lower() not in FORMS:
        raise UserError(
            "unknown file type for a plot", file=path, expected="a name ending in .svg, .pdf or .png"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(
            "cannot be written: not a file in an existing folder",
            file=path,
            expected="a file name in an existing folder",
        )
    if find_spec("matplotlib") is None:
        raise UserError("plots need matplotlib", expected="pip install 'sightline[plot]'")


def write_chart(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a chart and write it; the user's settings of matplotlib change nothing."""
    import matplotlib

    form = path.suffix.lower()
    file = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        draw().savefig(file, format=form[1:], dpi=300, metadata=FORMS[form])
    write_atomically(path, [file.getvalue()])
