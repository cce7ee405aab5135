"""Plots in table cells (in percent of their width), scatter plots, radars and ROC curves, as SVG.

Each plot repeats numbers that are also in its row or table. The macros of `plots.html` draw them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import paper_of
from sightline.reporting.judges import JudgeResult
from sightline.reporting.notes import label_of
from sightline.reporting.tables import leading_metrics
from sightline.types import PERCENT, MetricValue, Range, Result, Unit
from sightline.viewer.environment import number as number_text
from sightline.viewer.environment import signed
from sightline.viewer.index_types import GroupFilter

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
        for one in metric.published or ()
        if one.comparable
    ]
    return PlotCell(
        scale, (*measured(metric), *_first_of_rows(published), *chance_points(chance)), metric.unit
    )


def measured(metric: MetricValue) -> list[PlotPoint]:
    """The point of a measured value; none if it is undefined."""
    if metric.value is None:
        return []
    return [PlotPoint("measured", metric.value, metric.low, metric.high)]


def chance_points(chance: float | None) -> list[PlotPoint]:
    """The point of guessing; none if its value is unknown."""
    return [] if chance is None else [PlotPoint("chance", chance, name="chance")]


def _first_of_rows(points: Sequence[PlotPoint]) -> list[PlotPoint]:
    """The first figure of each row: a paper may print two."""
    return list({point.name: point for point in reversed(points)}.values())[::-1]


def _row_words(row: str, humans: Sequence[str]) -> str:
    return "human" if row in humans[:1] else f"{row} published"


def _interval_words(point: PlotPoint, unit: Unit, *, signed_bounds: bool) -> str:
    if point.low is None or point.high is None:
        return ""
    form = signed if signed_bounds else number_text
    return f", 95 % CI {form(point.low, unit)} to {form(point.high, unit)}"


# -- Charts as SVG without a script: a scatter plot and a radar. Their numbers stand in tables too

WIDTH, HEIGHT = 640.0, 360.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 24.0, 12.0, 40.0
"""The frame around the area of a scatter plot, for the numbers of its axes."""

RADAR, RADIUS = 420.0, 130.0
"""The width of a radar chart, and the distance of its outer ring from the centre."""


class Dot(Struct, frozen=True):
    """A point of a scatter plot, in pixels; `is_run` is a measured one."""

    name: str
    x: float
    y: float
    is_run: bool
    label: str


class Scatter(Struct, frozen=True):
    """A scatter plot: grid lines with their texts, and points."""

    x_name: str
    y_name: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    label: str


class Spoke(Struct, frozen=True):
    """An axis of a radar chart: its end, and the place and side of its name."""

    name: str
    x: float
    y: float
    text_x: float
    text_y: float
    anchor: str


class Ring(Struct, frozen=True):
    """A closed line of a radar chart as SVG points; the name of its run, or the number of a grid line."""

    name: str
    points: str


class Radar(Struct, frozen=True):
    """A radar chart: an axis for each label, a line for each run."""

    spokes: tuple[Spoke, ...]
    grid: tuple[Ring, ...]
    rings: tuple[Ring, ...]
    label: str


class Value2D(Struct, frozen=True):
    """Two values of one run or row."""

    name: str
    x: float
    y: float
    is_run: bool


def scatter(points: Sequence[Value2D], x: Scale, y: Scale, names: tuple[str, str]) -> Scatter:
    def at_x(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * (value - x.low) / (x.high - x.low), 1)

    def at_y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - y.low) / (y.high - y.low), 1)

    dots = tuple(
        Dot(one.name, at_x(one.x), at_y(one.y), one.is_run, f"{one.name}: {one.x:.1f}, {one.y:.1f}")
        for one in points
    )
    return Scatter(
        *names,
        tuple((at_x(tick), x.tick_text(tick)) for tick in x.ticks),
        tuple((at_y(tick), y.tick_text(tick)) for tick in y.ticks),
        dots,
        f"{names[1]} against {names[0]}. " + "; ".join(dot.label for dot in dots),
    )


def radar(labels: Sequence[str], values: Sequence[tuple[str, Sequence[float]]], scale: Scale) -> Radar:
    """Draw the values of runs under labels; three labels or more."""

    def place(number: int, share: float) -> tuple[float, float]:
        angle = 2 * math.pi * number / len(labels) - math.pi / 2
        centre = RADAR / 2, RADIUS + 40
        return (
            round(centre[0] + RADIUS * share * math.cos(angle), 1),
            round(centre[1] + RADIUS * share * math.sin(angle), 1),
        )

    def ring(name: str, shares: Sequence[float]) -> Ring:
        return Ring(name, " ".join("{},{}".format(*place(nth, share)) for nth, share in enumerate(shares)))

    def share(value: float) -> float:
        return (value - scale.low) / (scale.high - scale.low)

    spokes = []
    for number, label in enumerate(labels):
        text_x, text_y = place(number, 1.12)
        side = text_x - RADAR / 2
        anchor = "middle" if abs(side) < 10 else "start" if side > 0 else "end"
        spokes.append(Spoke(label, *place(number, 1), text_x, text_y, anchor))
    words = [
        f"{name}: " + ", ".join(f"{label} {value:.1f}" for label, value in zip(labels, own, strict=True))
        for name, own in values
    ]
    return Radar(
        tuple(spokes),
        tuple(ring(scale.tick_text(tick), [share(tick)] * len(labels)) for tick in scale.ticks[1:]),
        tuple(ring(name, [share(value) for value in own]) for name, own in values),
        "; ".join(words),
    )


# -- ROC curves as SVG: how many right and wrong answers each judge accepts. The numbers stand in tables
#    too

SIDE, ROC_LEFT, ROC_TOP = 300.0, 48.0, 12.0
"""The side of the area of the curves and its place, in pixels."""

TICKS = (0, 25, 50, 75, 100)

MOST_CURVES = 8
"""More curves cannot be told apart."""

MOST_MARKED = 4
"""A curve with at most so many points is that of a judge with verdicts, not with numbers: they are marked."""


class RocLine(Struct, frozen=True):
    """The curve of a judge: its points for SVG, and those that are marked."""

    judge: str
    points: str
    marked: tuple[tuple[float, float], ...]
    area: MetricValue


class RocChart(Struct, frozen=True):
    """The curves of judges; `x_ticks` and `y_ticks` are places on the axes with their texts."""

    lines: tuple[RocLine, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    label: str


def roc_chart(rows: Sequence[JudgeResult]) -> RocChart | None:
    """Draw the curves of judges, the largest areas first; None if humans call all answers alike."""
    drawn = sorted((row for row in rows if row.curve), key=lambda row: -(row.roc_auc.value or 0.0))
    if not drawn:
        return None
    return RocChart(
        tuple(map(_line, drawn[:MOST_CURVES])),
        tuple((_x(tick / 100), str(tick)) for tick in TICKS),
        tuple((_y(tick / 100), str(tick)) for tick in TICKS),
        "; ".join(
            f"{row.judge}: area {number_text(row.roc_auc.value)} percent" for row in drawn[:MOST_CURVES]
        ),
    )


def _line(row: JudgeResult) -> RocLine:
    places = [(_x(wrong), _y(right)) for wrong, right in row.curve]
    inner = tuple(places[1:-1])
    return RocLine(
        row.judge,
        " ".join(f"{x},{y}" for x, y in places),
        inner if len(inner) <= MOST_MARKED else (),
        row.roc_auc,
    )


def _x(share: float) -> float:
    return round(ROC_LEFT + SIDE * share, 1)


def _y(share: float) -> float:
    return round(ROC_TOP + SIDE * (1 - share), 1)


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
