"""The parts of a report table: columns, rows of typed cells, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.metric_types import IntervalMethod, MetricValue, PublishedValue, Unit
from sightline.visible import visible, visible_lines


class Value(Struct, frozen=True):
    """A number of this run with its 95 % CI and the method of that; None if it is undefined, or has no
    interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    interval: IntervalMethod | None = None


class PublishedCell(Struct, frozen=True):
    """A figure of a paper; `difference` is this run's value minus it."""

    figure: PublishedValue
    difference: float | None
    unit: Unit = "percent"


class Spread(Struct, frozen=True):
    """A number of one run among several, short enough for a wide table.

    `difference` is the distance from the number in the first half of the row; None if there is none.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    interval: IntervalMethod | None = None
    difference: float | None = None


class PValue(Struct, frozen=True):
    """A p-value, 0-1; None if its test is undefined."""

    value: float | None


Cell = str | int | float | Value | PublishedCell | Spread | PValue | None
"""A bare number is a count, None an empty cell."""


class Column(Struct, frozen=True):
    """A column of cells of one kind."""

    kind: Literal["text", "count", "value", "published", "spread", "p_value"]
    head: str
    key: str
    differences: bool = True


class ReportTable(Struct, frozen=True):
    """A title, columns, rows of cells with unrounded numbers, and the notes below the table."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


def heading(*lines: str) -> str:
    """A heading of several lines, some of which come from data."""
    return "\n".join(map(visible, lines))


def visible_table(table: ReportTable) -> ReportTable:
    """A table for a display: all texts as a reader sees them."""
    return ReportTable(
        visible(table.title),
        tuple(replace(column, head=visible_lines(column.head)) for column in table.columns),
        tuple(tuple(visible(cell) if isinstance(cell, str) else cell for cell in row) for row in table.rows),
        tuple(map(visible, table.notes)),
    )


_Record = TypeVar("_Record")
Field = tuple[Column, Callable[[_Record], Cell]]
"""A column, and the function that makes its cell from a record."""


def build_table(
    title: str, fields: Sequence[Field[_Record]], rows: Iterable[_Record], notes: Sequence[str]
) -> ReportTable:
    columns = tuple(column for column, _ in fields)
    return ReportTable(
        title, columns, tuple(tuple(cell(row) for _, cell in fields) for row in rows), tuple(notes)
    )


def value_cell(metric: MetricValue | None) -> Cell:
    """The cell of a value with its interval.

    Args:
        metric: The value; None leaves the cell empty.
    """
    if metric is None:
        return None
    return Value(metric.value, metric.low, metric.high, metric.unit, metric.interval)


def n_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number that a metric averages over.

    Args:
        metric: The value; None leaves the cell empty.
    """
    if metric is None:
        return None
    return int(metric.n) if metric.n == int(metric.n) else metric.n


def clusters_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number of clusters.

    Args:
        metric: The value; None leaves the cell empty.
    """
    return None if metric is None else metric.clusters


def published_cell(metric: MetricValue | None, value: PublishedValue | None) -> Cell:
    """The cell of a published figure.

    Args:
        metric: The value of this run; None leaves the cell empty.
        value: The published figure; None leaves the cell empty.
    """
    if metric is None or value is None:
        return None
    difference = None if metric.value is None else metric.value - value.value
    return PublishedCell(value, difference, metric.unit)
