"""Curves of metrics over a varied option: a panel per metric, a line per model (MM-R3, Figures 2-3)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from sightline.errors import UserError
from sightline.escaping import for_plot
from sightline.formats.files import write_atomically
from sightline.metric_types import MetricValue
from sightline.report.leading import leading_metrics
from sightline.report.option_texts import options_text
from sightline.report.varied_options import ResultPoint, row_names, task_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C564B")
"""The palette of Okabe and Ito, which is safe for colour-blind readers, without its yellow (low contrast)."""

MARKS, HOLLOW = "osD^vPX*", "osD^v"
DASHES = ("-", "--", ":", "-.")
FORMS = {".png": "png", ".svg": "svg"}
PANEL_INCHES = (3.1, 2.7)
LINE_INCHES = 0.2
"""The height of a line of the legend."""


def check_plot(path: Path, places: Sequence[Mapping[str, Any]]) -> str:
    """Check before any request that curves can be drawn.

    Args:
        path: The file for the plot.
        places: The varied options of each result with their values.

    Returns:
        The option along which the curves go: the one with at least two numbers.

    Raises:
        UserError: No option or several options have numbers, the file type or the folder is unusable, or
            matplotlib is missing.
    """
    from importlib.util import find_spec

    if path.suffix.lower() not in FORMS:
        raise UserError("unknown file type for a plot", file=path, expected="a name ending in .png or .svg")
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(
            "cannot be written: not a file in an existing folder",
            file=path,
            expected="a file name in an existing folder",
        )
    if find_spec("matplotlib") is None:
        raise UserError("curves need matplotlib", expected="pip install 'sightline[plot]'")
    names = dict.fromkeys(name for values in places for name in values)
    numeric = [name for name in names if len({_number(values.get(name)) for values in places} - {None}) > 1]
    if len(numeric) == 1:
        return numeric[0]
    found = f"{' and '.join(numeric)} both have numbers" if numeric else "no option has two numbers or more"
    raise UserError(
        f"curves go along one varied option: {found}",
        expected="one option with several numbers, such as temperature=0.2,0.7,1",
    )


def curves(points: Sequence[ResultPoint], path: Path) -> None:
    """Draw results to a PNG or SVG file; equal results give equal bytes.

    Each benchmark and setting has a row of panels, each leading metric a panel, each combination of the
    other varied options a line with its 95 % CI as a band. Points without a number (`size=null`) or
    without a value are left out. Published figures are hollow marks.

    Args:
        points: The results with their varied options.
        path: The file.

    Raises:
        UserError: See `check_plot`.
        EnvironmentFailedError: The file cannot be written.
    """
    along = check_plot(path, [point.values for point in points])
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        # A fixed salt makes the ids inside an SVG reproducible.
        matplotlib.rcParams.update({"svg.hashsalt": "sightline", "font.size": 9})
        figure = _figure(points, along)
        form = FORMS[path.suffix.lower()]
        file = io.BytesIO()
        silent: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
        figure.savefig(file, format=form, dpi=200, metadata=silent)
    write_atomically(path, [file.getvalue()])


class _Curve(Struct, frozen=True):
    """A line in a panel: its name, and a metric at each number in ascending order."""

    name: str
    metrics: list[tuple[float, MetricValue]]


def _figure(points: Sequence[ResultPoint], along: str) -> Figure:
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(task_of(point.result) for point in points))
    panels = {
        task: leading_metrics(task[0], [p.result.metrics for p in points if task_of(p.result) == task])
        for task in tasks
    }
    across = max(map(len, panels.values()))
    width, height = PANEL_INCHES
    figure = Figure(figsize=(width * across, height * len(tasks)), layout="constrained")
    rows = figure.subfigures(len(tasks), 1, squeeze=False)[:, 0]
    styles: dict[str, int] = {}
    for row, (task, metrics) in zip(rows, panels.items(), strict=True):
        row.suptitle(for_plot(":".join(task)), x=0.01, ha="left", fontweight="bold")
        own = [point for point in points if task_of(point.result) == task]
        for axes, metric in zip(row.subplots(1, across, squeeze=False)[0], metrics, strict=False):
            lines = _lines(own, along, metric)
            _draw(axes, lines, styles)
            _label(axes, lines, metric, along)
        for axes in row.axes[len(metrics) :]:
            axes.set_visible(False)
    _legend(figure)
    return figure


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
        colour, dashes = COLOURS[nth % len(COLOURS)], DASHES[nth // len(COLOURS) % len(DASHES)]
        numbers = [number for number, _ in line.metrics]
        values = [metric.value or 0.0 for _, metric in line.metrics]
        axes.plot(
            numbers,
            values,
            dashes,
            color=colour,
            marker=MARKS[(nth + nth // len(COLOURS)) % len(MARKS)],
            markersize=4,
            label=for_plot(line.name),
        )
        bounds = [
            (number, metric.low, metric.high)
            for number, metric in line.metrics
            if metric.low is not None and metric.high is not None
        ]
        if bounds:
            where, low, high = zip(*bounds, strict=True)
            axes.fill_between(where, low, high, color=colour, alpha=0.12, linewidth=0)
    for nth, (name, printed) in enumerate(_printed(lines).items()):
        axes.plot(
            list(printed),
            list(printed.values()),
            HOLLOW[nth % len(HOLLOW)],
            color="#444444",
            markerfacecolor="none",
            markersize=7,
            label=for_plot(name),
        )


def _printed(lines: Sequence[_Curve]) -> dict[str, dict[float, float]]:
    """The published figures by row and table, at each number."""
    printed: dict[str, dict[float, float]] = {}
    for line in lines:
        for number, metric in line.metrics:
            for value in metric.published or ():
                mark = "" if value.comparable else ", not comparable"
                printed.setdefault(f"{value.row} ({value.table}{mark})", {})[number] = value.value
    return printed


def _label(axes: Axes, lines: Sequence[_Curve], metric: str, along: str) -> None:
    units = {value.unit for line in lines for _, value in line.metrics}
    axes.set_title(f"{metric} (%)" if units == {"percent"} else metric)
    axes.set_xlabel(for_plot(along))
    numbers = sorted({number for line in lines for number, _ in line.metrics})
    axes.set_xticks(numbers, [f"{number:g}" for number in numbers])
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure) -> None:
    """One legend for all panels, below them."""
    handles: dict[str, Any] = {}
    for axes in (axes for row in figure.subfigs for axes in row.axes):
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    longest = max(map(len, handles), default=1)
    width, height = figure.get_size_inches()
    columns = max(1, min(len(handles), int(width / (0.075 * longest + 0.5))))
    figure.set_size_inches(width, height + 0.3 + LINE_INCHES * -(-len(handles) // columns))
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False
    )


def _number(value: Any) -> float | None:
    """A varied value as a number: 0.7, or '224'; None for a switch, a word or null."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None
