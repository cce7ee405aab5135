"""The kinds of charts, by matplotlib: forest plots, bars, radars, scatter plots, matrices and curves."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.reporting.judges import JudgeResult
from sightline.reporting.metric_pairs import MetricPair, metric_pairs
from sightline.reporting.notes import (
    ResultPoint,
    first_of_rows,
    options_text,
    published_marks,
    published_notes,
    row_names,
    task_of,
)
from sightline.reporting.table import interval_text, number_text
from sightline.reporting.tables import leading_metrics, title_of
from sightline.text import for_plot
from sightline.types import PERCENT, MetricValue, PublishedValue, Range, Result, Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes


ChartKind = Literal["forest", "bars", "radar", "scatter", "curves", "matrix"]

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

    def metrics(self, panel: str, row: str | None = None) -> list[MetricValue]:
        return [value.metric for value in self.of_panel(panel) if row in (None, value.row)]

    def range_of(self, panel: str) -> Range:
        """The ends of the axis of a panel; a percentage below 0, as of a similarity, extends it."""
        low, high = self.ranges.get(panel, PERCENT)
        shown = [x for metric in self.metrics(panel) for x in (metric.value, metric.low) if x is not None]
        return (None if low is None else min([low, *shown])), high

    @property
    def published_rows(self) -> list[str]:
        return list(dict.fromkeys(name for value in self.values for name, _ in published_marks(value.metric)))

    def note(self, also: str = "") -> str:
        """What whiskers, dashed lines and hollow marks are; published figures in the words of the tables."""
        parts = ["Whiskers: 95 % CI.", also]
        if self.margin is not None:
            parts.append(f"Dashed: the margin of \N{PLUS-MINUS SIGN}{self.margin:g}.")
        figures = [(value.row, one) for value in self.values for one in first_of_rows(value.metric.published)]
        return " ".join(filter(None, (*parts, _hollow(figures))))


def _hollow(figures: Sequence[tuple[str, PublishedValue]]) -> str:
    return " ".join(
        ["Hollow: published.", *(f"{note}." for note in published_notes(figures))] * bool(figures)
    )


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


def _axis_words(name: str, metrics: Sequence[MetricValue], *, with_n: bool = False) -> str:
    units = {metric.unit for metric in metrics}
    n = f", n {n_words(metrics)}" if with_n else ""
    return for_plot(name + (AXIS_UNITS[units.pop()] if len(units) == 1 else "") + n)


# -- What stands around the panels of a chart: its title, its legend and its note

WIDE = 5.0
"""A chart of this width in inches has two panels side by side."""

LETTERS = 17.0
"""The letters of the legend that fit in an inch."""

LINE_INCHES = 0.16


def _grid_of(panels: int, width: float) -> tuple[int, int]:
    across = min(panels, 1 if width < WIDE else 2)
    return -(-panels // across), across


def _framed(width: float, height: float, title: str) -> Figure:
    from matplotlib.figure import Figure

    lines = textwrap.wrap(for_plot(title), int(width * LETTERS * 0.8))
    figure = Figure(figsize=(width, height + LINE_INCHES * len(lines) + 0.08), layout="constrained")
    figure.suptitle("\n".join(lines), x=0.01, ha="left", fontsize=8, fontweight="bold")
    return figure


def _add_legend(figure: Figure, handles: Mapping[str, Any], order: Sequence[str], note: str) -> None:
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


def _panelled(
    chart: Chart,
    width: float,
    inches: Callable[[str], float],
    draw: Callable[[Any, str], dict[str, Any]],
    *,
    also: str = "",
    projection: str | None = None,
) -> Figure:
    """A figure with a panel for each metric; `inches` gives its height, `draw` returns its marks by name."""
    panels = chart.panels
    down, across = _grid_of(len(panels), width)
    heights = [max(map(inches, panels[nth * across : (nth + 1) * across])) for nth in range(down)]
    figure = _framed(width, sum(heights), chart.title)
    grid = figure.subplots(
        down, across, squeeze=False, height_ratios=heights, subplot_kw={"projection": projection}
    )
    handles: dict[str, Any] = {}
    for axes, panel in zip_longest(grid.flat, panels):
        if panel is None:
            axes.set_visible(False)
        else:
            handles |= draw(axes, panel)
    _add_legend(figure, handles, [*chart.series, *chart.published_rows], chart.note(also))
    return figure


# -- Colours, marks, dashes and hatches of charts: each series differs in form and not in colour alone

SERIES = 8
"""The number of colours of series; a theme (`charts.THEMES`) holds them, then grey, light, ink, paper."""

GREY, LIGHT, INK, PAPER = (f"C{SERIES + nth}" for nth in range(4))
MARKS, HOLLOW = "osD^v>PX*", "sD^v<>ph"
DASHES = ("-", "--", ":", "-.")
HATCHES = ("", "////", "....", "xxxx", "\\\\\\\\", "++++", "oo", "**")
HUMAN = "*"


def _colour(nth: int) -> str:
    return f"C{nth % SERIES}"


def series_style(nth: int) -> dict[str, Any]:
    return {"color": _colour(nth), "marker": MARKS[(nth + nth // SERIES) % len(MARKS)]}


def _published_style(nth: int, *, human: bool = False) -> dict[str, Any]:
    """The mark of a published row: hollow and grey."""
    return {
        "color": GREY,
        "marker": HUMAN if human else HOLLOW[nth % len(HOLLOW)],
        "markerfacecolor": PAPER,
        "markeredgewidth": 0.9,
        "markersize": 5,
        "linestyle": "none",
    }


def _published_of(chart: Chart, name: str) -> dict[str, Any]:
    """The mark of a published row of a chart."""
    human = any(name.startswith(f"{row}, ") for row in chart.humans)
    return _published_style(chart.published_rows.index(name), human=human)


def _shared_figures(chart: Chart, panel: str) -> list[tuple[str, float, str, float]]:
    """The published figures of a panel: name, value, row and mean number of its series; equal ones once."""
    found: dict[tuple[str, float, str], list[int]] = {}
    for value in chart.of_panel(panel):
        for name, figure in published_marks(value.metric):
            found.setdefault((name, figure, value.row), []).append(chart.series.index(value.series))
    return [(*where, sum(series) / len(series)) for where, series in found.items()]


def _whisker(axes: Axes, metric: MetricValue, where: float, *, upright: bool = False, **style: Any) -> None:
    if metric.low is not None and metric.high is not None:
        ends = ([metric.low, metric.high], [where, where])
        axes.plot(*(reversed(ends) if upright else ends), **{"zorder": 2, **style})


# -- Bars: a group of bars for each model or value of a label, with 95 % CI, n and published figures

BAR_PANEL_INCHES = 1.75
LEVEL_LETTERS = 13
"""The letters that fit in an inch; names of groups with longer words are slanted."""


def bars(chart: Chart, width: float) -> Figure:
    """Draw bars: a panel for each metric, a group for each category, a bar for each series."""
    _, across = _grid_of(len(chart.panels), width)
    step = 0.8 / len(chart.series)

    def where(chart_rows: Sequence[str], row: str, series: float) -> float:
        return chart_rows.index(row) + (series - (len(chart.series) - 1) / 2) * step

    def draw(axes: Axes, panel: str) -> dict[str, Any]:
        rows = chart.rows(panel)
        handles: dict[str, Any] = {}
        for value in chart.of_panel(panel):
            nth, metric = chart.series.index(value.series), value.metric
            if metric.value is None:
                continue
            # A light face under a dark hatch and edge stays legible in grey.
            bar = axes.bar(
                place := where(rows, value.row, nth),
                metric.value,
                0.92 * step,
                facecolor=(_colour(nth), 0.45),
                edgecolor=_colour(nth),
                hatch=HATCHES[nth % len(HATCHES)],
                linewidth=0.8,
            )
            handles.setdefault(value.series, bar)
            _whisker(axes, metric, place, upright=True, color=INK)
        for name, figure, row, series in _shared_figures(chart, panel):
            (handles[name],) = axes.plot(where(rows, row, series), figure, **_published_of(chart, name))
        _label_bars(axes, chart, panel, width / across)
        return handles

    return _panelled(chart, width, lambda _: BAR_PANEL_INCHES, draw, also="n: below each group.")


def _label_bars(axes: Axes, chart: Chart, panel: str, inches: float) -> None:
    rows = chart.rows(panel)
    fitting = max(1, int(LEVEL_LETTERS * inches / len(rows)))
    slanted = max(len(word) for row in rows for word in row.split() or [""]) > fitting
    numbers = [n_words(chart.metrics(panel, row)) for row in rows]
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
    axes.set_ylabel(_axis_words(panel, chart.metrics(panel)))
    low, high = chart.range_of(panel)
    if low is not None and high is not None:
        axes.set_ylim(low, high)
    axes.axhline(0, color=GREY, linewidth=0.7)
    axes.grid(visible=True, axis="y")


# -- Forest plots: a row for each value with its 95 % CI, n and published figures

ROW_INCHES, SERIES_INCHES = 0.2, 0.11
N_POINTS = 126
"""How far from the panel the numbers n end, if the values stand before them."""


def forest(chart: Chart, width: float) -> Figure:
    """Draw a forest plot: a panel for each metric, a row for each category, a mark for each series."""
    panels, series = chart.panels, chart.series
    _, across = _grid_of(len(panels), width)
    step = max(ROW_INCHES, SERIES_INCHES * (len(series) + 0.5))
    # Where the mark of a series is between the rows: the first above, the last below.
    apart, first = (0.0, 0.0) if len(series) == 1 else (0.56 / (len(series) - 1), -0.28)

    def draw(axes: Axes, panel: str) -> dict[str, Any]:
        rows = chart.rows(panel)
        handles: dict[str, Any] = {}
        for value in chart.of_panel(panel):
            nth = series.index(value.series)
            place = rows.index(value.row) + first + apart * nth
            _whisker(axes, value.metric, place, color=_colour(nth), linewidth=1.1)
            if value.metric.value is not None:
                (handles[value.series],) = axes.plot(
                    value.metric.value, place, linewidth=1.1, zorder=3, **series_style(nth)
                )
        for name, figure, row, mean in _shared_figures(chart, panel):
            place = rows.index(row) + first + apart * mean
            (handles[name],) = axes.plot(figure, place, zorder=2.5, **_published_of(chart, name))
        _scale_forest(axes, chart, panel)
        axes.set_yticks(range(len(rows)), [for_plot(row) for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=True, axis="x")
        for nth in range(len(rows) - 1 if len(series) > 1 else 0):
            axes.axhline(nth + 0.5, color=LIGHT, linewidth=0.4, zorder=0)
        axes.set_xlabel(_axis_words(panel, chart.metrics(panel)))
        _write_numbers(axes, chart, panel, in_words=across == 1 and width >= WIDE and len(series) == 1)
        return handles

    figure = _panelled(chart, width, lambda panel: 0.5 + step * len(chart.rows(panel)), draw)
    for nth in range(1, len(panels)):
        if nth % across and chart.rows(panels[nth]) == chart.rows(panels[nth - 1]):
            figure.axes[nth].tick_params(axis="y", labelleft=False)
    return figure


def _scale_forest(axes: Axes, chart: Chart, panel: str) -> None:
    """The axis: the whole range of a metric; zero in the middle of differences."""
    if chart.zero:
        # Differences of one unit have one axis in all panels.
        units = {metric.unit for metric in chart.metrics(panel)}
        metrics = [value.metric for value in chart.values if value.metric.unit in units]
        bounds = [abs(x) for m in metrics for x in (m.value, m.low, m.high) if x is not None]
        end = 1.08 * max([*bounds, chart.margin or 0.0], default=1.0) or 1.0
        axes.set_xlim(-end, end)
        axes.axvline(0, color=INK, linewidth=0.7, zorder=1)
        for side in (-1, 1) if chart.margin is not None else ():
            where = side * (chart.margin or 0.0)
            axes.axvline(where, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)), zorder=1)
        return
    low, high = chart.range_of(panel)
    if low is not None and high is not None:
        edge = 0.02 * (high - low)
        axes.set_xlim(low - edge, high + edge)


def _write_numbers(axes: Axes, chart: Chart, panel: str, *, in_words: bool) -> None:
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

    n_place: tuple[float, str] = (N_POINTS, "right") if in_words else (6, "left")
    for nth, row in enumerate(chart.rows(panel)):
        metrics = chart.metrics(panel, row)
        if in_words:
            write(value_words(metrics[0], sign=chart.zero), nth, 6, "left")
        write(n_words(metrics), nth, *n_place, color=GREY)
    if in_words:
        write("value [95 % CI]", -0.85, 6, "left", color=GREY)
    write("n", -0.85, *n_place, color=GREY, style="italic")


# -- Radar: a metric under the values of a label, a spoke each, with 95 % CI and n (II-Bench, by domain)

FEWEST_SPOKES = 3
LARGEST_INCHES = 4.0


def radar(chart: Chart, width: float) -> Figure:
    """Draw a radar: a panel for each metric, a spoke for each value of the label, a line for each series."""
    for panel in chart.panels:
        if len(chart.rows(panel)) < FEWEST_SPOKES:
            raise UserError(
                f"a radar of {panel} needs three values of the label or more",
                found=", ".join(chart.rows(panel)),
                expected="--plot-kind forest",
            )
    inches = min(width / _grid_of(len(chart.panels), width)[1], LARGEST_INCHES) * 0.9

    def draw(axes: PolarAxes, panel: str) -> dict[str, Any]:
        angles = {row: 2 * math.pi * n / len(chart.rows(panel)) for n, row in enumerate(chart.rows(panel))}
        handles: dict[str, Any] = {}
        for nth, series in enumerate(chart.series):
            held = [one for one in chart.of_panel(panel) if one.series == series]
            held = [one for one in held if one.metric.value is not None]
            if not held:
                continue
            points = [(angles[one.row], one.metric.value or 0.0) for one in held]
            _closed(axes, points, color=_colour(nth), linestyle=DASHES[nth % len(DASHES)])
            (handles[series],) = axes.plot(
                *zip(*points, strict=True), linestyle="none", zorder=3, **series_style(nth)
            )
            for one in held:
                # Whiskers of several series would lie on each other.
                angle = angles[one.row] + 0.035 * (nth - (len(chart.series) - 1) / 2)
                _whisker(axes, one.metric, angle, upright=True, color=_colour(nth), linewidth=0.9)
        figures: dict[str, dict[float, float]] = {}
        for name, figure, row, _ in _shared_figures(chart, panel):
            figures.setdefault(name, {}).setdefault(angles[row], figure)
        for name, by_angle in figures.items():
            if len(by_angle) == len(angles):
                _closed(axes, list(by_angle.items()), color=GREY, linestyle=":", linewidth=0.8)
            (handles[name],) = axes.plot(
                list(by_angle), list(by_angle.values()), **_published_of(chart, name)
            )
        _label_radar(axes, chart, panel, angles)
        return handles

    return _panelled(chart, width, lambda _: inches, draw, also="In parentheses: n.", projection="polar")


def _closed(axes: Axes, points: list[tuple[float, float]], **style: Any) -> None:
    axes.plot(*zip(*[*points, points[0]], strict=True), zorder=2, **style)


def _label_radar(axes: PolarAxes, chart: Chart, panel: str, angles: dict[str, float]) -> None:
    names = [f"{for_plot(row)}\n({n_words(chart.metrics(panel, row))})" for row in angles]
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
    axes.grid(visible=True)
    axes.spines["polar"].set_color(LIGHT)
    axes.set_title(_axis_words(panel, chart.metrics(panel)), pad=8)


# -- Matrix: a value for every two judges, humans or responses, as shades of grey with the numbers in them

CELL_INCHES = 0.72


def matrix(title: str, runs: Mapping[str, Sequence[MetricValue]], width: float) -> Figure:
    """Draw a panel for each run by its name, below each other; a run without values is named below them."""
    panels = {run: [(*both, one) for one in of if (both := _names(one))] for run, of in runs.items()}
    drawn = {run: pairs for run, pairs in panels.items() if pairs}
    if not drawn:
        raise UserError("a matrix needs values of every two judges or humans", expected="another --plot-kind")
    heights = [
        min(width * 0.8, CELL_INCHES * len({name for pair in pairs for name in pair[:2]}) + 0.4)
        for pairs in drawn.values()
    ]
    figure = _framed(width, 0.3 * len(drawn) + sum(heights), title)
    grid = figure.add_gridspec(len(drawn), 1, height_ratios=heights)
    for nth, (run, pairs) in enumerate(drawn.items()):
        _matrix_panel(figure.add_subplot(grid[nth]), run if len(runs) > 1 else "", pairs)
    metric = next(iter(drawn.values()))[0][2]
    absent = "".join(f" {run}: no two judges." for run in panels if run not in drawn)
    _add_legend(
        figure, {}, [], f"{metric.metric}{AXIS_UNITS[metric.unit]} [95 % CI]; fuller is more.{absent}"
    )
    return figure


def _matrix_panel(axes: Axes, title: str, pairs: Sequence[tuple[str, str, MetricValue]]) -> None:
    names = list(dict.fromkeys(name for first, second, _ in pairs for name in (first, second)))
    axes.set_title(for_plot(title), loc="left")
    low, high = PERCENT if pairs[0][2].unit == "percent" else (-1.0, 1.0)
    for first, second, value in pairs:
        shade = 0.75 * (0.0 if value.value is None else (value.value - low) / (high - low))
        for row, column in ((first, second), (second, first)):
            y, x = names.index(row), names.index(column)
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=(INK, shade), linewidth=0)
            number, _, interval = value_words(value).partition(" ")
            text = "\n".join(filter(None, (number, interval, f"n {value.n:,.10g}")))
            colour = PAPER if shade > 0.5 else INK
            axes.text(x, y, text, ha="center", va="center", fontsize=6.5, color=colour)
    shown = [for_plot(name) for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=20, ha="right")
    axes.set_yticks(range(len(names)), shown)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_aspect("equal", anchor="W")
    axes.tick_params(length=0)
    axes.spines[:].set(visible=True, color=GREY)


def _names(value: MetricValue) -> tuple[str, str] | None:
    """The two names of a subset such as 'judges=A and B'."""
    first, between, second = value.subset.partition("=")[2].partition(" and ")
    return (first, second) if between else None


# -- Scatter: one metric against another, a mark for each model (MM-R3: consistency against accuracy)


def plotted_pairs(benchmark: str, metrics: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of metrics of a scatter plot: the two that the user names, the horizontal one first."""
    if len(metrics) == 2:
        return [(metrics[0], metrics[1])]
    declared = list(benchmark_class(benchmark).correlated_metrics)
    if metrics or not declared:
        raise UserError(
            "a scatter plot needs two metrics",
            found=", ".join(metrics) or "none",
            expected="--plot-metric X --plot-metric Y",
        )
    return declared


