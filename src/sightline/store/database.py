"""The database of the store: connections and transactions, its SQLite file, errors, and work in threads."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import sqlite3
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import wraps
from hashlib import sha256
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, ParamSpec, TypeVar, cast

from sqlalchemy import URL, Engine, create_engine, event, inspect
from sqlalchemy.engine import Connection as CoreConnection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.pool import NullPool

from sightline.errors import EnvironmentFailedError, UserError

P = ParamSpec("P")
T = TypeVar("T")
Name = TypeVar("Name")

LOOKUP = 500
"""Keys in one statement; every database accepts that many parameters."""
RECONNECT_SECONDS = 60.0
"""How long an open store waits for a database server that restarts."""
ATTEMPT_SECONDS = 0.25
"""The time between two attempts to reach a server."""
REPEATS = 3
"""How often an operation is repeated that the server ended."""
LOCK_SECONDS = 60
"""How long a writer waits for another one; each holds the lock for milliseconds."""


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
        with closing(self.core.exec_driver_sql(self._marked(sql), tuple(values))) as result:
            # From the driver: SQLAlchemy takes three times as long as SQLite, for each row.
            return cast(list[tuple[Any, ...]], result.cursor.fetchall())

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement that returns no rows; returns the number of rows that it changed."""
        return self.core.exec_driver_sql(self._marked(sql), tuple(values)).rowcount

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
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


# -- The SQLite file of a store: its checks before it is opened, and the connections of a process to it


class SqliteFile:
    """The file of a store: how connections to it are opened, and whether it is still there."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.is_read_only = is_read_only
        self.path = path.absolute()
        self._identity: tuple[int, int] | None = None

    def create_engine(self) -> Engine:
        """Create the engine of SQLAlchemy. Its transactions are begun by statements."""
        url = URL.create("sqlite", database=str(self.path))
        if self.is_read_only:
            # The next transaction may need another mode.
            engine = create_engine(url, creator=lambda: open_read_only(self.path), poolclass=NullPool)
        else:
            options = {"timeout": LOCK_SECONDS, "check_same_thread": False}
            engine = create_engine(url, connect_args=options)
            event.listen(engine, "connect", lambda driver, _record: set_up(driver))
        event.listen(engine, "do_connect", lambda *_: self.check(is_open=False))  # SQLite would create a file
        event.listen(engine, "connect", lambda *_: self.check())
        event.listen(engine, "begin", _begin)
        event.listen(engine, "invalidate", _roll_back)
        return engine

    def check(self, *, is_open: bool = True) -> None:
        """Raise StoreFailedError unless the path names the file that the first connection opened."""
        if self._identity is None and not is_open:
            return
        try:
            found = self.path.stat()
        except OSError as error:
            what, identity = f"cannot be found any more ({error.strerror})", None
        else:
            what, identity = "was replaced by another one", (found.st_dev, found.st_ino)
        self._identity = self._identity or identity
        if identity is None or identity != self._identity:
            raise StoreFailedError(
                f"the store {self.path} failed: the file {what} while this process worked with it. What "
                "it would have stored since then is not saved; what was stored before is in the file "
                "that was here, and in its -wal. Put that file, or a backup, here (docs/store.md, "
                "Backup); then run the same command again",
                f"the file {what}",
            )

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise StoreFailedError if a read-only file was written by another process while it was read.

        Without a log, SQLite locks nothing and sees no writer: what was read may be of two states.
        """
        before = _contents(self.path) if self.is_read_only else None
        try:
            yield
        except StoreFailedError:
            if before is None or before == _contents(self.path):
                raise
        if before is not None and before != _contents(self.path):
            raise StoreFailedError(
                f"the store {self.path}, which cannot be written here, was changed by another process while "
                "it was read; run the same command again",
                "it was changed while it was read",
            )

    def copy_to(self, target: sqlite3.Connection) -> None:
        with self.unchanged():
            self.check(is_open=False)
            with closing(open_read_only(self.path)) as driver:
                driver.backup(target)


