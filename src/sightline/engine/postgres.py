"""Stores on PostgreSQL: how the server is called, and how its tables are created."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from sightline.engine.connection import Connection
from sightline.errors import UserError

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine
    from sqlalchemy.engine.interfaces import DBAPIConnection

LOCK_SECONDS = 60
"""How long a statement waits for a lock of another session. Sightline's own hold one for milliseconds, but
for `store gc` and `store merge`.
"""

CONNECTIONS = 4
"""Connections of one process at most. A server accepts 100 by default, of all processes together."""

# A server that vanishes without a word (a laptop that leaves the network) is noticed within a minute.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "client_encoding": "utf8",
    "fallback_application_name": "sightline",
}

# The driver logs lost connections, which are also errors here; without a handler, Python prints them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# An arbitrary number: with it, processes that open a store at once create its tables in turn.
_ADVISORY_LOCK = 7_316_448


def create_postgres(url: URL) -> Engine:
    """Create the database engine for a PostgreSQL server."""
    from sqlalchemy import create_engine, event

    options: dict[str, Any] = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=options,
        # A claim that waited for another process must see what that process has committed.
        isolation_level="READ COMMITTED",
        # After a restart of the server, the connections of before are replaced.
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=LOCK_SECONDS,
    )
    event.listen(engine, "connect", _limit_waiting)
    return engine


def wait_for_turn(connection: Connection, name: str) -> None:
    """Wait until no other process creates tables, up to the end of the transaction.

    SQLite has one writer at a time.
    """
    if connection.is_file:
        return
    connection.rows(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
    ((encoding,),) = connection.rows("SHOW server_encoding")
    if encoding != "UTF8":
        raise UserError(
            "this database cannot hold all characters",
            file=name,
            field="encoding",
            found=encoding,
            expected="UTF8: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
        )


def create_tables(connection: Connection) -> None:
    """Create the tables of a store that are missing."""
    from sightline.engine.core_connection import ServerConnection
    from sightline.engine.schema import metadata

    assert isinstance(connection, ServerConnection)
    metadata.create_all(connection.core)


def _limit_waiting(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
    cursor.close()
    connection.commit()