def scatter(
    results: Sequence[Result], width: float, metrics: Sequence[str] = (), runs: Sequence[str] = ()
) -> Figure:
    """Draw a panel for each pair, a mark with two 95 % CI for each run; default: the pairs of the paper."""
    found = [metric_pairs(results, names, runs) for names in plotted_pairs(results[0].benchmark, metrics)]
    panels = [pairs for pairs in found if pairs]
    if not panels:
        raise UserError("nothing to plot: no result has both metrics of the scatter plot")
    down, across = _grid_of(len(panels), width)
    figure = _framed(width, min(width / across, 3.4) * 0.85 * down, title_of(results, None, runs))
    handles: dict[str, Any] = {}
    for nth, pairs in enumerate(panels):
        handles |= _scatter_panel(figure.add_subplot(down, across, nth + 1), pairs)
    shown = [
        (metric.metric, one)
        for pairs in panels
        for pair in pairs
        for metric, one in zip((pair.x, pair.y), pair.figures, strict=False)
    ]
    _add_legend(figure, handles, list(handles), f"Whiskers: 95 % CI. {_hollow(shown)}".rstrip())
    return figure


def _scatter_panel(axes: Axes, pairs: Sequence[MetricPair]) -> dict[str, Any]:
    """Draw a panel; returns its marks by name."""
    handles: dict[str, Any] = {}
    measured = [pair for pair in pairs if not pair.figures]
    for nth, pair in enumerate(measured):
        x, y = pair.x.value or 0.0, pair.y.value or 0.0
        _whisker(axes, pair.x, y, color=_colour(nth), linewidth=0.9)
        _whisker(axes, pair.y, x, upright=True, color=_colour(nth), linewidth=0.9)
        (handles[pair.name],) = axes.plot(x, y, markersize=5, linestyle="none", zorder=3, **series_style(nth))
    published = [pair for pair in pairs if pair.figures]
    for nth, pair in enumerate(published):
        where, name = (pair.x.value or 0.0, pair.y.value or 0.0), pair.name
        if len(published) > len(HOLLOW):  # Forms alone do not tell so many apart.
            name, beside = f"{nth + 1}: {name}", (4, 3 - 5 * (nth % 3))
            axes.annotate(f"{nth + 1}", where, beside, textcoords="offset points", fontsize=6, color=GREY)
        (handles[name],) = axes.plot(*where, **_published_style(nth))
    first, second = [pair.x for pair in measured], [pair.y for pair in measured]
    axes.set_xlabel(_axis_words(first[0].metric, first, with_n=True))
    axes.set_ylabel(_axis_words(second[0].metric, second, with_n=True))
    axes.set_xlim(*_limits(pair.x for pair in pairs))
    axes.set_ylim(*_limits(pair.y for pair in pairs))
    axes.grid(visible=True)
    return handles


