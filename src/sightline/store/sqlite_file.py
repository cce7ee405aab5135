"""The SQLite file of a store: its checks before it is opened, and the connections of a process to it."""

from __future__ import annotations

import secrets
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from sightline.errors import UserError
from sightline.store.failures import StoreFailedError, damaged_store, no_store, not_a_store

LOCK_SECONDS = 60
"""How long a writer waits for another one; each holds the lock for milliseconds."""


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


def _begin(connection: Connection) -> None:
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


def count_transaction(connection: Connection) -> None:
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


# -- Checks a SQLite file before SQLite opens it to write, which changes a file that is damaged or no
#    store

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
