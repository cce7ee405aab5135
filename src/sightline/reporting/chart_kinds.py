"""The kinds of charts: bars, curves, forest plots, matrices, radars and scatter plots."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.reporting.chart_parts import (
    AXIS_UNITS,
    COLOURS,
    DASHES,
    GREY,
    HATCHES,
    LIGHT,
    WIDE,
    Chart,
    ChartValue,
    add_legend,
    axis_words,
    framed,
    grid_of,
    is_human,
    n_words,
    note_of,
    published_marks,
    published_style,
    series_style,
    shared_figures,
    value_words,
)
from sightline.reporting.notes import ResultPoint, options_text, published_notes, row_names, task_of
from sightline.reporting.tables import leading_metrics, run_names, title_of
from sightline.text import for_plot
from sightline.types import PERCENT, MetricValue, PublishedValue, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.projections.polar import PolarAxes


ChartKind = Literal["forest", "bars", "radar", "scatter", "curves", "matrix"]


# -- Bars: a group of bars for each model or value of a label, with 95 % CI, n and published figures

BAR_PANEL_INCHES = 1.75
LEVEL_LETTERS = 13
"""The letters that fit in an inch; names of groups with longer words are slanted."""


def bars(chart: Chart, width: float) -> Figure:
    """Draw bars: a panel for each metric, a group for each category, a bar for each series."""
    panels = chart.panels
    down, across = grid_of(len(panels), width)
    figure = framed(width, BAR_PANEL_INCHES * down, chart.title)
    handles: dict[str, Any] = {}
    for nth, axes in enumerate(figure.subplots(down, across, squeeze=False).flat):
        if nth < len(panels):
            handles |= _bar_panel(axes, chart, panels[nth], width / across)
        else:
            axes.set_visible(False)
    add_legend(
        figure,
        handles,
        [*chart.series, *chart.published_rows],
        note_of(chart, also="n: below each group."),
    )
    return figure


def _bar_panel(axes: Axes, chart: Chart, panel: str, inches: float) -> dict[str, Any]:
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
    _bar_label(axes, chart, panel, inches)
    return handles


def _bar_label(axes: Axes, chart: Chart, panel: str, inches: float) -> None:
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
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (0.45 + 0.55 * part for part in parts)
    return red, green, blue


# -- Curves of metrics over a varied option: a panel per metric, a line per model (MM-R3, Figures 2-3)

CURVE_PANEL_INCHES = 1.7
"""The height of a panel."""


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


def curves(points: Sequence[ResultPoint], width: float, metrics: Sequence[str] = ()) -> Figure:
    """Draw results along a varied option.

    Each benchmark and setting has its own panels, each leading metric a panel, each combination of the
    other varied options a line with its 95 % CI as a band. Points without a number (`size=null`) or
    without a value are left out. Published figures are hollow marks.
    """
    return _figure(points, curve_option([point.values for point in points]), width, metrics)


class _Curve(Struct, frozen=True):
    """A line in a panel: its name, and a metric at each number in ascending order."""

    name: str
    metrics: list[tuple[float, MetricValue]]


def _figure(points: Sequence[ResultPoint], along: str, width: float, metrics: Sequence[str]) -> Figure:
    tasks = list(dict.fromkeys(task_of(point.result) for point in points))
    panels = {
        task: metrics
        or leading_metrics(task[0], [p.result.metrics for p in points if task_of(p.result) == task])
        for task in tasks
    }
    _, across = grid_of(max(map(len, panels.values())), width)
    lines_of = {task: -(-len(shown) // across) for task, shown in panels.items()}
    height = sum(0.25 + CURVE_PANEL_INCHES * lines for lines in lines_of.values())
    figure = framed(width, height, f"Metrics by {along}")
    rows = figure.subfigures(len(tasks), 1, squeeze=False, height_ratios=list(lines_of.values()))[:, 0]
    styles: dict[str, int] = {}
    for row, (task, shown) in zip(rows, panels.items(), strict=True):
        row.suptitle(for_plot(":".join(task)), x=0.01, ha="left", fontsize=8, fontweight="bold")
        own = [point for point in points if task_of(point.result) == task]
        for axes, metric in zip(
            row.subplots(lines_of[task], across, squeeze=False).flat, shown, strict=False
        ):
            lines = _lines(own, along, metric)
            _draw(axes, lines, styles)
            _curve_label(axes, lines, metric, along)
        for axes in row.axes[len(shown) :]:
            axes.set_visible(False)
    handles: dict[str, Any] = {}
    for axes in (axes for row in figure.subfigs for axes in row.axes):
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    printed = [
        (metric.metric, value)
        for point in points
        for metric in point.result.metrics
        if metric.metric in panels[task_of(point.result)] and metric.subset == "all"
        for value in metric.published or ()
    ]
    hollow = ["Hollow: published.", *(f"{note}." for note in published_notes(printed))]
    is_hollow = any(map(_is_hollow, handles.values()))
    add_legend(figure, handles, list(handles), " ".join(["Bands: 95 % CI.", *(hollow if is_hollow else ())]))
    return figure


def _is_hollow(handle: Any) -> bool:
    return bool(handle.get_linestyle() == "None")


def _lines(points: Sequence[ResultPoint], along: str, metric: str) -> list[_Curve]:
    found: dict[str, dict[float, MetricValue]] = {}
    for name, point in zip(row_names(points), points, strict=True):
        others = options_text({option: value for option, value in point.values.items() if option != along})
        number = _number(point.values.get(along))
        unanswered = point.result.unanswered == point.result.probes
        value = next((m for m in point.result.metrics if (m.metric, m.subset) == (metric, "all")), None)
        if number is not None and value is not None and value.value is not None and not unanswered:
            found.setdefault(", ".join(filter(None, (name, others))), {})[number] = value
    return [_Curve(name, sorted(values.items(), key=lambda item: item[0])) for name, values in found.items()]


def _draw(axes: Axes, lines: Sequence[_Curve], styles: dict[str, int]) -> None:
    for line in lines:
        nth = styles.setdefault(line.name, len(styles))
        style, dashes = series_style(nth), DASHES[nth // len(COLOURS) % len(DASHES)]
        numbers = [number for number, _ in line.metrics]
        values = [metric.value or 0.0 for _, metric in line.metrics]
        axes.plot(
            numbers,
            values,
            dashes,
            markersize=4,
            linewidth=1.0,
            label=line.name,
            **style,
        )
        bounds = [
            (number, metric.low, metric.high)
            for number, metric in line.metrics
            if metric.low is not None and metric.high is not None
        ]
        if bounds:
            where, low, high = zip(*bounds, strict=True)
            axes.fill_between(where, low, high, color=style["color"], alpha=0.15, linewidth=0)
    for nth, (name, printed) in enumerate(_printed(lines).items()):
        mark = published_style(nth)
        axes.plot(list(printed), list(printed.values()), markersize=5, label=name, **mark)


def _printed(lines: Sequence[_Curve]) -> dict[str, dict[float, float]]:
    """The published figures by row and table, at each number."""
    printed: dict[str, dict[float, float]] = {}
    for line in lines:
        for number, metric in line.metrics:
            for value in metric.published or ():
                name = f"{value.row}, {value.table} {value.mark}".rstrip()
                printed.setdefault(name, {})[number] = value.value
    return printed


def _curve_label(axes: Axes, lines: Sequence[_Curve], metric: str, along: str) -> None:
    values = [value for line in lines for _, value in line.metrics]
    axes.set_title(for_plot(f"{axis_words(metric, values)}, n {n_words(values)}"))
    axes.set_xlabel(for_plot(along))
    numbers = sorted({number for line in lines for number, _ in line.metrics})
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    axes.grid(color=LIGHT, linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)


def _number(value: Any) -> float | None:
    """A varied value as a number: 0.7, or '224'; None for a switch, a word or null."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


