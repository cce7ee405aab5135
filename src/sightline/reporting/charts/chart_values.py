"""What charts draw: values of metrics with their place in a chart, and the words beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sightline.metric_types import PERCENT, MetricValue, Range, Unit, is_approximate
from sightline.reporting.notes import published_notes
from sightline.reporting.table_text import DECIMALS

ChartKind = Literal["forest", "bars", "radar", "scatter", "curves", "matrix"]

AXIS_UNITS: Mapping[Unit, str] = {"percent": " (%)", "points": " (percentage points)", "number": ""}


class ChartValue(Struct, frozen=True):
    """A value at its place in a chart."""

    panel: str
    row: str
    series: str
    metric: MetricValue


class Chart(Struct, frozen=True):
    """The values of a chart, and what holds for all of them.

    Attributes:
        ranges: The range of each panel; percent if it is absent.
    """

    title: str
    values: tuple[ChartValue, ...]
    zero: bool = False
    margin: float | None = None
    humans: Sequence[str] = ()
    ranges: Mapping[str, Range] = {}
    interval: str = "95 % CI"

    @property
    def panels(self) -> list[str]:
        """The panels in order."""
        return list(dict.fromkeys(value.panel for value in self.values))

    @property
    def series(self) -> list[str]:
        """The series in order."""
        return list(dict.fromkeys(value.series for value in self.values))

    def rows(self, panel: str) -> list[str]:
        """The rows of a panel in order."""
        return list(dict.fromkeys(value.row for value in self.of_panel(panel)))

    def of_panel(self, panel: str) -> list[ChartValue]:
        """The values of a panel in order."""
        return [value for value in self.values if value.panel == panel]

    def range_of(self, panel: str) -> Range:
        """The ends of the axis of a panel; a percentage below 0, as of a similarity, extends it."""
        low, high = self.ranges.get(panel, PERCENT)
        values = [value.metric for value in self.of_panel(panel)]
        shown = [x for metric in values for x in (metric.value, metric.low) if x is not None]
        return (None if low is None else min([low, *shown])), high

    @property
    def published_rows(self) -> list[str]:
        """The names of the published figures in the chart, in order."""
        return list(dict.fromkeys(name for value in self.values for name, _ in published_marks(value.metric)))


def published_marks(metric: MetricValue) -> list[tuple[str, float]]:
    """The published figures of a value: one for each row of the paper."""
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
    """A value with its interval, as in the tables."""
    if metric.value is None:
        return "–"
    form = f"{'+' if sign else ''}.{DECIMALS[metric.unit]}f"
    words = f"{metric.value:{form}}"
    if metric.low is not None and metric.high is not None:
        mark = "~" if is_approximate(metric.interval) else ""
        words += f" {mark}[{metric.low:{form}}, {metric.high:{form}}]"
    return words.replace("-", "\N{MINUS SIGN}")


def n_words(metrics: Iterable[MetricValue]) -> str:
    """The n of several values."""
    numbers = sorted({metric.n for metric in metrics if metric.value is not None})
    if not numbers:
        return ""
    low, high = (f"{number:,.10g}" for number in (numbers[0], numbers[-1]))
    return low if low == high else f"{low}\N{EN DASH}{high}"


def axis_words(panel: str, metrics: Sequence[MetricValue]) -> str:
    """The name of an axis with its unit."""
    units = {metric.unit for metric in metrics}
    return panel + (AXIS_UNITS[units.pop()] if len(units) == 1 else "")
