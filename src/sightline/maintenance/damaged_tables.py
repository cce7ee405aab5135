"""Reads tables of a damaged SQLite file around the places that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, Table

from sightline.engine.database import Database
from sightline.engine.database_errors import StoreFailedError
from sightline.maintenance.table_reader import PAGE, read_pages

LARGEST = 1 << 53
"""No store has a row with a larger number."""


class Unreadable(NamedTuple):
    """Rows that cannot be read: where they are in the table, and why."""

    where: str
    reason: str


def read_around_damage(database: Database, table: Table) -> Iterator[Sequence[RowMapping] | Unreadable]:
    """Read what is readable of a table. A server is read up to the first error: it has no row numbers.

    Args:
        database: The database.
        table: The table.

    Yields:
        Rows, column -> value as SQLite has it, a few hundred at once; and what cannot be read between them.
    """
    with database.core_read() as connection:
        has_numbers = connection.dialect.name == "sqlite"
    if has_numbers and table.dialect_options["sqlite"]["with_rowid"]:
        yield from _read_by_number(_NumberedRows(database, table))
        return
    try:
        yield from read_pages(database, table)
    except StoreFailedError as error:
        yield Unreadable("some rows", error.reason)


class _NumberedRows:
    """The rows of a SQLite table by the numbers that SQLite gives them."""

    def __init__(self, database: Database, table: Table) -> None:
        self._database = database
        # Values as they are: damage can change their types.
        self._query = f"SELECT *, rowid AS _number FROM {table.name} WHERE rowid >= ? ORDER BY rowid LIMIT ?"

    def after(self, number: int, count: int) -> Sequence[Any]:
        # A search for the number itself could end on the damaged page before the next row.
        with self._database.core_read() as connection:
            return connection.exec_driver_sql(self._query, (number + 1, count)).mappings().all()

    def next_readable(self, number: int) -> int | None:
        """The number of the first readable row after an unreadable one that follows `number`, if any."""
        failed, step = 0, 1
        while number + step < LARGEST:
            try:
                rows = self.after(number + step, 1)
            except StoreFailedError:
                failed, step = step, 2 * step
            else:
                break
        else:
            return None
        # The first readable row is between the last failure and this step.
        while step - failed > 1:
            middle = (failed + step) // 2
            try:
                rows = self.after(number + middle, 1)
            except StoreFailedError:
                failed = middle
            else:
                step = middle
        return int(rows[0]["_number"]) if rows else None


def _read_by_number(rows: _NumberedRows) -> Iterator[Sequence[RowMapping] | Unreadable]:
    last, count = -1, PAGE
    while True:
        try:
            page = rows.after(last, count)
        except StoreFailedError as error:
            if count > 1:
                # What is readable before the damage comes first.
                count = max(1, count // 8)
                continue
            following = rows.next_readable(last)
            where = f"rows after number {last}" if last >= 0 else "rows at its beginning"
            yield Unreadable(
                where if following is None else f"{where}, before number {following}", error.reason
            )
            if following is None:
                return
            last, count = following - 1, PAGE
            continue
        if not page:
            return
        yield page
        last = page[-1]["_number"]