def _limits(metrics: Iterable[MetricValue]) -> tuple[float | None, float | None]:
    """The ends of an axis: the whole range of percentages; otherwise matplotlib chooses them."""
    shown = list(metrics)
    if any(metric.unit != "percent" for metric in shown):
        return None, None
    low = min([0.0, *(x for metric in shown for x in (metric.value, metric.low) if x is not None)])
    edge = 0.02 * (PERCENT[1] - low)
    return low - edge, PERCENT[1] + edge


# -- Curves: metrics over a varied option (MM-R3, Figures 2-3), agreement over items, right over wrong answers

CURVE_PANEL_INCHES = 1.7
"""The height of a panel."""

MOST_CURVES = 8
"""More ROC curves cannot be told apart."""

MOST_MARKED = 4
"""Up to so many inner points are those of a judge with verdicts, not with numbers: they are marked."""


def numeric_options(places: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for values in places for name in values)
    return [name for name in names if len({_number(values.get(name)) for values in places} - {None}) > 1]


def curve_option(places: Sequence[Mapping[str, Any]]) -> str:
    numeric = numeric_options(places)
    if len(numeric) == 1:
        return numeric[0]
    found = f"{' and '.join(numeric)} both have numbers" if numeric else "no option has two numbers or more"
    raise UserError(
        f"curves go along one varied option: {found}",
        expected="one option with several numbers, such as temperature=0.2,0.7,1",
    )


