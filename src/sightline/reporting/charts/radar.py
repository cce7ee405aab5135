"""Radar: a metric under the values of a label, a spoke each, with 95 % CI and n (II-Bench, by domain)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError
from sightline.escaping import for_plot
from sightline.reporting.charts.chart_values import Chart, axis_words, n_words, published_marks
from sightline.reporting.charts.frame import add_legend, framed, grid_of, note_of
from sightline.reporting.charts.marks import (
    DASHES,
    GREY,
    LIGHT,
    is_human,
    published_style,
    series_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes

FEWEST_SPOKES = 3
LARGEST_INCHES = 4.0


def radar(chart: Chart, width: float) -> Figure:
    """Draw a radar: a panel for each metric, a spoke for each value of the label, a line for each series."""
    panels = chart.panels
    for panel in panels:
        if len(chart.rows(panel)) < FEWEST_SPOKES:
            raise UserError(
                f"a radar of {panel} needs three values of the label or more",
                found=", ".join(chart.rows(panel)),
                expected="--plot-kind forest",
            )
    down, across = grid_of(len(panels), width)
    figure = framed(width, min(width / across, LARGEST_INCHES) * 0.9 * down, chart.title)
    handles: dict[str, Any] = {}
    for nth, panel in enumerate(panels):
        axes: Any = figure.add_subplot(down, across, nth + 1, projection="polar")
        handles |= _panel(axes, chart, panel)
    add_legend(
        figure,
        handles,
        [*chart.series, *chart.published_rows],
        note_of(chart, also="In parentheses: n."),
    )
    return figure


def _panel(axes: PolarAxes, chart: Chart, panel: str) -> dict[str, Any]:
    """Draw a panel; returns its marks by name."""
    rows = chart.rows(panel)
    angles = {row: 2 * math.pi * nth / len(rows) for nth, row in enumerate(rows)}
    handles: dict[str, Any] = {}
    for nth, series in enumerate(chart.series):
        style, dashes = series_style(nth), DASHES[nth % len(DASHES)]
        held = [one for one in chart.of_panel(panel) if one.series == series and one.metric.value is not None]
        if not held:
            continue
        points = [(angles[one.row], one.metric.value or 0.0) for one in held]
        _closed(axes, points, color=style["color"], linestyle=dashes, linewidth=1.0)
        (handles[series],) = axes.plot(
            *zip(*points, strict=True), linestyle="none", markersize=4, zorder=3, **style
        )
        for one in held:
            if one.metric.low is not None and one.metric.high is not None:
                # Whiskers of several series would lie on each other.
                angle = angles[one.row] + 0.035 * (nth - (len(chart.series) - 1) / 2)
                axes.plot([angle] * 2, [one.metric.low, one.metric.high], color=style["color"], linewidth=0.9)
    handles |= _published(axes, chart, panel, angles)
    _label(axes, chart, panel, angles)
    return handles


def _published(axes: PolarAxes, chart: Chart, panel: str, angles: dict[str, float]) -> dict[str, Any]:
    """Draw the published rows; returns their marks by name."""
    found: dict[str, dict[float, float]] = {}
    for value in chart.of_panel(panel):
        for name, figure in published_marks(value.metric):
            found.setdefault(name, {})[angles[value.row]] = figure
    handles = {}
    for name, figures in found.items():
        mark = published_style(chart.published_rows.index(name), human=is_human(name, chart))
        points = list(figures.items())
        if len(points) == len(angles):
            _closed(axes, points, color=GREY, linestyle=":", linewidth=0.8)
        (handles[name],) = axes.plot(*zip(*points, strict=True), markersize=4, **mark)
    return handles


def _closed(axes: Axes, points: list[tuple[float, float]], **style: Any) -> None:
    around, out = zip(*[*points, points[0]], strict=True)
    axes.plot(around, out, zorder=2, **style)


def _label(axes: PolarAxes, chart: Chart, panel: str, angles: dict[str, float]) -> None:
    values = chart.of_panel(panel)
    names = [
        f"{for_plot(row)}\n({n_words(value.metric for value in values if value.row == row)})"
        for row in angles
    ]
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_xticks(list(angles.values()), names)
    for text, angle in zip(axes.get_xticklabels(), angles.values(), strict=True):
        side = math.sin(angle)
        text.set_horizontalalignment("center" if abs(side) < 0.1 else "left" if side > 0 else "right")
    low, high = chart.range_of(panel)
    if low is not None and high is not None:
        axes.set_ylim(low, high)
        axes.set_yticks([low + (high - low) * part / 4 for part in range(1, 5)])
    axes.set_rlabel_position(180 / len(angles))
    axes.tick_params(axis="y", labelsize=6, labelcolor=GREY)
    axes.grid(color=LIGHT, linewidth=0.4)
    axes.spines["polar"].set_color(LIGHT)
    axes.set_title(for_plot(axis_words(panel, [value.metric for value in values])), pad=8)
