"""Draws the chart of a command's table or of a page: its values, its kind, and the file or the image."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import paper_of
from sightline.errors import UserError, unknown_name
from sightline.formats.files import write_atomically
from sightline.formats.jsonl import are_named
from sightline.metrics.significance import Comparison
from sightline.reporting.chart_kinds import (
    Chart,
    ChartKind,
    ChartValue,
    bars,
    curves,
    forest,
    matrix,
    numeric_options,
    radar,
    scatter,
)
from sightline.reporting.judges import JudgeReport, with_short_names
from sightline.reporting.notes import ResultPoint, definitions_of, label_of, row_names, short_names
from sightline.reporting.pivot import in_label_order, value_labels
from sightline.reporting.tables import leading_metrics, run_names, title_of
from sightline.types import MetricValue, Range, Result, split_subset

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
                named = zip(run_names(results, runs), results, strict=True)
                pairs = {
                    run: [one for one in of.metrics if label_of(one)[0] == "judges"] for run, of in named
                }
                return matrix(title_of(results, by, runs), pairs, request.width)
            case _ if pivot and by is None:
                return LABEL_DRAWERS[kind](varied_chart(points, request.metrics), request.width)
        return LABEL_DRAWERS[kind](results_chart(results, by, request.metrics, runs), request.width)

    write_chart(request.path, figure)
    return kind


def draw_comparison(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float | None, request: ChartRequest
) -> None:
    """Draw the differences of a comparison; `margin` is in percentage points."""
    chart = comparison_chart(comparison, rows, margin)
    write_chart(request.path, lambda: forest(chart, request.width))


def draw_judges(report: JudgeReport, request: ChartRequest) -> None:
    """Draw a judge report: the judges over all answers, or with the kind `matrix` every two humans."""
    if request.kind == "matrix":
        pairs = report.humans.pairs
        write_chart(request.path, lambda: matrix("Agreement of every two humans", {"": pairs}, request.width))
    else:
        chart = judges_chart(report)
        write_chart(request.path, lambda: forest(chart, request.width))


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
    values = [
        ChartValue(metric.metric, label_of(metric)[1], name, metric)
        if by
        else ChartValue(_over_all(metric), metric.metric, name, metric)
        for name, result in zip(names, results, strict=True)
        for metric in result.metrics
        if label_of(metric)[0] == (by or "")
    ]
    return _chart(title_of(results, by, runs), results, values, chosen)


def varied_chart(points: Sequence[ResultPoint], metrics: Sequence[str] = ()) -> Chart:
    """The values of a chart with models as rows and varied options as series."""
    results = [point.result for point in points]
    points = in_label_order(points)
    values = [
        ChartValue(metric.metric, name, ", ".join(value_labels(point)), metric)
        for name, point in zip(row_names(points), points, strict=True)
        for metric in point.result.metrics
        if metric.subset == "all"
    ]
    return _chart(title_of(results, None), results, values, _chosen(results, None, metrics, several=True))


def _chart(
    title: str, results: Sequence[Result], values: Sequence[ChartValue], chosen: Sequence[str]
) -> Chart:
    """The chart of the chosen metrics, in their order; the range of differences is what is drawn."""
    values = [one for one in values if one.metric.metric in chosen and one.metric.value is not None]
    if not values:
        raise UserError("nothing to plot: no metric of the table has a value")
    defined = definitions_of(results)
    ranges: dict[str, Range] = {}
    for value in values:
        definition = defined.get(value.metric.metric) if value.metric.unit == "number" else None
        if value.metric.unit != "percent":
            ranges[value.panel] = definition.range if definition else (None, None)
    paper = paper_of(results[0].benchmark)
    return Chart(
        title,
        tuple(sorted(values, key=lambda one: chosen.index(one.metric.metric))),
        humans=paper.human_rows if paper else (),
        ranges=ranges,
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


# -- The file or the image of a chart: equal data give equal bytes

FORMS: Mapping[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}
"""The file types, and the metadata that would differ between two calls or two versions."""

PaperColumns = Literal[1, 2]

WIDTHS: Mapping[PaperColumns, float] = {1: 3.35, 2: 6.9}
"""The width of a chart in inches: 85 and 175 mm, one and two columns of a paper."""

PAGE_INCHES = 4.6
"""The width of a chart in a page, which is legible on narrow screens too."""

Theme = Literal["light", "dark"]

THEMES: Mapping[Theme, Sequence[str]] = {
    "light": (
        *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B"),
        *("#555555", "#c8c8c8", "#000000", "#ffffff"),
    ),
    "dark": (
        *("#3F9BE0", "#E8702A", "#26B489", "#DA94BA", "#E69F00", "#9AD0F5", "#e7e8ea", "#c49c94"),
        *("#b4b9c0", "#4b525a", "#e7e8ea", "#15171a"),
    ),
}
"""The colours of series, then grey, light, ink and paper (`chart_kinds.SERIES`).

Those of series are the palette of Okabe and Ito, which is safe for colour-blind readers, without its yellow
(low contrast), and lighter on dark pages; paper and ink of these are those of `sightline.css`.
"""

SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.linewidth": 0.6,
    "axes.labelsize": 8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
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

_DRAWING = Lock()
"""The settings of matplotlib are those of the process."""

INSTALL = "pip install 'sightline[plot]'"


def can_draw() -> bool:
    return find_spec("matplotlib") is not None


def check_chart_file(path: Path) -> None:
    """Check before any work that a chart can be written."""
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
    if not can_draw():
        raise UserError("plots need matplotlib", expected=INSTALL)


def chart_bytes(draw: Callable[[], Figure], form: str, theme: Theme = "light", dpi: int = 300) -> bytes:
    """Draw a chart; the user's settings of matplotlib change nothing."""
    import matplotlib
    from matplotlib.rcsetup import cycler

    *_, light, ink, paper = THEMES[theme]
    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    colours: dict[Any, Any] = {
        **dict.fromkeys(inks, ink),
        "grid.color": light,
        "figure.facecolor": paper,
        "axes.facecolor": paper,
        "axes.prop_cycle": cycler(color=THEMES[theme]),
    }
    file = io.BytesIO()
    with _DRAWING, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS | colours)
        draw().savefig(file, format=form[1:], dpi=dpi, metadata=FORMS[form])
    return file.getvalue()


def write_chart(path: Path, draw: Callable[[], Figure]) -> None:
    write_atomically(path, [chart_bytes(draw, path.suffix.lower())])
