"""Plots in table cells as SVG (in percent of their width), and the charts of pages as images.

Each plot repeats numbers that are also in its row or table. The macros of `plots.html` show them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import add_published, paper_of
from sightline.formats.files import json_digest
from sightline.reporting.chart_kinds import (
    FEWEST_SPOKES,
    MOST_CURVES,
    radar,
    roc,
    scatter,
)
from sightline.reporting.charts import PAGE_INCHES, THEMES, Theme, can_draw, chart_bytes, results_chart
from sightline.reporting.judges import JudgeResult
from sightline.reporting.metric_pairs import MetricPair, metric_pairs
from sightline.reporting.notes import first_of_rows, label_of
from sightline.reporting.tables import leading_metrics, title_of
from sightline.types import PERCENT, MetricValue, Range, Result, Unit
from sightline.viewer.environment import number as number_text
from sightline.viewer.environment import signed
from sightline.viewer.index_types import GroupFilter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 4.0
"""The distance of the ends of a scale from the edges of the cell, in percent of its width."""

UNIT_WORDS: dict[Unit, str] = {"percent": " percent", "points": " points", "number": ""}

ENDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 100.0)
"""The ends of scales of differences."""

PointKind = Literal["measured", "published", "human", "chance"]


class Scale(Struct, frozen=True):
    """An axis from `low` to `high` with grid lines; `zero` draws the line of no difference."""

    low: float
    high: float
    ticks: tuple[float, ...]
    zero: bool = False

    def x(self, value: float) -> str:
        """The place of a value on the axis, within its ends.

        >>> PERCENT_SCALE.x(50)
        '50.00%'
        """
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return f"{MARGIN + (100 - 2 * MARGIN) * share:.2f}%"

    def tick_text(self, tick: float) -> str:
        text = f"{tick:+g}" if self.zero and tick else f"{tick:g}"
        return text.replace("-", "\N{MINUS SIGN}")


PERCENT_SCALE = Scale(0.0, 100.0, (0.0, 25.0, 50.0, 75.0, 100.0))


class PlotPoint(Struct, frozen=True):
    """A value in a plot; `name` says whose it is if it is not this run's."""

    kind: PointKind
    value: float
    low: float | None = None
    high: float | None = None
    name: str = ""


class PlotCell(Struct, frozen=True):
    """A plot of some values on a scale."""

    scale: Scale
    points: tuple[PlotPoint, ...]
    unit: Unit = "percent"

    @property
    def label(self) -> str:
        form = signed if self.scale.zero else number_text
        words = [
            f"{f'{point.name} ' if point.name else ''}{form(point.value, self.unit)}{UNIT_WORDS[self.unit]}"
            + _interval_words(point, self.unit, signed_bounds=self.scale.zero)
            for point in self.points
        ]
        return ", ".join(words) or "no value"

    def of_kind(self, kind: PointKind) -> list[PlotPoint]:
        return [point for point in self.points if point.kind == kind]


def scale_of(bounds: Range, values: Iterable[float | None]) -> Scale:
    if bounds == PERCENT:
        return PERCENT_SCALE
    low, high = bounds
    shown = [value for value in values if value is not None]
    low = min([0.0, *shown]) if low is None else low
    high = max([low + 1.0, *shown]) if high is None else high
    return Scale(low, high, tuple(low + (high - low) * part / 4 for part in range(5)))


def common_scale(scales: Sequence[Scale], values: Sequence[MetricValue]) -> Scale:
    """A scale that holds all others; it begins at 0 if no value or interval is below."""
    low, high = min(scale.low for scale in scales), max(scale.high for scale in scales)
    below = any(number is not None and number < 0 for one in values for number in (one.value, one.low))
    return scale_of((low if below else max(low, 0.0), high), ())