# -- Forest plots: a row for each value with its 95 % CI, n and published figures

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
            handles |= _forest_panel(axes, chart, panels[nth], in_words=across == 1 and width >= WIDE)
            if nth % across and chart.rows(panels[nth]) == chart.rows(panels[nth - 1]):
                axes.tick_params(axis="y", labelleft=False)
        else:
            axes.set_visible(False)
    add_legend(figure, handles, [*series, *chart.published_rows], note_of(chart))
    return figure


def _forest_panel(axes: Axes, chart: Chart, panel: str, *, in_words: bool) -> dict[str, Any]:
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


# -- Matrix: a value for every two judges, humans or responses, as shades of grey with the numbers in them

CELL_INCHES = 0.72

BETWEEN = " and "
"""What stands between the two names in a subset, as in 'judges=A and B'."""


def matrix(title: str, values: Sequence[MetricValue], width: float) -> Figure:
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
    _, _, both = value.subset.partition("=")
    first, between, second = both.partition(BETWEEN)
    return (first, second) if between else None


# -- Radar: a metric under the values of a label, a spoke each, with 95 % CI and n (II-Bench, by domain)

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
        handles |= _radar_panel(axes, chart, panel)
    add_legend(
        figure,
        handles,
        [*chart.series, *chart.published_rows],
        note_of(chart, also="In parentheses: n."),
    )
    return figure


def _radar_panel(axes: PolarAxes, chart: Chart, panel: str) -> dict[str, Any]:
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
    _radar_label(axes, chart, panel, angles)
    return handles


def _published(axes: PolarAxes, chart: Chart, panel: str, angles: dict[str, float]) -> dict[str, Any]:
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


def _radar_label(axes: PolarAxes, chart: Chart, panel: str, angles: dict[str, float]) -> None:
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


