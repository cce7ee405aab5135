"""The database of the store: connections, transactions, and statements that every table needs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from sightline.engine.connection import Connection
from sightline.engine.database_errors import ATTEMPT_SECONDS, database_errors
from sightline.engine.sqlite_connections import SqliteConnections

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.engine import Connection as CoreConnection

Name = TypeVar("Name")

LOOKUP = 500
"""Keys in one statement; every database accepts that many parameters."""

RECONNECT_SECONDS = 60.0
"""How long an open store waits for a database server that restarts."""


class Database:
    """An open database. `name` is what error messages call it.

    `read` and `write` open connections for SQL text, which need no SQLAlchemy for a SQLite file; `core_read`
    and `core_write` open those of SQLAlchemy Core. Each is a transaction of its own.
    """

    def __init__(
        self, name: str, make_engine: Callable[[], Engine], file: SqliteConnections | None = None
    ) -> None:
        """Prepare it; nothing is connected yet.

        Args:
            file: The connections to a SQLite file; None for a server.
        """
        self.name = name
        self._make_engine = make_engine
        self._file = file
        self._engine: Engine | None = None
        self._engine_change = Lock()
        self._away_since: float | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a SQLite file, which processes of one machine use."""
        return self._file is not None

    def read(self) -> AbstractContextManager[Connection]:
        return self._transaction(writes=False)

    def write(self) -> AbstractContextManager[Connection]:
        """Begin a transaction that writes; it waits for other writers at once."""
        return self._transaction(writes=True)

    @contextmanager
    def core_read(self) -> Iterator[CoreConnection]:
        """Open a connection of SQLAlchemy Core for reading, for statements that are built."""
        # SQLAlchemy is imported where it is used: that takes a tenth of the time of a small run.
        from sightline.engine.core_connection import core_errors

        with (
            database_errors(self.name),
            core_errors(self.name),
            self._connect(self.core_engine()) as connection,
        ):
            yield connection

    @contextmanager
    def core_write(self) -> Iterator[CoreConnection]:
        """Begin a transaction of SQLAlchemy Core that writes; it waits for other writers at once."""
        from sightline.engine.core_connection import core_errors

        writer = self.core_engine().execution_options(writes=True)
        with (
            database_errors(self.name),
            core_errors(self.name),
            self._connect(writer) as connection,
            connection.begin(),
        ):
            yield connection

    def core_engine(self) -> Engine:
        """Make the engine of SQLAlchemy at the first call."""
        with self._engine_change:
            if self._engine is None:
                self._engine = self._make_engine()
            return self._engine

    def check_connection(self) -> None:
        """Connect to a database server, without waiting for one that restarts; a file needs no server."""
        if not self.is_file:
            from sightline.engine.core_connection import check_server

            check_server(self.core_engine(), self.name)

    def close(self) -> None:
        """Close all connections."""
        if self._file is not None:
            self._file.close()
        if self._engine is not None:
            self._engine.dispose()

    @contextmanager
    def _transaction(self, *, writes: bool) -> Iterator[Connection]:
        if self._file is not None:
            with database_errors(self.name), self._file.transaction(writes=writes) as connection:
                yield connection
            return
        from sightline.engine.core_connection import ServerConnection

        with (self.core_write if writes else self.core_read)() as core:
            yield ServerConnection(core)

    def _connect(self, engine: Engine) -> CoreConnection:
        """Connect; wait for a server that restarts, or that has no free connection."""
        from sqlalchemy.exc import OperationalError

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


def insert(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    on_conflict: str = "",
) -> None:
    """Insert rows.

    Args:
        on_conflict: The clause about rows whose key exists; '' if there is none.
    """
    if rows:
        names, marks = ", ".join(columns), ", ".join("?" * len(columns))
        connection.change_many(f"INSERT INTO {table} ({names}) VALUES ({marks}) {on_conflict}", rows)


def insert_new(
    connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows whose key does not exist yet; keep existing rows.

    Rows are inserted in the order of the key: in different orders two writers could deadlock in PostgreSQL.
    """
    insert(connection, table, columns, sorted(rows, key=itemgetter(0)), "ON CONFLICT DO NOTHING")


def announce_insert(connection: Connection, table: str) -> None:
    """Announce that this transaction looks up rows of a table, and inserts those that are missing.

    `store gc` drops unused rows of a PostgreSQL table only before such a transaction, or after it: a row that
    was found stays until the transaction has referred to it. SQLite has one writer at a time.
    """
    lock_table(connection, table, "ROW EXCLUSIVE")


def lock_table(connection: Connection, table: str, mode: str) -> None:
    """Lock a table of a PostgreSQL server until the end of the transaction. SQLite has one writer at a time."""
    if not connection.is_file:
        connection.change(f"LOCK TABLE {table} IN {mode} MODE")


def row_lock(connection: Connection, clause: str) -> str:
    """The end of a query that locks the rows which it finds. SQLite locks no rows."""
    return "" if connection.is_file else clause


def rows_in(connection: Connection, query: str, values: Sequence[Any]) -> Iterator[Any]:
    """Run a query for many values, part by part.

    A part is filled up with its last value to a power of two: connections keep the statements that they
    prepared, one for each number of values, and 128 of 500 values take 13 MB a connection.
    """
    for part in parts(values):
        yield from connection.rows(*_filled(query, (), part))


def change_rows_in(connection: Connection, query: str, first: Sequence[Any], values: Sequence[Any]) -> None:
    """Run a statement that changes rows, for many values, part by part."""
    for part in parts(values):
        connection.change(*_filled(query, first, part))


def _filled(query: str, first: Sequence[Any], part: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    filled = (*part, *[part[-1]] * (min(LOOKUP, 1 << (len(part) - 1).bit_length()) - len(part)))
    marks = [*("?" * len(first)), ", ".join("?" * len(filled))]
    return query.format(*marks), (*first, *filled)


def parts(names: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """Divide keys into parts that one statement accepts."""
    return (names[start : start + LOOKUP] for start in range(0, len(names), LOOKUP))