def difference_scale(values: Iterable[float | None]) -> Scale:
    """A scale with zero in the middle.

    >>> difference_scale([3.0, -12.0, None]).ticks
    (-20.0, -10.0, 0.0, 10.0, 20.0)
    """
    furthest = max((abs(value) for value in values if value is not None), default=0.0)
    end = next((end for end in ENDS if end >= furthest), furthest)
    return Scale(-end, end, (-end, -end / 2, 0.0, end / 2, end), zero=True)


def metric_plot(
    metric: MetricValue, scale: Scale, *, humans: Sequence[str] = (), chance: float | None = None
) -> PlotCell:
    """The plot of a value beside comparable published figures; `humans` are rows of the paper."""
    published = [
        PlotPoint("human" if one.row in humans else "published", one.value, name=_row_words(one.row, humans))
        for one in first_of_rows([one for one in metric.published or () if one.comparable])
    ]
    return PlotCell(scale, (*measured(metric), *published, *chance_points(chance)), metric.unit)


def measured(metric: MetricValue) -> list[PlotPoint]:
    """The point of a measured value; none if it is undefined."""
    if metric.value is None:
        return []
    return [PlotPoint("measured", metric.value, metric.low, metric.high)]


def chance_points(chance: float | None) -> list[PlotPoint]:
    """The point of guessing; none if its value is unknown."""
    return [] if chance is None else [PlotPoint("chance", chance, name="chance")]


def _row_words(row: str, humans: Sequence[str]) -> str:
    return "human" if row in humans[:1] else f"{row} published"


def _interval_words(point: PlotPoint, unit: Unit, *, signed_bounds: bool) -> str:
    if point.low is None or point.high is None:
        return ""
    form = signed if signed_bounds else number_text
    return f", 95 % CI {form(point.low, unit)} to {form(point.high, unit)}"


# -- Charts of pages and reports: images by matplotlib, drawn when they are first shown, and kept

MOST_SPOKES = 12
"""The most labels of a radar."""

MOST_CHARTS = 256
"""The charts whose images can be asked for; a page that is loaded again brings back older ones."""

DPI = 192
"""The pixels of an inch: two for each pixel of a page."""


class PageChart(Struct, frozen=True):
    """A chart in a page, with an image for each theme: its numbers as text, the digest of its content."""

    label: str
    digest: str
    draw: Callable[[], Figure]

    def address(self, theme: Theme, *, inline: bool) -> str:
        """Where an image is: in the page itself, or at an address of the server; '' without matplotlib."""
        if not can_draw():
            return ""
        if inline:
            return f"data:image/png;base64,{base64.b64encode(_png(self.digest, theme)).decode()}"
        return f"/charts/{self.digest}-{theme}.png"


_CHARTS: dict[str, PageChart] = {}
"""The latest charts by digest."""


def page_chart(label: str, content: Sequence[object], draw: Callable[[], Figure]) -> PageChart:
    """A chart of `content`, from which `draw` draws it."""
    found = PageChart(label, json_digest(msgspec.to_builtins(content)), draw)
    _CHARTS.pop(found.digest, None)  # shown last, gone last
    _CHARTS[found.digest] = found
    for old in list(_CHARTS)[:-MOST_CHARTS]:
        _CHARTS.pop(old, None)
    return found


def chart_image(name: str) -> bytes | None:
    """The image of a chart by its name in an address; None if it is not known any more."""
    digest, _, theme = name.removesuffix(".png").rpartition("-")
    if digest not in _CHARTS or theme not in THEMES:
        return None
    return _png(digest, theme)


@lru_cache(maxsize=MOST_CHARTS)
def _png(digest: str, theme: Theme) -> bytes:
    return chart_bytes(_CHARTS[digest].draw, ".png", theme, DPI)


