"""Plots in table cells: values with confidence intervals on one scale, in percent of the width of the cell.

Each plot repeats numbers that are also in its row. The macros of `plots.html` draw them as SVG.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from sightline.metric_types import PERCENT, MetricValue, Range, Unit
from sightline.reporting.html.figures import number, signed

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
        """The number below a grid line."""
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
        """The plot in words."""
        form = signed if self.scale.zero else number
        words = [
            f"{f'{point.name} ' if point.name else ''}{form(point.value, self.unit)}{UNIT_WORDS[self.unit]}"
            + _interval_words(point, self.unit, signed_bounds=self.scale.zero)
            for point in self.points
        ]
        return ", ".join(words) or "no value"

    def of_kind(self, kind: PointKind) -> list[PlotPoint]:
        return [point for point in self.points if point.kind == kind]


def scale_of(bounds: Range, values: Iterable[float | None]) -> Scale:
    """The scale of a metric."""
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
    """The plot of a value beside published figures that are comparable.

    Args:
        humans: The rows of humans in the paper.
    """
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
    form = signed if signed_bounds else number
    return f", 95 % CI {form(point.low, unit)} to {form(point.high, unit)}"
