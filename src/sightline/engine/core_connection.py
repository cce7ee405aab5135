"""Connections of SQLAlchemy Core: for PostgreSQL, and for packages that build statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, inspect
from sqlalchemy.engine import Connection as CoreConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from sightline.engine import sqlite_connections
from sightline.engine.connection import Connection
from sightline.engine.database_errors import failed_store, reason_of
from sightline.engine.sqlite_connections import FileConnection
from sightline.errors import EnvironmentFailedError


class ServerConnection:
    """A connection to a PostgreSQL server, as `connection.Connection`."""

    is_file = False

    def __init__(self, core: CoreConnection) -> None:
        self.core = core

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows."""
        return [tuple(row) for row in self.core.exec_driver_sql(_marked(sql), tuple(values))]

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement that returns no rows; returns the number of rows that it changed."""
        return self.core.exec_driver_sql(_marked(sql), tuple(values)).rowcount

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows."""
        self.core.exec_driver_sql(_marked(sql), [tuple(row) for row in rows])

    def tables(self) -> set[str]:
        """List the tables of the database."""
        return set(inspect(self.core).get_table_names())

    def has_table(self, name: str) -> bool:
        """Find out whether a table exists, in any schema of the search path."""
        return inspect(self.core).has_table(name)

    def roll_back(self) -> None:
        """Undo what the transaction changed, and end it."""
        self.core.rollback()


def _marked(sql: str) -> str:
    """SQL with the marks of the driver for values."""
    return sql.replace("?", "%s")


def plain(core: CoreConnection) -> Connection:
    """Make the connection on which functions of the engine run, in the transaction of SQLAlchemy's."""
    if core.dialect.name != "sqlite":
        return ServerConnection(core)
    if not core.in_transaction():
        core.begin()
    # SQLAlchemy takes three times as long as SQLite, for each row.
    driver = core.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return FileConnection(driver)


@contextmanager
def core_errors(name: str) -> Iterator[None]:
    """Turn errors of SQLAlchemy into the messages of `database_errors`."""
    try:
        yield
    except PoolTimeoutError:
        raise EnvironmentFailedError(
            f"the store {name} is overloaded: all connections of this process have been busy for a minute. "
            "Everything committed before is kept; run the same command again"
        ) from None
    except DBAPIError as error:
        raise failed_store(name, error.orig, is_disconnected=error.connection_invalidated) from None


def check_server(engine: Engine, name: str) -> None:
    """Connect to a database server."""
    try:
        engine.connect().close()
    except DBAPIError as error:
        raise EnvironmentFailedError(
            f"the store {name} cannot be opened: {reason_of(error.orig)}; expected a server that runs at "
            "this host and port, this database on it, and a user who may write to it (or --store FILE)"
        ) from None


def create_sqlite(path: Path) -> Engine:
    """Create the database engine for a SQLite file, with the settings of `SqliteConnections`."""
    engine = create_engine(
        URL.create("sqlite", database=str(path.absolute())),
        connect_args={"timeout": sqlite_connections.LOCK_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", lambda driver, _record: sqlite_connections.set_up(driver))
    event.listen(engine, "begin", _begin)
    event.listen(engine, "invalidate", _roll_back)
    return engine


def _begin(core: CoreConnection) -> None:
    """Let a writer take the lock at once and wait for it; a deferred transaction would fail half-way."""
    writes = core.get_execution_options().get("writes")
    core.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _roll_back(driver: sqlite3.Connection, _record: object, _error: object) -> None:
    """End the transaction of a connection that Ctrl-C interrupted: SQLAlchemy only closes it.

    `SqliteConnections.transaction` says why that is not enough.
    """
    with suppress(sqlite3.Error):  # the error that made it invalid is reported
        driver.rollback()