class Curve(Struct, frozen=True):
    """A line: its name, and a value at each number in ascending order."""

    name: str
    values: Sequence[tuple[float, MetricValue]]


def curves(points: Sequence[ResultPoint], width: float, metrics: Sequence[str] = ()) -> Figure:
    """Draw results along a varied option.

    Each benchmark and setting has its own panels, each leading metric a panel, each combination of the
    other varied options a line with its 95 % CI as a band. Points without a number (`size=null`) or
    without a value are left out. Published figures are hollow marks.
    """
    along = curve_option([point.values for point in points])
    by_task: dict[tuple[str, str], list[ResultPoint]] = {}
    for point in points:
        by_task.setdefault(task_of(point.result), []).append(point)
    panels = {
        task: metrics or leading_metrics(task[0], [point.result.metrics for point in own])
        for task, own in by_task.items()
    }
    _, across = _grid_of(max(map(len, panels.values())), width)
    lines_of = {task: -(-len(shown) // across) for task, shown in panels.items()}
    height = sum(0.25 + CURVE_PANEL_INCHES * lines for lines in lines_of.values())
    figure = _framed(width, height, f"Metrics by {along}")
    rows = figure.subfigures(len(panels), 1, squeeze=False, height_ratios=list(lines_of.values()))[:, 0]
    handles: dict[str, Any] = {}
    printed: list[tuple[str, PublishedValue]] = []
    styles: dict[str, int] = {}
    for row, (task, shown) in zip(rows, panels.items(), strict=True):
        row.suptitle(for_plot(":".join(task)), x=0.01, ha="left", fontsize=8, fontweight="bold")
        for axes, metric in zip_longest(row.subplots(lines_of[task], across, squeeze=False).flat, shown):
            if metric is None:
                axes.set_visible(False)
                continue
            lines = _curves_of(by_task[task], along, metric)
            found = [(number, value) for line in lines for number, value in line.values]
            _draw_curves(axes, lines, styles)
            for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
                handles.setdefault(name, handle)
            printed += [(metric, figure) for _, value in found for figure in value.published or ()]
            axes.set_title(_axis_words(metric, [value for _, value in found], with_n=True))
            axes.set_xlabel(for_plot(along))
            numbers = sorted({number for number, _ in found})
            axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    _add_legend(figure, handles, list(handles), f"Bands: 95 % CI. {_hollow(printed)}".rstrip())
    return figure


def _curves_of(points: Sequence[ResultPoint], along: str, metric: str) -> list[Curve]:
    found: dict[str, dict[float, MetricValue]] = {}
    for name, point in zip(row_names(points), points, strict=True):
        others = options_text({option: value for option, value in point.values.items() if option != along})
        number = _number(point.values.get(along))
        unanswered = point.result.unanswered == point.result.probes
        value = next((m for m in point.result.metrics if (m.metric, m.subset) == (metric, "all")), None)
        if number is not None and value is not None and value.value is not None and not unanswered:
            found.setdefault(", ".join(filter(None, (name, others))), {})[number] = value
    return [Curve(name, sorted(values.items(), key=lambda item: item[0])) for name, values in found.items()]


def _draw_curves(axes: Axes, lines: Sequence[Curve], styles: dict[str, int]) -> None:
    """Draw lines with their bands and published figures; `styles` numbers the names of lines."""
    printed: dict[str, dict[float, float]] = {}
    for line in lines:
        nth = styles.setdefault(line.name, len(styles))
        dashes = DASHES[nth // SERIES % len(DASHES)]
        values = [(number, metric.value or 0.0) for number, metric in line.values]
        axes.plot(*zip(*values, strict=True), dashes, label=line.name, **series_style(nth))
        bounds = [
            (number, metric.low, metric.high)
            for number, metric in line.values
            if metric.low is not None and metric.high is not None
        ]
        if bounds:
            where, low, high = zip(*bounds, strict=True)
            axes.fill_between(where, low, high, color=_colour(nth), alpha=0.15, linewidth=0)
        for number, metric in line.values:
            for one in metric.published or ():
                printed.setdefault(f"{one.row}, {one.table} {one.mark}".rstrip(), {})[number] = one.value
    for nth, (name, figures) in enumerate(printed.items()):
        axes.plot(list(figures), list(figures.values()), label=name, **_published_style(nth))
    axes.grid(visible=True)


def _number(value: Any) -> float | None:
    """A varied value as a number: 0.7, or '224'; None for a switch, a word or null."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def growth(name: str, values: Sequence[tuple[float, MetricValue]], width: float) -> Figure:
    """Draw an agreement, of which 1 is the highest, as it grows with the items; below 0, too."""
    figure = _framed(width, CURVE_PANEL_INCHES, "")
    axes = figure.add_subplot()
    _draw_curves(axes, [Curve(name, values)], {})
    axes.set_xlabel("items")
    axes.locator_params("x", integer=True)
    axes.set_ylabel(name)
    axes.set_xlim(0)
    lowest = min(bound for _, one in values for bound in (one.value, one.low) if bound is not None)
    axes.set_ylim(min(0.0, lowest), 1)
    if lowest < 0:
        axes.axhline(0, color=GREY, linestyle=":", linewidth=0.8)
    _add_legend(figure, {}, [], "Band: 95 % CI.")
    return figure


def roc(rows: Sequence[JudgeResult], width: float) -> Figure:
    """Draw how many right and wrong answers each judge accepts, the largest areas first."""
    figure = _framed(width, min(width, LARGEST_INCHES) * 0.85, "")
    axes = figure.add_subplot()
    axes.plot((0, 100), (0, 100), color=GREY, linestyle=":", linewidth=0.8)
    handles: dict[str, Any] = {}
    for nth, row in enumerate(rows):
        points = [(100 * wrong, 100 * right) for wrong, right in row.curve]
        (line,) = axes.plot(*zip(*points, strict=True), DASHES[nth % len(DASHES)], **series_style(nth))
        line.set_markevery(list(range(1, len(points) - 1)) if len(points) - 2 <= MOST_MARKED else [])
        handles[f"{row.judge} {value_words(row.roc_auc)}"] = line
    axes.set_xlabel("wrong answers accepted (%)")
    axes.set_ylabel("right answers accepted (%)")
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.set_aspect("equal", anchor="W")
    axes.grid(visible=True)
    _add_legend(figure, handles, list(handles), "ROC-AUC [95 % CI]. Dotted: chance, 50.0.")
    return figure
