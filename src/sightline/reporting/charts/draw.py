"""Draws the chart of a command's table and writes it: which function draws which kind of chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from sightline.judging.judge_results import JudgeReport
from sightline.metric_types import MetricValue, Result
from sightline.reporting.charts.bars import bars
from sightline.reporting.charts.chart_file import WIDTHS, PaperColumns, write_chart
from sightline.reporting.charts.chart_values import Chart, ChartKind
from sightline.reporting.charts.curves import curves
from sightline.reporting.charts.forest import forest
from sightline.reporting.charts.matrix import matrix
from sightline.reporting.charts.of_comparison import comparison_chart
from sightline.reporting.charts.of_judges import judges_chart
from sightline.reporting.charts.of_results import default_chart, results_chart, varied_chart
from sightline.reporting.charts.radar import radar
from sightline.reporting.charts.scatter import scatter
from sightline.reporting.tables import title_of
from sightline.reporting.varied_options import ResultPoint
from sightline.results.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABEL_DRAWERS = {"forest": forest, "bars": bars, "radar": radar}


class ChartRequest(Struct, frozen=True):
    """What the user asks of a chart.

    Attributes:
        kind: The kind of chart; None for that of the table.
    """

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
    """Draw a table of results."""
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
    """Draw the differences of a comparison.

    Args:
        margin: The margin in percentage points; None without one.
    """
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
