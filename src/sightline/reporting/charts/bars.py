"""Bars: a group of bars for each model or value of a label, with 95 % CI, n and published figures."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from sightline.escaping import for_plot
from sightline.reporting.charts.chart_values import Chart, axis_words, n_words, shared_figures
from sightline.reporting.charts.frame import add_legend, framed, grid_of, note_of
from sightline.reporting.charts.marks import (
    COLOURS,
    GREY,
    HATCHES,
    LIGHT,
    is_human,
    published_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES = 1.75
LEVEL_LETTERS = 13
"""The letters that fit in an inch; names of groups with longer words are slanted."""


def bars(chart: Chart, width: float) -> Figure:
    """Draw bars: a panel for each metric, a group for each category, a bar for each series."""
    panels = chart.panels
    down, across = grid_of(len(panels), width)
    figure = framed(width, PANEL_INCHES * down, chart.title)
    handles: dict[str, Any] = {}
    for nth, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if nth < len(panels):
            handles |= _panel(axes, chart, panels[nth], width / across)
        else:
            axes.set_visible(False)
    add_legend(
        figure,
        handles,
        [*chart.series, *chart.published_rows],
        note_of(chart, also="n: below each group."),
    )
    return figure


def _panel(axes: Axes, chart: Chart, panel: str, inches: float) -> dict[str, Any]:
    """Draw a panel; returns its marks by name."""
    values, rows, series = chart.of_panel(panel), chart.rows(panel), chart.series
    width = 0.8 / len(series)
    handles: dict[str, Any] = {}
    for value in values:
        nth, metric = series.index(value.series), value.metric
        if metric.value is None:
            continue
        where = rows.index(value.row) + (nth - (len(series) - 1) / 2) * width
        # A light face under a dark hatch and edge stays legible in grey.
        bar = axes.bar(
            where,
            metric.value,
            0.92 * width,
            color=_light(COLOURS[nth % len(COLOURS)]),
            edgecolor=COLOURS[nth % len(COLOURS)],
            hatch=HATCHES[nth % len(HATCHES)],
            linewidth=0.8,
        )
        handles.setdefault(value.series, bar)
        if metric.low is not None and metric.high is not None:
            axes.plot([where, where], [metric.low, metric.high], color="black", linewidth=1.0)
    for name, figure, row, own in shared_figures(values):
        place = sum(series.index(one) for one in own) / len(own)
        mark = published_style(chart.published_rows.index(name), human=is_human(name, chart))
        where = rows.index(row) + (place - (len(series) - 1) / 2) * width
        (handles[name],) = axes.plot(where, figure, markersize=5, **mark)
    _label(axes, chart, panel, inches)
    return handles


def _label(axes: Axes, chart: Chart, panel: str, inches: float) -> None:
    values, rows = chart.of_panel(panel), chart.rows(panel)
    fitting = max(1, int(LEVEL_LETTERS * inches / len(rows)))
    slanted = max(len(word) for row in rows for word in row.split() or [""]) > fitting
    numbers = [n_words(value.metric for value in values if value.row == row) for row in rows]
    names = [
        f"{for_plot(row)}, n {n}"
        if slanted
        else "\n".join([*textwrap.wrap(for_plot(row), fitting), f"n {n}"])
        for row, n in zip(rows, numbers, strict=True)
    ]
    axes.set_xticks(
        range(len(rows)), names, rotation=20 if slanted else 0, ha="right" if slanted else "center"
    )
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.6, len(rows) - 0.4)
    axes.set_ylabel(for_plot(axis_words(panel, [value.metric for value in values])))
    low, high = chart.range_of(panel)
    if low is not None and high is not None:
        axes.set_ylim(low, high)
    axes.axhline(0, color=GREY, linewidth=0.7)
    axes.grid(axis="y", color=LIGHT, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _light(colour: str) -> tuple[float, float, float]:
    """A colour mixed with white."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (0.45 + 0.55 * part for part in parts)
    return red, green, blue
