"""What all kinds of charts share: values with their places, words, frame, legend, colours and marks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sightline.reporting.notes import published_notes
from sightline.reporting.table import interval_text, number_text
from sightline.text import for_plot
from sightline.types import PERCENT, MetricValue, Range, Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure


AXIS_UNITS: Mapping[Unit, str] = {"percent": " (%)", "points": " (percentage points)", "number": ""}


class ChartValue(Struct, frozen=True):
    """A value at its place in a chart."""

    panel: str
    row: str
    series: str
    metric: MetricValue


class Chart(Struct, frozen=True):
    """The values of a chart, and what holds for all; a panel without a range in `ranges` is in percent."""

    title: str
    values: tuple[ChartValue, ...]
    zero: bool = False
    margin: float | None = None
    humans: Sequence[str] = ()
    ranges: Mapping[str, Range] = {}
    interval: str = "95 % CI"

    @property
    def panels(self) -> list[str]:
        return list(dict.fromkeys(value.panel for value in self.values))

    @property
    def series(self) -> list[str]:
        return list(dict.fromkeys(value.series for value in self.values))

    def rows(self, panel: str) -> list[str]:
        return list(dict.fromkeys(value.row for value in self.of_panel(panel)))

    def of_panel(self, panel: str) -> list[ChartValue]:
        return [value for value in self.values if value.panel == panel]

    def range_of(self, panel: str) -> Range:
        """The ends of the axis of a panel; a percentage below 0, as of a similarity, extends it."""
        low, high = self.ranges.get(panel, PERCENT)
        values = [value.metric for value in self.of_panel(panel)]
        shown = [x for metric in values for x in (metric.value, metric.low) if x is not None]
        return (None if low is None else min([low, *shown])), high

    @property
    def published_rows(self) -> list[str]:
        return list(dict.fromkeys(name for value in self.values for name, _ in published_marks(value.metric)))


def published_marks(metric: MetricValue) -> list[tuple[str, float]]:
    first = {figure.row: figure for figure in reversed(metric.published or ())}
    figures = [one for one in metric.published or () if first[one.row] is one]
    return [
        (f"{figure.row}, {figure.table}{f' {figure.mark}' if figure.mark else ''}", figure.value)
        for figure in figures
    ]


def mark_notes(chart: Chart) -> list[str]:
    """What the marks of published figures mean, in the words of the tables."""
    first = [
        (value.row, {figure.row: figure for figure in reversed(value.metric.published or ())})
        for value in chart.values
    ]
    return published_notes([(row, figure) for row, by_row in first for figure in by_row.values()])


def shared_figures(values: Sequence[ChartValue]) -> list[tuple[str, float, str, list[str]]]:
    """The published figures of a panel: equal ones of several series of a row once."""
    found: dict[tuple[str, float, str], list[str]] = {}
    for value in values:
        for name, figure in published_marks(value.metric):
            found.setdefault((name, figure, value.row), []).append(value.series)
    return [(*where, series) for where, series in found.items()]


def value_words(metric: MetricValue, *, sign: bool = False) -> str:
    if metric.value is None:
        return "–"
    number = number_text(metric.value, metric.unit, sign=sign)
    interval = interval_text(metric.low, metric.high, metric.unit, metric.interval, sign=sign)
    return f"{number} {interval}".rstrip().replace("-", "\N{MINUS SIGN}")


def n_words(metrics: Iterable[MetricValue]) -> str:
    numbers = sorted({metric.n for metric in metrics if metric.value is not None})
    if not numbers:
        return ""
    low, high = (f"{number:,.10g}" for number in (numbers[0], numbers[-1]))
    return low if low == high else f"{low}\N{EN DASH}{high}"


def axis_words(panel: str, metrics: Sequence[MetricValue]) -> str:
    units = {metric.unit for metric in metrics}
    return panel + (AXIS_UNITS[units.pop()] if len(units) == 1 else "")


# -- What stands around the panels of a chart: its title, its legend and its note

WIDE = 5.0
"""A chart of this width in inches has two panels side by side."""

LETTERS = 17.0
"""The letters of the legend that fit in an inch."""

LINE_INCHES = 0.16


def grid_of(panels: int, width: float) -> tuple[int, int]:
    across = min(panels, 1 if width < WIDE else 2)
    return -(-panels // across), across


def framed(width: float, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure

    lines = textwrap.wrap(for_plot(title), int(width * LETTERS * 0.8))
    figure = Figure(figsize=(width, height + LINE_INCHES * len(lines) + 0.08), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8, fontweight="bold")
    return figure


def add_legend(figure: Figure, handles: Mapping[str, Any], order: Sequence[str], note: str) -> None:
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches()
    names = [name for name in order if name and name in handles]
    longest = max(map(len, names), default=0)
    columns = max(1, min(len(names), int(width * LETTERS / (longest + 7))))
    note_lines = textwrap.wrap(for_plot(note), int(width * LETTERS))
    lines = len(note_lines) + -(-len(names) // columns)
    figure.set_size_inches(width, height + LINE_INCHES * lines + 0.08)
    # A legend without entries does not show its title.
    shown = [handles[name] for name in names] or [Line2D([], [], linestyle="none")]
    legend = figure.legend(
        shown,
        [for_plot(name) for name in names] or [""],
        title="\n".join(note_lines),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.2,
        borderpad=0.1,
        alignment="left",
        title_fontsize=7,
    )
    legend.get_title().set_color(GREY)


def note_of(chart: Chart, *, whiskers: str = "Whiskers", also: str = "") -> str:
    parts = [f"{whiskers}: {chart.interval}."]
    parts += [also] if also else []
    if chart.margin is not None:
        parts.append(f"Dashed: the margin of \N{PLUS-MINUS SIGN}{chart.margin:g}.")
    if chart.published_rows:
        parts.append("Hollow: published.")
        parts += [f"{note}." for note in mark_notes(chart)]
    return " ".join(parts)


# -- Colours, marks, dashes and hatches of charts: each series differs in form and not in colour alone

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""The palette of Okabe and Ito, which is safe for colour-blind readers, without its yellow (low contrast)."""

MARKS, HOLLOW = "osD^v>PX*", "sD^v<>ph"
DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo", "**")
GREY, LIGHT = "#555555", "#c8c8c8"
HUMAN = "*"


def series_style(nth: int) -> dict[str, Any]:
    return {"color": COLOURS[nth % len(COLOURS)], "marker": MARKS[(nth + nth // len(COLOURS)) % len(MARKS)]}


def published_style(nth: int, *, human: bool = False) -> dict[str, Any]:
    """The mark of a published row: hollow and grey."""
    mark = HUMAN if human else HOLLOW[nth % len(HOLLOW)]
    return {
        "color": GREY,
        "marker": mark,
        "markerfacecolor": "white",
        "markeredgewidth": 0.9,
        "linestyle": "none",
    }


def is_human(name: str, chart: Chart) -> bool:
    return any(name.startswith(f"{row}, ") for row in chart.humans)
