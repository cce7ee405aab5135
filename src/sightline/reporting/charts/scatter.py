"""Scatter: one metric against another, a mark for each model (MM-R3: consistency against accuracy)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.escaping import for_plot
from sightline.metric_types import PERCENT, MetricValue, PublishedValue, Result
from sightline.registry import benchmark_class
from sightline.reporting.charts.chart_values import axis_words, n_words
from sightline.reporting.charts.frame import add_legend, framed, grid_of
from sightline.reporting.charts.marks import GREY, LIGHT, published_style, series_style
from sightline.reporting.notes import published_notes
from sightline.reporting.tables import run_names, title_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class MetricPair(Struct, frozen=True):
    """Two metrics of a run, or two published `figures` of a row; `name` is that of the run or the row."""

    name: str
    x: MetricValue
    y: MetricValue
    figures: tuple[PublishedValue, ...] = ()

    @property
    def published(self) -> bool:
        """Whether it is a row of a paper."""
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
    """The pairs of metrics of a scatter plot.

    Args:
        metrics: The metrics that the user names: two, the horizontal one first; or none.
    """
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
    """Draw a scatter plot: a panel for each pair of metrics, a mark with two 95 % CI for each run.

    Args:
        metrics: The two metrics; by default those whose correlation the paper discusses.
    """
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
        handles |= _panel(axes, pairs)
    shown = [
        (metric.metric, one)
        for pairs in panels.values()
        for pair in pairs
        for metric, one in zip((pair.x, pair.y), pair.figures, strict=False)
    ]
    hollow = ["Hollow: published.", *(f"{note}." for note in published_notes(shown))] if shown else []
    add_legend(figure, handles, list(handles), " ".join(["Whiskers: 95 % CI.", *hollow]))
    return figure


def _panel(axes: Axes, pairs: Sequence[MetricPair]) -> dict[str, Any]:
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