def _begin(connection: CoreConnection) -> None:
    """Let a writer take the lock at once and wait for it; a deferred transaction would fail half-way."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _roll_back(driver: sqlite3.Connection, _record: object, _error: object) -> None:
    """End the transaction of a connection that Ctrl-C interrupted: SQLAlchemy only closes it.

    SQLite ends a closed connection when its last cursor is gone. The traceback of Ctrl-C holds one, so that
    what is done before the process ends, such as to release claims, would wait for a lock in vain.
    """
    with suppress(sqlite3.Error):  # the error that made it invalid is reported
        driver.rollback()


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a file that cannot be written here.

    With a log, SQLite reads both files, with locks. Without one, it could not create a log, or would leave
    one that belongs to this user: `immutable` reads the file alone, which then holds everything.
    """
    mode = "mode=ro" if _has_log(path) else "immutable=1"
    try:
        driver = sqlite3.connect(
            f"{path.absolute().as_uri()}?{mode}",
            uri=True,
            timeout=LOCK_SECONDS,
            check_same_thread=False,
            isolation_level=None,
        )
        driver.text_factory = _text
        driver.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        raise StoreFailedError(
            f"the store {path} cannot be read here: {path.name}-wal holds its latest answers, and SQLite "
            f"reads it only with {path.name}-shm, or in a folder that can be written; copy the store "
            f"and {path.name}-wal into a writable folder, and name the copy",
            "its log cannot be read in a folder that cannot be written",
        ) from None
    return driver


def _has_log(path: Path) -> bool:
    """Whether a log or a rollback journal stands beside a file that SQLite must read, too."""
    log, journal, shared = (path.with_name(f"{path.name}-{name}") for name in ("wal", "journal", "shm"))
    with suppress(FileNotFoundError):
        return log.stat().st_size > 0 or shared.exists()
    return journal.exists() and journal.stat().st_size > 0


def _contents(path: Path) -> tuple[object, ...] | None:
    """What changes when a file without a log is written; None where SQLite itself locks it."""
    if _has_log(path):
        return None
    with suppress(FileNotFoundError):
        info = path.stat()
        return info.st_ino, info.st_size, info.st_mtime_ns
    return ()


def count_transaction(connection: CoreConnection) -> None:
    """Count a transaction that writes to a file in `user_version`, which begins at a random number.

    The first page holds it. So the write-ahead log shows which state of which file it continues.
    """
    count = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    # 31 bits: SQLite takes the number as signed.
    connection.exec_driver_sql(f"PRAGMA user_version = {(count or secrets.randbits(31)) % (2**31 - 1) + 1}")


def set_up(driver: sqlite3.Connection) -> None:
    """Set up a new connection: transactions are begun by statements, writes go to the write-ahead log."""
    driver.isolation_level = None
    driver.text_factory = _text
    _write_ahead(driver)
    driver.execute("PRAGMA synchronous=NORMAL")


def _text(stored: bytes) -> str:
    """Text of a row. One that is damaged, and no UTF-8, is an error of its row, not of all that are read."""
    return stored.decode(errors="surrogateescape")