def scatter_chart(
    runs: Sequence[NamedResult], names: tuple[str, str]
) -> tuple[PageChart, Sequence[MetricPair]] | None:
    """Two metrics of runs and of the rows of the paper that print both; None with fewer than two points."""
    paper = paper_of(runs[0].result.benchmark)
    first, *others = [run.result for run in runs]
    results = [add_published(first, *paper.row_names) if paper else first, *others]
    called = [run.name for run in runs]
    pairs = metric_pairs(results, names, called)
    if len(pairs) < 2:
        return None
    words = [f"{one.name}: {number_text(one.x.value)}, {number_text(one.y.value)}" for one in pairs]
    label = f"{names[1]} against {names[0]}. {'; '.join(words)}"
    content = [title_of(results, None, called), pairs]
    return page_chart(label, content, lambda: scatter(results, PAGE_INCHES, names, called)), pairs


def radar_chart(runs: Sequence[NamedResult], metric: str, label: str) -> PageChart | None:
    """A metric under each value of a label; None with too few or too many values."""
    held = [(run.name, run.by_label(metric, label)) for run in runs]
    rows = {name for _, values in held for name, value in values.items() if value.value is not None}
    if not FEWEST_SPOKES <= len(rows) <= MOST_SPOKES:
        return None
    results = [run.result for run in runs]
    chart = results_chart(results, label, [metric], [name for name, _ in held])
    words = [
        f"{name}: " + ", ".join(f"{row} {number_text(value.value)}" for row, value in values.items())
        for name, values in held
    ]
    return page_chart("; ".join(words), [chart], lambda: radar(chart, PAGE_INCHES))


def roc_chart(rows: Sequence[JudgeResult]) -> PageChart | None:
    """The curves of judges, the largest areas first; None if humans call all answers alike."""
    drawn = sorted((row for row in rows if row.curve), key=lambda row: -(row.roc_auc.value or 0.0))
    drawn = drawn[:MOST_CURVES]
    if not drawn:
        return None
    label = "; ".join(f"{row.judge}: area {number_text(row.roc_auc.value)} percent" for row in drawn)
    return page_chart(label, drawn, lambda: roc(drawn, PAGE_INCHES))


# -- The results on a page, and what it looks up in them: values by label, scales, leading metrics


class NamedResult(Struct, frozen=True):
    """A result, what the page calls it, and the number of groups (None if it is not indexed)."""

    name: str
    result: Result
    count: Callable[[GroupFilter], int] | None = None

    def value(self, metric: str, subset: str = "all") -> MetricValue | None:
        found = (one for one in self.result.metrics if one.metric == metric and one.subset == subset)
        return next(found, None)

    def by_label(self, metric: str, label: str) -> dict[str, MetricValue]:
        """The values of a metric under each value of a label, in the order of the result."""
        return {
            value: one
            for one in self.result.metrics
            if one.metric == metric and (found := label_of(one))[0] == label and (value := found[1])
        }


def leading(runs: Sequence[NamedResult]) -> list[str]:
    """The metrics that lead the page of some runs of one benchmark."""
    return leading_metrics(runs[0].result.benchmark, [run.result.metrics for run in runs])


def human_rows(benchmark: str) -> Sequence[str]:
    paper = paper_of(benchmark)
    return paper.human_rows if paper else ()


def chance_of(benchmark: str, metric: str) -> float | None:
    """The value that guessing gives, if it is one number."""
    return benchmark_class(benchmark).chance_levels.get(metric)


def metric_scale(runs: Sequence[NamedResult], metric: str, values: Iterable[MetricValue]) -> Scale:
    definitions = (run.result.metric_definitions.get(metric) for run in runs)
    definition = next((one for one in definitions if one is not None), None)
    if definition is None:
        return PERCENT_SCALE
    numbers = [number for one in values for number in (one.value, one.low, one.high)]
    return scale_of(definition.range, numbers)


def meaning(runs: Sequence[NamedResult], metric: str) -> str:
    """What a metric means, in one line; '' if the results do not say."""
    definitions = (run.result.metric_definitions.get(metric) for run in runs)
    return next((one.meaning for one in definitions if one is not None), "")


def number_of(value: MetricValue | None) -> float:
    return 0.0 if value is None or value.value is None else value.value


def words_of(label: str) -> str:
    return label.replace("_", " ")
