"""The database of the store: connections, transactions, and statements that every table needs."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Engine, Table
from sqlalchemy.engine import Connection, CursorResult
from sqlalchemy.exc import DBAPIError, OperationalError

from sightline.engine.database_errors import ATTEMPT_SECONDS, database_errors

Name = TypeVar("Name")

LOOKUP = 500
"""Keys in one statement; every database accepts that many parameters."""

RECONNECT_SECONDS = 60.0
"""How long an open store waits for a database server that restarts."""


class Database:
    """An open database. `name` is what error messages call it."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.name = name
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._away_since: float | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a SQLite file, which processes of one machine use."""
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading.

        Yields:
            The connection.
        """
        with database_errors(self.name), self._connect(self._engine) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction that writes; it waits for other writers at once.

        Yields:
            The connection.
        """
        with (
            database_errors(self.name),
            self._connect(self._writer) as connection,
            connection.begin(),
        ):
            yield connection

    def _connect(self, engine: Engine) -> Connection:
        """Connect; wait for a server that restarts, or that has no free connection."""
        while True:
            try:
                connection = engine.connect()
                self._away_since = None
                return connection
            except OperationalError:
                # All threads of an outage wait together: after its end, or RECONNECT_SECONDS, none waits.
                self._away_since = self._away_since or time.monotonic()
                away = time.monotonic() - self._away_since
                if self.is_file or away > RECONNECT_SECONDS:
                    raise
            time.sleep(ATTEMPT_SECONDS)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def insert(
    connection: Connection,
    table: Table,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    on_conflict: str = "",
) -> None:
    """Insert rows. It does without SQLAlchemy's statements, which take longer than the database.

    Args:
        connection: A connection that writes.
        table: The table.
        columns: The names of the columns.
        rows: The values of each row, in the order of `columns`.
        on_conflict: The clause about rows whose key exists; '' if there is none.
    """
    if rows:
        marks = ", ".join([_mark(connection)] * len(columns))
        statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}) {on_conflict}"
        _execute(connection, statement, [tuple(row) for row in rows])


def insert_new(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows whose key does not exist yet; keep existing rows.

    Rows are inserted in the order of the key: in different orders two writers could deadlock in PostgreSQL.

    Args:
        connection: A connection that writes.
        table: A table.
        columns: The names of the columns, first the key.
        rows: The values of each row, in the order of `columns`.
    """
    insert(connection, table, columns, sorted(rows, key=itemgetter(0)), "ON CONFLICT DO NOTHING")


def announce_insert(connection: Connection, table: Table) -> None:
    """Announce that this transaction looks up rows of a table, and inserts those that are missing.

    `store gc` drops unused rows of a PostgreSQL table only before such a transaction, or after it: a row that
    was found stays until the transaction has referred to it. SQLite has one writer at a time.

    Args:
        connection: A connection that writes; nothing of the table was looked up yet.
        table: The table.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"LOCK TABLE {table.name} IN ROW EXCLUSIVE MODE")


def rows_in(connection: Connection, query: str, values: Sequence[Any]) -> Iterator[Any]:
    """Run a query for many values, part by part.

    A part is filled up with its last value to a power of two: connections keep the statements that they
    prepared, one for each number of values, and 128 of 500 values take 13 MB a connection.

    Args:
        connection: A connection.
        query: The SQL, with `{}` in the place of the values, which `IN` takes as a set.
        values: The values.

    Yields:
        The rows.
    """
    for part in parts(values):
        yield from _execute_for(connection, query, (), part).fetchall()


def change_rows_in(connection: Connection, query: str, first: Sequence[Any], values: Sequence[Any]) -> None:
    """Run a statement that changes rows, for many values, part by part.

    SQLAlchemy would keep a compiled statement, with its values, for each part.

    Args:
        connection: A connection that writes.
        query: The SQL, with `{}` in the place of each of both.
        first: The values before the set.
        values: The values that `IN` takes as a set.
    """
    for part in parts(values):
        _execute_for(connection, query, first, part)


def _execute_for(
    connection: Connection, query: str, first: Sequence[Any], part: Sequence[Any]
) -> CursorResult[Any] | sqlite3.Cursor:
    filled = (*part, *[part[-1]] * (min(LOOKUP, 1 << (len(part) - 1).bit_length()) - len(part)))
    mark = _mark(connection)
    marks = [*([mark] * len(first)), ", ".join([mark] * len(filled))]
    return _execute(connection, query.format(*marks), (*first, *filled))


def _execute(
    connection: Connection, statement: str, values: Sequence[Any]
) -> CursorResult[Any] | sqlite3.Cursor:
    """Execute a statement of the driver, with its values or a list of such.

    On SQLite by the driver alone: SQLAlchemy takes three times as long as SQLite, for each answer.
    """
    if connection.dialect.name != "sqlite":
        return connection.exec_driver_sql(statement, values)
    if not connection.in_transaction():
        connection.begin()
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    execute = driver.executemany if isinstance(values, list) else driver.execute
    try:
        return execute(statement, values)
    except sqlite3.Error as error:
        raise DBAPIError(statement, None, error) from None


def parts(names: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """Divide keys into parts that one statement accepts.

    Args:
        names: The keys.

    Returns:
        Parts of at most LOOKUP keys.
    """
    return (names[start : start + LOOKUP] for start in range(0, len(names), LOOKUP))


def _mark(connection: Connection) -> str:
    """What stands for a value in the SQL of the driver."""
    return "?" if connection.dialect.paramstyle == "qmark" else "%s"