def _write_ahead(driver: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite itself does not wait while another process does the same."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            driver.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


# -- The checks before SQLite opens a file to write, which changes one that is damaged or no store

_SMALLEST_PAGE = 512
"""SQLite takes a file without a whole page for an empty one, and overwrites it."""
_LOG_HEADER = struct.Struct(">8I")


def check_sqlite_file(path: Path, *, create: bool) -> None:
    """Check that a file is a store, or may become one. Nothing is written."""
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists()
    size = path.stat().st_size if path.exists() else 0  # after the log, which a new store gets last
    try:
        problem = (_log_problem(size, log) or _foreign_log(path, log)) if has_log else ""
    except FileNotFoundError:  # the last process that used it has moved all of it into the file
        has_log, problem = False, ""
    if problem:
        raise damaged_store(
            str(path), f"{problem}: put both files of one backup here, or move {log.name} away"
        )
    if not path.exists():
        return
    try:
        tables = _tables(path, has_log=has_log)
    except sqlite3.DatabaseError:
        raise _not_a_database(path, create=create) from None
    if 0 < size < _SMALLEST_PAGE:
        raise _not_a_database(path, create=create)
    if tables == set() and not create:
        alone = f" (if this is the copy of a store in use, {log.name} of the original is missing beside it)"
        raise no_store(path, alone if size and not has_log else "")
    if tables and not tables >= {"meta", "answers"}:
        raise not_a_store(path)


def _not_a_database(path: Path, *, create: bool) -> UserError:
    stores = "a store, or a new name" if create else "a store"
    return UserError(
        "this file is not a SQLite database",
        file=path,
        expected=f"{stores}; if it was a store, docs/store.md (Damaged files) says what can be kept",
    )


def _log_problem(size: int, log: Path) -> str:
    """Why a file is not the log of a database of this size; '' if it may be.

    SQLite drops such a file without a word, and with it the latest answers.
    """
    with log.open("rb") as file:
        header = file.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size:
        return ""  # no transaction is in it
    if not size:
        return f"the file is empty or missing, and its write-ahead log {log.name} is not"
    magic, *_, sum_1, sum_2 = _LOG_HEADER.unpack(header)
    # Section 4.2 of SQLite's file format; the last bit of the magic number is the order of the bytes.
    words = struct.unpack(f"{'>' if magic & 1 else '<'}6I", header[:24])
    a = b = 0
    for x, y in zip(words[::2], words[1::2], strict=True):
        a = (a + x + b) & 0xFFFFFFFF
        b = (b + y + a) & 0xFFFFFFFF
    return "" if (a, b) == (sum_1, sum_2) else f"{log.name} is no write-ahead log, or its header is damaged"


_FRAME_HEADER = struct.Struct(">6I")
_USER_VERSION = 60
"""Where the first page of a file holds `user_version`."""


def _foreign_log(path: Path, log: Path) -> str:
    """Why a log does not continue the file that it stands beside; '' if it does.

    It continues the state before its first transaction; the file may have got some of them already.
    """
    while True:
        with log.open("rb") as file:
            header = file.read(_LOG_HEADER.size)
        state = _state_alone(path)
        with log.open("rb") as file:
            if file.read(_LOG_HEADER.size) != header:
                continue  # another process began the log anew
            states = list(_logged_states(file, header))
        # The file of a new store, which is empty, has no count.
        if not state or not states or state in states or states[0] == state % (2**31 - 1) + 1:
            return ""
        return f"{log.name} is the write-ahead log of another file, or of another state of this one"


def _logged_states(file: BinaryIO, header: bytes) -> Iterator[int]:
    """The counts of transactions in a log that stands behind its header."""
    if len(header) < _LOG_HEADER.size:
        return
    size, salts = _LOG_HEADER.unpack(header)[2], header[16:24]
    while len(frame := file.read(_FRAME_HEADER.size + size)) == _FRAME_HEADER.size + size:
        if frame[8:16] != salts:
            return  # of an earlier log
        if _FRAME_HEADER.unpack_from(frame)[0] == 1:
            yield int.from_bytes(frame[_FRAME_HEADER.size + _USER_VERSION :][:4])


def _state_alone(path: Path) -> int | None:
    """The count of transactions in a file without its log; None if SQLite cannot read it."""
    with suppress(sqlite3.DatabaseError), closing(_immutable(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    return None


def _immutable(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)


def _tables(path: Path, *, has_log: bool) -> set[str] | None:
    """The tables of a file; None if SQLite cannot read them so, which it says again when it opens the file.

    SQLite itself reads the file: in a process that has it open already, closing a file of Python's would
    release SQLite's locks.
    """
    # Without a log, a reader that is not `immutable` would create one.
    address = f"{path.absolute().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}"
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            return {name for (name,) in connection.execute(query)}
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_NOTADB:
            raise
        return None


# -- Errors, one message each with the remedy, and operations that are repeated

_REPEATABLE = {"40001", "40P01"}
"""SQLSTATE of a serialization failure and of a deadlock."""

_REMEDIES = {
    None: "when the server runs again,",
    "25006": "name the primary server instead of a replica, then",
    "3F000": "name a schema that exists (search_path), then",
    "42501": "grant the role SELECT on the tables if it only reads, let it own the database if it writes "
    "(docs/postgresql.md), then",
    "53100": "make room on the disk of the server, then",
    "55P03": "when the command ends that works with the whole store (`store gc` or `store merge`; "
    "pg_stat_activity lists the sessions),",
}
"""SQLSTATE (PostgreSQL, appendix A) -> what the user can do."""


class NoStoreError(UserError):
    """There is no store, and none was to be created."""


def not_writable(name: object) -> UserError:
    return UserError(
        "the store cannot be written",
        file=name,
        expected="a --store in a writable folder; `sightline store merge OLD --into NEW` copies one",
    )


class StoreFailedError(EnvironmentFailedError):
    """The store cannot be read or written. `reason` says why, without the store's name and the remedy."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class TransactionLostError(StoreFailedError):
    """The server ended a transaction that succeeds if it is repeated: it restarted, or found a deadlock."""


def repeat_if_lost(operation: Callable[P, T]) -> Callable[P, T]:
    """Decorate an operation with one transaction, which may take place twice without harm."""

    @wraps(operation)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        return until_kept(lambda _: operation(*args, **kwargs))

    return repeated


def until_kept(operation: Callable[[bool], T]) -> T:
    """Run an operation with one transaction, again if the server restarts or ends it for another one."""
    for repeats in range(REPEATS):
        try:
            return operation(repeats > 0)
        except TransactionLostError:
            time.sleep(ATTEMPT_SECONDS)
    return operation(True)


def failed_store(
    name: str, error: BaseException | None, *, is_disconnected: bool = False
) -> StoreFailedError:
    reason = reason_of(error)
    if _is_damage(error):
        return damaged_store(name, reason)
    state = None if is_disconnected else getattr(error, "sqlstate", None)
    if "://" in name:
        remedy = _REMEDIES.get(state, "correct this, then")
    else:
        remedy = _busy_remedy(error) or "make room or repair the disk, then"
    lost = is_disconnected or state in _REPEATABLE
    return (TransactionLostError if lost else StoreFailedError)(
        f"the store {name} failed: {reason}. Everything committed before is kept; "
        f"{remedy} run the same command again",
        reason,
    )


def reason_of(error: BaseException | None) -> str:
    """The message of a database in one line, without the part of the statement that PostgreSQL adds."""
    diagnosis = getattr(error, "diag", None)
    message = getattr(diagnosis, "message_primary", None) or str(error)
    return " ".join(message.split()).rstrip(".")


def damage(name: str, table: str, row: int, reason: str) -> StoreFailedError:
    return damaged_store(name, f"row {row} of the table {table} cannot be read ({reason})")


def damaged_store(name: str, reason: str) -> StoreFailedError:
    message = (
        f"the store {name} is damaged: {reason}. `sightline store verify --store {shlex.quote(name)}` lists "
        f"everything that is damaged, {damage_remedy(name)}"
    )
    return StoreFailedError(message, reason)


def damage_remedy(name: str) -> str:
    """Say what keeps the sound part of a damaged store."""
    copy = f"`sightline store merge {shlex.quote(name)} --into NEW` copies what is sound"
    return f"{copy}; docs/store.md (Damaged files) says more"


def no_store(name: object, hint: str = "") -> NoStoreError:
    return NoStoreError(
        "there is no store here", file=name, expected=f"the store of an earlier run (--store){hint}"
    )


def _is_damage(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _busy_remedy(error: BaseException | None) -> str:
    """The remedy if another process holds the lock of a SQLite file; '' for other errors."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code & 0xFF != sqlite3.SQLITE_BUSY:
        return ""
    return "another process has been writing to it for more than a minute; when that ends,"


def not_a_store(name: object) -> UserError:
    return UserError("this database is not a Sightline store", file=name, expected="a Sightline store")


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
