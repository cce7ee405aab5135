"""The parts of a report table: columns, rows of typed cells, notes."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import visible, visible_lines
from sightline.text import for_csv, for_json
from sightline.types import IntervalMethod, MetricValue, PublishedValue, Unit, is_approximate


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
    """The cell of a value with its interval; empty for None."""
    if metric is None:
        return None
    return Value(metric.value, metric.low, metric.high, metric.unit, metric.interval)


def n_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number that a metric averages over; empty for None."""
    if metric is None:
        return None
    return int(metric.n) if metric.n == int(metric.n) else metric.n


def clusters_cell(metric: MetricValue | None) -> Cell:
    """The cell of the number of clusters; empty for None."""
    return None if metric is None else metric.clusters


def published_cell(metric: MetricValue | None, value: PublishedValue | None) -> Cell:
    """The cell of a published figure; empty without the value of this run or the figure."""
    if metric is None or value is None:
        return None
    difference = None if metric.value is None else metric.value - value.value
    return PublishedCell(value, difference, metric.unit)


# -- Report tables as text cells, CSV and JSON

DECIMALS: dict[Unit, int] = {"percent": 1, "points": 1, "number": 3}
"""The decimals of each unit in text."""

LEAST_P_VALUE = 0.001
"""Smaller p-values are printed as smaller than this."""


def parts(cell: Cell, column: Column) -> tuple[str, ...]:
    """A cell as a reader sees it: rounded, in the parts that are aligned in a column.

    A value and its interval, with '~' if approximate; a published figure with its mark, and the difference; a
    spread, its interval and its difference; otherwise one part.

    Returns:
        The parts; none for an empty cell.
    """
    if isinstance(cell, PValue):
        return _p_value_parts(cell)
    if isinstance(cell, Value):
        return _value_parts(cell)
    if isinstance(cell, PublishedCell):
        return _published_parts(cell, column.differences)
    if isinstance(cell, Spread):
        return _spread_parts(cell)
    if cell is None:
        return ()
    return (cell if isinstance(cell, str) else f"{cell:,}",)


def cell_text(cell: Cell, column: Column) -> str:
    """A cell as a reader sees it, in one text.

    >>> cell_text(Value(2.0, 1.0, 4.1), Column("value", "value", ""))
    '2.0 [1.0, 4.1]'
    """
    shown = parts(cell, column)
    if isinstance(cell, Value | Spread) and cell.low is not None and cell.high is not None and len(shown) > 1:
        decimals, mark = DECIMALS[cell.unit], "~" if is_approximate(cell.interval) else ""
        interval = f"{mark}[{cell.low:.{decimals}f}, {cell.high:.{decimals}f}]"
        shown = (shown[0], interval, *shown[2:])
    return " ".join(shown)


def flat(table: ReportTable) -> list[dict[str, Any]]:
    """The rows as plain values under flat names, with unrounded numbers; an absent value is None."""
    return [
        {
            name: value
            for column, cell in zip(table.columns, row, strict=True)
            for name, value in _flat(column, cell).items()
        }
        for row in table.rows
    ]


def csv_text(table: ReportTable) -> str:
    """The table as CSV with a header line, without notes; numbers are not rounded."""
    rows = flat(table)
    names = [name for column in table.columns for name in _flat(column, None)]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    for cells in (names, *([row[name] for name in names] for row in rows)):
        writer.writerow([for_csv(cell) if isinstance(cell, str) else cell for cell in cells])
    return file.getvalue()


def json_text(tables: Sequence[ReportTable]) -> str:
    plain = [{"title": table.title, "rows": flat(table), "notes": table.notes} for table in tables]
    return for_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()) + "\n"


def _value_parts(cell: Value) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    if cell.value is None:
        return ("-",)
    return f"{cell.value:.{decimals}f}", *_interval_parts(cell)


def _published_parts(cell: PublishedCell, differences: bool) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    figure = f"{cell.figure.value:.{decimals}f}{cell.figure.mark}"
    if cell.difference is None or not differences:
        return (figure,)
    return figure, f"({cell.difference:+.{decimals}f})"


def _spread_parts(cell: Spread) -> tuple[str, ...]:
    decimals = DECIMALS[cell.unit]
    if cell.value is None:
        return ("-",)
    return (
        f"{cell.value:.{decimals}f}",
        *_interval_parts(cell),
        *(() if cell.difference is None else (f"({cell.difference:+.{decimals}f})",)),
    )


def _interval_parts(cell: Value | Spread) -> tuple[str, ...]:
    if cell.low is None or cell.high is None:
        return ()
    mark = "~" if is_approximate(cell.interval) else ""
    to, decimals = "-" if cell.low >= 0 else " to ", DECIMALS[cell.unit]
    return (f"{mark}{cell.low:.{decimals}f}{to}{cell.high:.{decimals}f}",)


def _p_value_parts(cell: PValue) -> tuple[str, ...]:
    if cell.value is None:
        return ("-",)
    return (f"{cell.value:.3f}" if cell.value >= LEAST_P_VALUE else f"<{LEAST_P_VALUE}",)


def _flat(column: Column, cell: Cell) -> dict[str, Any]:
    """One cell under flat names, which depend on the column alone."""
    if column.kind == "value":
        value = cell if isinstance(cell, Value) else Value(None)
        names = [f"{column.key} {part}".strip() for part in ("value", "low", "high", "interval")]
        return dict(zip(names, (value.value, value.low, value.high, value.interval), strict=True))
    if column.kind == "published":
        names = [column.key, f"{column.key} difference", f"{column.key} comparable"]
        if not isinstance(cell, PublishedCell):
            return dict.fromkeys(names)
        found = cell.figure.value, cell.difference, cell.figure.comparable
        return dict(zip(names, found, strict=True))
    if column.kind == "spread":
        spread = cell if isinstance(cell, Spread) else Spread(None)
        plain = {
            column.key: spread.value,
            f"{column.key} low": spread.low,
            f"{column.key} high": spread.high,
            f"{column.key} interval": spread.interval,
        }
        return plain | ({f"{column.key} difference": spread.difference} if column.differences else {})
    return {column.key: cell.value if isinstance(cell, PValue) else cell}
