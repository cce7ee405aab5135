"""What a table is made of: columns, rows of typed cells, notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from sightline.types import MetricValue, PublishedValue, Unit


class Value(Struct, frozen=True):
    """A number of this run with its 95 % interval: None where it is undefined, or has none."""

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"


class PublishedCell(Struct, frozen=True):
    """A paper's figure; `difference` is this run's value minus it."""

    value: float
    difference: float | None
    comparable: bool
    unit: Unit = "percent"


class Spread(Struct, frozen=True):
    """A number of one run among several, kept short for a wide table.

    A reader sees of its interval how far the farther bound is from it: no bound lies beyond that.
    `difference` is how far it is from the number that it stands beside, None where it stands alone.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    unit: Unit = "percent"
    difference: float | None = None


class PValue(Struct, frozen=True):
    """A p value, 0-1; None where its test says nothing."""

    value: float | None


Cell = str | int | float | Value | PublishedCell | Spread | PValue | None
"""A bare number is a count, None an empty cell."""


class Column(Struct, frozen=True):
    """A column of cells of one kind: its `head` for a reader (lines), its `key` in CSV and JSON.

    `differences`: whether a reader of its published figures sees the differences too, and whether its
    spreads have any.
    """

    kind: Literal["text", "count", "value", "printed", "spread", "chance"]
    head: str
    key: str
    differences: bool = True


class ReportTable(Struct, frozen=True):
    """Rows of cells, numbers unrounded, and the notes that belong under them."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


_Row = TypeVar("_Row")
Field = tuple[Column, Callable[[_Row], Cell]]
"""A column, and what stands in it for a row."""


def table(
    title: str, fields: Sequence[Field[_Row]], rows: Iterable[_Row], notes: Sequence[str]
) -> ReportTable:
    """The table that has a column for each field and a row for each of `rows`."""
    columns = tuple(column for column, _ in fields)
    return ReportTable(
        title, columns, tuple(tuple(cell(row) for _, cell in fields) for row in rows), tuple(notes)
    )


def value_cell(metric: MetricValue | None) -> Cell:
    """A metric's value with its interval; empty where there is no such metric."""
    return None if metric is None else Value(metric.value, metric.low, metric.high, metric.unit)


def n_cell(metric: MetricValue | None) -> Cell:
    """What the metric averages over, as a whole number where it is one."""
    if metric is None:
        return None
    return int(metric.n) if metric.n == int(metric.n) else metric.n


def clusters_cell(metric: MetricValue | None) -> Cell:
    """The independent images behind a metric."""
    return None if metric is None else metric.clusters


def published_cell(metric: MetricValue | None, value: PublishedValue | None) -> Cell:
    """A published figure and how far the metric is from it."""
    if metric is None or value is None:
        return None
    difference = None if metric.value is None else metric.value - value.value
    return PublishedCell(value.value, difference, value.comparable, metric.unit)
