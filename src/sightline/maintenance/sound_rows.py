"""Reads the rows of a store that are sound, and remembers which ones are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, RowMapping, Table

from sightline.engine.store import Store
from sightline.maintenance.faults import Fault, key_of
from sightline.maintenance.row_checks import RowChecks
from sightline.maintenance.table_reader import read_pages


class LostRows(Struct, frozen=True, kw_only=True):
    """Rows of a table that were left out.

    Attributes:
        table: The table.
        rows: How many they are.
        first: The primary key of the first one.
        problem: What is wrong with it.
    """

    table: str
    rows: int
    first: str
    problem: str


class SoundRows:
    """Reads one open store, as far as `store verify` finds nothing wrong."""

    def __init__(self, store: Store) -> None:
        """Prepare it; nothing is read yet.

        Args:
            store: The store.
        """
        self._database = store.database
        self._checks = RowChecks(store.name)
        self._lost: defaultdict[str, dict[str, str]] = defaultdict(dict)

    def pages(self, table: Table, *conditions: ColumnElement[bool]) -> Iterator[Sequence[RowMapping]]:
        """Read a table in the order of its primary key.

        Args:
            table: The table.
            *conditions: What the rows must fulfil.

        Yields:
            The sound rows of a few hundred.

        Raises:
            EnvironmentFailedError: The database fails.
        """
        for page in read_pages(self._database, table, *conditions):
            with self._database.core_read() as connection:
                sound = self.sound(connection, table, page)
            yield sound

    def damaged(self, table: Table, *conditions: ColumnElement[bool]) -> list[RowMapping]:
        """Find the damaged rows of a table.

        Args:
            table: The table.
            *conditions: What the rows must fulfil.

        Returns:
            The damaged rows; they are left out.

        Raises:
            EnvironmentFailedError: The database fails.
        """
        found: list[RowMapping] = []
        for page in read_pages(self._database, table, *conditions):
            with self._database.core_read() as connection:
                wrong = list(self._checks.problems(connection, table.name, page))
            for row, problem in wrong:
                self.leave_out(table, row, problem)
            found += (row for row, _ in wrong)
        return found

    def sound(self, connection: Connection, table: Table, rows: Sequence[RowMapping]) -> list[RowMapping]:
        """Select rows.

        Args:
            connection: A connection to the store.
            table: The table that they are of.
            rows: The rows.

        Returns:
            The sound ones; the others are left out.
        """
        wrong = list(self._checks.problems(connection, table.name, rows))
        for row, problem in wrong:
            self.leave_out(table, row, problem)
        keys = {tuple(key_of(table, row).values()) for row, _ in wrong}
        return [row for row in rows if tuple(key_of(table, row).values()) not in keys]

    def leave_out(self, table: Table, row: RowMapping, problem: str) -> None:
        """Remember that a row is left out.

        Args:
            table: Its table.
            row: The row.
            problem: What is wrong with it.
        """
        fault = Fault(key=key_of(table, row), problem=problem)
        self._lost[table.name].setdefault(fault.row, problem)

    def left_out(self, table: Table) -> bool:
        """Whether a row was left out.

        Args:
            table: Its table.

        Returns:
            True if there is one.
        """
        return bool(self._lost[table.name])

    def lost(self) -> list[LostRows]:
        """Say what was left out.

        Returns:
            The rows by table.
        """
        return [
            LostRows(table=str(table), rows=len(rows), first=first, problem=problem)
            for table, rows in self._lost.items()
            if rows
            for first, problem in [next(iter(rows.items()))]
        ]
