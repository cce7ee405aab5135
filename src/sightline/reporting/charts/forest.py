"""Forest plots: a row for each value with its 95 % CI, n and published figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sightline.escaping import for_plot
from sightline.reporting.charts.chart_values import (
    Chart,
    ChartValue,
    axis_words,
    n_words,
    shared_figures,
    value_words,
)
from sightline.reporting.charts.frame import WIDE, add_legend, framed, grid_of, note_of
from sightline.reporting.charts.marks import GREY, LIGHT, is_human, published_style, series_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES, SERIES_INCHES = 0.2, 0.11
N_POINTS = 126
"""How far from the panel the numbers n end, if the values stand before them."""


def forest(chart: Chart, width: float) -> Figure:
    """Draw a forest plot: a panel for each metric, a row for each category, a mark for each series."""
    panels = chart.panels
    down, across = grid_of(len(panels), width)
    series = chart.series
    step = max(ROW_INCHES, SERIES_INCHES * (len(series) + 0.5))
    heights = [
        0.5 + step * max(len(chart.rows(panel)) for panel in panels[nth * across : (nth + 1) * across])
        for nth in range(down)
    ]
    figure = framed(width, sum(heights), chart.title)
    grid = figure.subplots(down, across, squeeze=False, height_ratios=heights)
    handles: dict[str, Any] = {}
    for nth, axes in enumerate(grid.flat):
        if nth < len(panels):
            handles |= _panel(axes, chart, panels[nth], in_words=across == 1 and width >= WIDE)
            if nth % across and chart.rows(panels[nth]) == chart.rows(panels[nth - 1]):
                axes.tick_params(axis="y", labelleft=False)
        else:
            axes.set_visible(False)
    add_legend(figure, handles, [*series, *chart.published_rows], note_of(chart))
    return figure


def _panel(axes: Axes, chart: Chart, panel: str, *, in_words: bool) -> dict[str, Any]:
    """Draw a panel; returns its marks by name."""
    values, rows = chart.of_panel(panel), chart.rows(panel)
    handles: dict[str, Any] = {}
    for value in values:
        handles |= _value(axes, chart, value, rows.index(value.row) + _offset(chart.series, value.series))
    for name, figure, row, series in shared_figures(values):
        where = rows.index(row) + sum(_offset(chart.series, one) for one in series) / len(series)
        mark = published_style(chart.published_rows.index(name), human=is_human(name, chart))
        (handles[name],) = axes.plot(figure, where, markersize=5, zorder=2.5, **mark)
    _scale(axes, chart, panel)
    axes.set_yticks(range(len(rows)), [for_plot(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color=LIGHT, linewidth=0.4)
    axes.set_axisbelow(True)
    if len(chart.series) > 1:
        for nth in range(len(rows) - 1):
            axes.axhline(nth + 0.5, color=LIGHT, linewidth=0.4, zorder=0)
    axes.set_xlabel(for_plot(axis_words(panel, [value.metric for value in values])))
    _numbers(axes, chart, panel, in_words=in_words)
    return handles


def _offset(series: Sequence[str], name: str) -> float:
    """Where the mark of a series is between the rows: the first above, the last below."""
    return 0.0 if len(series) == 1 else (series.index(name) / (len(series) - 1) - 0.5) * 0.56


def _value(axes: Axes, chart: Chart, value: ChartValue, where: float) -> dict[str, Any]:
    metric = value.metric
    style = series_style(chart.series.index(value.series))
    handles: dict[str, Any] = {}
    if metric.low is not None and metric.high is not None:
        axes.plot([metric.low, metric.high], [where, where], color=style["color"], linewidth=1.1, zorder=2)
    if metric.value is not None:
        (handles[value.series],) = axes.plot(
            metric.value, where, markersize=4, linewidth=1.1, zorder=3, **style
        )
    return handles


def _scale(axes: Axes, chart: Chart, panel: str) -> None:
    """The axis: the whole range of a metric; zero in the middle of differences."""
    if chart.zero:
        # Differences of one unit have one axis in all panels.
        units = {value.metric.unit for value in chart.of_panel(panel)}
        values = [value.metric for value in chart.values if value.metric.unit in units]
        bounds = [abs(x) for m in values for x in (m.value, m.low, m.high) if x is not None]
        end = 1.08 * max([*bounds, chart.margin or 0.0], default=1.0) or 1.0
        axes.set_xlim(-end, end)
        axes.axvline(0, color="black", linewidth=0.7, zorder=1)
        if chart.margin is not None:
            for side in (-chart.margin, chart.margin):
                axes.axvline(side, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
        return
    low, high = chart.range_of(panel)
    if low is not None and high is not None:
        edge = 0.02 * (high - low)
        axes.set_xlim(low - edge, high + edge)


def _numbers(axes: Axes, chart: Chart, panel: str, *, in_words: bool) -> None:
    """The n of each row right of the panel; before it the value, where there is one series and room."""

    def write(text: str, row: float, points: float, side: str, **style: Any) -> None:
        axes.annotate(
            text,
            (1, row),
            (points, 0),
            xycoords=axes.get_yaxis_transform(),
            textcoords="offset points",
            ha=side,
            va="center",
            fontsize=7,
            **style,
        )

    worded = in_words and len(chart.series) == 1
    places = [nth for nth, _ in enumerate(chart.rows(panel))]
    for nth, row in zip(places, chart.rows(panel), strict=True):
        metrics = [value.metric for value in chart.of_panel(panel) if value.row == row]
        if worded:
            write(value_words(metrics[0], sign=chart.zero), nth, 6, "left")
        write(n_words(metrics), nth, N_POINTS if worded else 6, "right" if worded else "left", color=GREY)
    if worded:
        write(f"value [{chart.interval}]", -0.85, 6, "left", color=GREY)
    write("n", -0.85, N_POINTS if worded else 6, "right" if worded else "left", color=GREY, style="italic")
