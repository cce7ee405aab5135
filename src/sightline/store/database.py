"""The database of the store: connections, transactions, common statements, and work in threads."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, ParamSpec, TypeVar, cast

from sqlalchemy import Engine, inspect
from sqlalchemy.engine import Connection as CoreConnection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from sightline.errors import EnvironmentFailedError
from sightline.store.failures import ATTEMPT_SECONDS, failed_store, not_writable, reason_of
from sightline.store.sqlite_file import SqliteFile, count_transaction

Name = TypeVar("Name")

LOOKUP = 500
"""Keys in one statement; every database accepts that many parameters."""

RECONNECT_SECONDS = 60.0
"""How long an open store waits for a database server that restarts."""


class Database:
    """An open database. `name` is what error messages call it.

    `read` and `write` open a transaction each: `rows` and `change` of their connection take SQL text, and
    `core` is the connection of SQLAlchemy Core.
    """

    def __init__(self, name: str, make_engine: Callable[[], Engine], file: SqliteFile | None = None) -> None:
        """Nothing is connected yet; `file` is None for a server."""
        self.name = name
        self._make_engine = make_engine
        self._file = file
        self._engine: Engine | None = None
        self._engine_change = Lock()
        self._away_since: float | None = None

    @property
    def is_file(self) -> bool:
        return self._file is not None

    @property
    def is_read_only(self) -> bool:
        """Whether it is a file that this process cannot write to, or in a folder that it cannot write to."""
        return self._file is not None and self._file.is_read_only

    @property
    def index_folder(self) -> Path:
        """Where indexes of runs are kept: beside the file, or for a server in the user's cache."""
        if self._file is not None:
            return self._file.path.with_name(f"{self._file.path.name}-index")
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "sightline" / sha256(self.name.encode()).hexdigest()[:32]

    def copy_to(self, path: Path) -> None:
        """Copy the file of a store, with what is in its log, to a new file."""
        assert self._file is not None
        with database_errors(self.name), closing(sqlite3.connect(path)) as target:
            self._file.copy_to(target)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with (
            self._file.unchanged() if self._file is not None else nullcontext(),
            database_errors(self.name),
            self._connect(self.core_engine()) as core,
        ):
            yield Connection(core)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Begin a transaction that writes; it waits for other writers at once."""
        if self.is_read_only:
            raise not_writable(self.name)
        writer = self.core_engine().execution_options(writes=True)
        with database_errors(self.name), self._connect(writer) as core:
            self._check_file()
            with core.begin():
                if self._file is not None:
                    count_transaction(core)
                yield Connection(core)
            self._check_file()  # afterwards: what this transaction wrote is in the file of this name

    def core_engine(self) -> Engine:
        with self._engine_change:
            if self._engine is None:
                self._engine = self._make_engine()
            return self._engine

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def check_connection(self) -> None:
        """Connect to a server, without waiting for one that restarts; see that a file is still there."""
        if self._file is None:
            check_server(self.core_engine(), self.name)
        else:
            self._file.check(is_open=False)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    def _connect(self, engine: Engine) -> CoreConnection:
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


class Connection:
    """A connection in a transaction. In its SQL text, `?` stands for a value, and nowhere for itself."""

    def __init__(self, core: CoreConnection) -> None:
        self.core = core
        self.is_file = core.dialect.name == "sqlite"

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows."""
        with closing(self.core.exec_driver_sql(self._marked(sql), tuple(values))) as result:
            # From the driver: SQLAlchemy takes three times as long as SQLite, for each row.
            return cast(list[tuple[Any, ...]], result.cursor.fetchall())

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement that returns no rows; returns the number of rows that it changed."""
        return self.core.exec_driver_sql(self._marked(sql), tuple(values)).rowcount

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows."""
        self.core.exec_driver_sql(self._marked(sql), [tuple(row) for row in rows])

    def tables(self) -> set[str]:
        return set(inspect(self.core).get_table_names())

    def has_table(self, name: str) -> bool:
        """Find out whether a table exists, in any schema of the search path."""
        return inspect(self.core).has_table(name)

    def roll_back(self) -> None:
        """Undo what the transaction changed, and end it."""
        self.core.rollback()

    def _marked(self, sql: str) -> str:
        """SQL with the marks of the driver for values."""
        return sql if self.is_file else sql.replace("?", "%s")


def insert(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    on_conflict: str = "",
) -> None:
    """Insert rows; `on_conflict` is the clause about rows whose key exists."""
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


def lock_table(connection: Connection, table: str, mode: str) -> None:
    """Lock a table of a server until the transaction ends. SQLite has one writer at a time."""
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
    for part in parts(values):
        connection.change(*_filled(query, first, part))


def _filled(query: str, first: Sequence[Any], part: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    filled = (*part, *[part[-1]] * (min(LOOKUP, 1 << (len(part) - 1).bit_length()) - len(part)))
    marks = [*("?" * len(first)), ", ".join("?" * len(filled))]
    return query.format(*marks), (*first, *filled)


def parts(names: Sequence[Name]) -> Iterator[Sequence[Name]]:
    """Divide keys into parts that one statement accepts."""
    return (names[start : start + LOOKUP] for start in range(0, len(names), LOOKUP))


# -- Errors of databases


@contextmanager
def database_errors(name: str) -> Iterator[None]:
    """Turn errors of a database into one message, without the statement and its values."""
    try:
        yield
    except PoolTimeoutError:
        raise EnvironmentFailedError(
            f"the store {name} is overloaded: all connections of this process have been busy for a minute. "
            "Everything committed before is kept; run the same command again"
        ) from None
    except DBAPIError as error:
        raise failed_store(name, error.orig, is_disconnected=error.connection_invalidated) from None
    except sqlite3.Error as error:
        raise failed_store(name, error) from None


def check_server(engine: Engine, name: str) -> None:
    try:
        engine.connect().close()
    except DBAPIError as error:
        raise EnvironmentFailedError(
            f"the store {name} cannot be opened: {reason_of(error.orig)}; expected a server that runs at "
            "this host and port, this database on it, and a user who may write to it (or --store FILE)"
        ) from None


# -- Runs blocking work off the event loop: look-ups, hashing, counting, writing of files


P = ParamSpec("P")
T = TypeVar("T")


class StoppedError(Exception):
    """The work of a thread ended early because its caller was cancelled."""


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short blocking function in a thread while the event loop goes on.

    A cancelled caller waits until the function has ended: nothing is closed while the thread uses it.
    """
    return await _run(lambda: function(*args, **kwargs), threading.Event())


async def run_until_cancelled(function: Callable[[threading.Event], T]) -> T:
    """Run a long blocking function in a thread, and ask it to stop when the caller is cancelled."""
    stop = threading.Event()
    return await _run(lambda: function(stop), stop)


def until_set(items: Iterable[T], stop: threading.Event) -> Iterator[T]:
    for item in items:
        raise_if_set(stop)
        yield item


def raise_if_set(stop: threading.Event) -> None:
    if stop.is_set():
        raise StoppedError


async def _run(function: Callable[[], T], stop: threading.Event) -> T:
    future = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # Otherwise asyncio logs that nobody retrieved it.
        raise