# -- Scatter: one metric against another, a mark for each model (MM-R3: consistency against accuracy)


class MetricPair(Struct, frozen=True):
    """Two metrics of a run, or two published `figures` of a row; `name` is that of the run or the row."""

    name: str
    x: MetricValue
    y: MetricValue
    figures: tuple[PublishedValue, ...] = ()

    @property
    def published(self) -> bool:
        return bool(self.figures)


def metric_pairs(
    results: Sequence[Result], names: tuple[str, str], runs: Sequence[str] = ()
) -> list[MetricPair]:
    """Two metrics over all samples of each run that has both, then of each published row."""
    found: list[MetricPair] = []
    printed: dict[str, MetricPair] = {}
    for run, result in zip(run_names(results, runs), results, strict=True):
        over_all = {metric.metric: metric for metric in result.metrics if metric.subset == "all"}
        x, y = over_all.get(names[0]), over_all.get(names[1])
        if x is None or y is None or x.value is None or y.value is None:
            continue
        found.append(MetricPair(run, x, y))
        for figure in x.published or ():
            other = next(
                (o for o in y.published or () if (o.row, o.table) == (figure.row, figure.table)), None
            )
            if other is not None:
                # The mark that says more: not comparable before a note.
                mark = min(filter(None, (figure.mark, other.mark)), default="")
                name = f"{figure.row}, {figure.table} {mark}".rstrip()
                first, second = (
                    replace(m, value=v.value, low=None, high=None, n=0) for m, v in ((x, figure), (y, other))
                )
                printed.setdefault(name, MetricPair(name, first, second, (figure, other)))
    return [*found, *printed.values()]


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
    panels = {
        names: pairs
        for names in plotted_pairs(results[0].benchmark, metrics)
        if (pairs := metric_pairs(results, names, runs))
    }
    if not panels:
        raise UserError("nothing to plot: no result has both metrics of the scatter plot")
    down, across = grid_of(len(panels), width)
    figure = framed(width, min(width / across, 3.4) * 0.85 * down, title_of(results, None, runs))
    handles: dict[str, Any] = {}
    for nth, pairs in enumerate(panels.values()):
        axes = figure.add_subplot(down, across, nth + 1)
        handles |= _scatter_panel(axes, pairs)
    shown = [
        (metric.metric, one)
        for pairs in panels.values()
        for pair in pairs
        for metric, one in zip((pair.x, pair.y), pair.figures, strict=False)
    ]
    hollow = ["Hollow: published.", *(f"{note}." for note in published_notes(shown))] if shown else []
    add_legend(figure, handles, list(handles), " ".join(["Whiskers: 95 % CI.", *hollow]))
    return figure


def _scatter_panel(axes: Axes, pairs: Sequence[MetricPair]) -> dict[str, Any]:
    """Draw a panel; returns its marks by name."""
    handles: dict[str, Any] = {}
    measured = [pair for pair in pairs if not pair.published]
    for nth, pair in enumerate(measured):
        style = series_style(nth)
        x, y = pair.x.value or 0.0, pair.y.value or 0.0
        if pair.x.low is not None and pair.x.high is not None:
            axes.plot([pair.x.low, pair.x.high], [y, y], color=style["color"], linewidth=0.9)
        if pair.y.low is not None and pair.y.high is not None:
            axes.plot([x, x], [pair.y.low, pair.y.high], color=style["color"], linewidth=0.9)
        (handles[pair.name],) = axes.plot(x, y, markersize=5, linestyle="none", zorder=3, **style)
    for nth, pair in enumerate(pair for pair in pairs if pair.published):
        (handles[pair.name],) = axes.plot(
            pair.x.value or 0.0, pair.y.value or 0.0, markersize=5, **published_style(nth)
        )
    first, second = ([getattr(pair, side) for pair in measured] for side in ("x", "y"))
    axes.set_xlabel(for_plot(f"{axis_words(first[0].metric, first)}, n {n_words(first)}"))
    axes.set_ylabel(for_plot(f"{axis_words(second[0].metric, second)}, n {n_words(second)}"))
    axes.set_xlim(*_limits(pair.x for pair in pairs))
    axes.set_ylim(*_limits(pair.y for pair in pairs))
    axes.grid(color=LIGHT, linewidth=0.4)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_color(GREY)
    return handles


def _limits(metrics: Iterable[MetricValue]) -> tuple[float | None, float | None]:
    """The ends of an axis: the whole range of percentages; otherwise matplotlib chooses them."""
    shown = list(metrics)
    if any(metric.unit != "percent" for metric in shown):
        return None, None
    low = min([0.0, *(x for metric in shown for x in (metric.value, metric.low) if x is not None)])
    edge = 0.02 * (PERCENT[1] - low)
    return low - edge, PERCENT[1] + edge
