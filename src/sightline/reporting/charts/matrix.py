"""Matrix: a value for every two judges, humans or responses, as shades of grey with the numbers in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sightline.errors import UserError
from sightline.escaping import for_plot
from sightline.metric_types import MetricValue
from sightline.reporting.charts.chart_values import AXIS_UNITS, value_words
from sightline.reporting.charts.frame import add_legend, framed
from sightline.reporting.charts.marks import GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL_INCHES = 0.72

BETWEEN = " and "
"""What stands between the two names in a subset, as in 'judges=A and B'."""


def matrix(title: str, values: Sequence[MetricValue], width: float) -> Figure:
    """Draw a symmetrical matrix."""
    pairs = [(*both, value) for value in values if (both := _names(value)) is not None]
    if not pairs:
        raise UserError("a matrix needs values of every two judges or humans", expected="another --plot-kind")
    names = list(dict.fromkeys(name for first, second, _ in pairs for name in (first, second)))
    figure = framed(width, 0.3 + min(width * 0.8, CELL_INCHES * len(names) + 0.4), title)
    axes = figure.add_subplot()
    low, high = (0.0, 100.0) if pairs[0][2].unit == "percent" else (-1.0, 1.0)
    for first, second, value in pairs:
        share = 0.0 if value.value is None else (value.value - low) / (high - low)
        for row, column in (
            (names.index(first), names.index(second)),
            (names.index(second), names.index(first)),
        ):
            shade = 1 - 0.75 * share
            axes.fill_between(
                [column - 0.5, column + 0.5], row - 0.5, row + 0.5, color=(shade,) * 3, linewidth=0
            )
            number, _, interval = value_words(value).partition(" ")
            text = "\n".join(filter(None, (number, interval, f"n {value.n:,.10g}")))
            colour = "white" if shade < 0.5 else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize=6.5, color=colour)
    shown = [for_plot(name) for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=20, ha="right")
    axes.set_yticks(range(len(names)), shown)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_aspect("equal", anchor="W")
    axes.tick_params(length=0)
    axes.spines[:].set_color(GREY)
    metric = pairs[0][2]
    add_legend(figure, {}, [], f"{metric.metric}{AXIS_UNITS[metric.unit]} [95 % CI]; darker is more.")
    return figure


def _names(value: MetricValue) -> tuple[str, str] | None:
    """The two names of a subset; None if it does not name two."""
    _, _, both = value.subset.partition("=")
    first, between, second = both.partition(BETWEEN)
    return (first, second) if between else None
