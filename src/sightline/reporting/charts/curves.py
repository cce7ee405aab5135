"""Curves of metrics over a varied option: a panel per metric, a line per model (MM-R3, Figures 2-3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sightline.errors import UserError
from sightline.escaping import for_plot
from sightline.metric_types import MetricValue
from sightline.reporting.charts.chart_values import axis_words, n_words
from sightline.reporting.charts.frame import add_legend, framed, grid_of
from sightline.reporting.charts.marks import COLOURS, DASHES, LIGHT, published_style, series_style
from sightline.reporting.leading import leading_metrics
from sightline.reporting.notes import published_notes
from sightline.reporting.option_texts import options_text
from sightline.reporting.varied_options import ResultPoint, row_names, task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_INCHES = 1.7
"""The height of a panel."""


def numeric_options(places: Sequence[Mapping[str, Any]]) -> list[str]:
    """The varied options along which curves can go."""
    names = dict.fromkeys(name for values in places for name in values)
    return [name for name in names if len({_number(values.get(name)) for values in places} - {None}) > 1]


def curve_option(places: Sequence[Mapping[str, Any]]) -> str:
    """Find the varied option along which curves go."""
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
    height = sum(0.25 + PANEL_INCHES * lines for lines in lines_of.values())
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
            _label(axes, lines, metric, along)
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


def _label(axes: Axes, lines: Sequence[_Curve], metric: str, along: str) -> None:
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
