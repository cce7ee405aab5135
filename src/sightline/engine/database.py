"""The database of the store: connections, transactions, and statements that every table needs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Engine, Table, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from sightline.engine.database_errors import ATTEMPT_SECONDS, database_errors, repeat_if_lost

Name = TypeVar("Name", str, bytes)

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
        deadline = time.monotonic() + RECONNECT_SECONDS
        while True:
            try:
                return engine.connect()
            except OperationalError:
                if engine.dialect.name == "sqlite" or time.monotonic() > deadline:
                    raise
            time.sleep(ATTEMPT_SECONDS)

    @repeat_if_lost
    def bodies(self, table: Table, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Look up rows of a cache table.

        Args:
            table: A table with the columns `key` and `body`.
            keys: Keys.

        Returns:
            Key -> body, for the keys that exist.
        """
        found: dict[bytes, bytes] = {}
        with self.read() as connection:
            for part in parts(keys):
                query = select(table.c.key, table.c.body).where(table.c.key.in_(part))
                found.update((bytes(key), bytes(body)) for key, body in connection.execute(query))
        return found

    @repeat_if_lost
    def add_bodies(self, table: Table, bodies: Mapping[bytes, bytes]) -> None:
        """Add rows to a cache table; existing rows stay.

        Args:
            table: A table with the columns `key` and `body`.
            bodies: Key -> body.
        """
        rows = [{"key": key, "body": body} for key, body in bodies.items()]
        if rows:
            with self.write() as connection:
                insert_new(connection, table, rows)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def insert_new(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    """Insert rows whose primary key does not exist yet; keep existing rows.

    Rows are inserted in the order of the key: in different orders two writers could deadlock in PostgreSQL.

    Args:
        connection: A connection that writes.
        table: A table with one primary key column.
        rows: Column -> value, for each row.
    """
    key = table.primary_key.columns[0].name
    rows = sorted(rows, key=itemgetter(key))
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects.postgresql import insert as insert_postgres

        connection.execute(insert_postgres(table).on_conflict_do_nothing(), rows)
    else:
        connection.execute(insert(table).prefix_with("OR IGNORE", dialect="sqlite"), rows)


def parts(names: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """Divide keys into parts that one statement accepts.

    Args:
        names: The keys.

    Returns:
        Parts of at most LOOKUP keys.
    """
    return (names[start : start + LOOKUP] for start in range(0, len(names), LOOKUP))
