"""The connections of a process to a SQLite file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

LOCK_SECONDS = 60
"""How long a writer waits for another one; each holds the lock for milliseconds."""

_KEPT = 5
"""Connections that stay open while nothing uses them."""

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"


class FileConnection:
    """A connection to a SQLite file, as `connection.Connection`."""

    is_file = True

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows."""
        return self._driver.execute(sql, values).fetchall()

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement that returns no rows; returns the number of rows that it changed."""
        return self._driver.execute(sql, values).rowcount

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows."""
        self._driver.executemany(sql, rows)

    def tables(self) -> set[str]:
        """List the tables of the file."""
        return {name for (name,) in self.rows(_TABLES)}

    def has_table(self, name: str) -> bool:
        """Find out whether a table exists."""
        return name in self.tables()

    def roll_back(self) -> None:
        """Undo what the transaction changed, and end it."""
        self._driver.rollback()


class SqliteConnections:
    """The connections to one file. Several threads may use them, each transaction its own."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._idle: list[sqlite3.Connection] = []

    @contextmanager
    def transaction(self, *, writes: bool) -> Iterator[FileConnection]:
        """Run a transaction. An error ends it, and nothing of it stays."""
        idle = self._idle
        driver = self._take(idle)
        try:
            driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
            yield FileConnection(driver)
            if writes:
                driver.commit()
            else:
                driver.rollback()
        except BaseException:
            # SQLite ends a closed connection when its last cursor is gone. The traceback of Ctrl-C holds one,
            # so that what is done before the process ends, such as to release claims, would wait for a lock
            # in vain.
            with suppress(sqlite3.Error):  # the first error is reported
                driver.rollback()
            driver.close()
            raise
        # Not if `close` was called meanwhile: nothing would close the connection.
        if idle is self._idle and len(idle) < _KEPT:
            idle.append(driver)
        else:
            driver.close()

    def close(self) -> None:
        """Close the connections that no transaction uses; the others are closed with their transactions."""
        idle, self._idle = self._idle, []
        while idle:
            idle.pop().close()

    def _take(self, idle: list[sqlite3.Connection]) -> sqlite3.Connection:
        # Another thread may take the last one after a check.
        with suppress(IndexError):
            return idle.pop()
        driver = sqlite3.connect(self._path, timeout=LOCK_SECONDS, check_same_thread=False)
        try:
            set_up(driver)
        except BaseException:
            driver.close()
            raise
        return driver


def set_up(driver: sqlite3.Connection) -> None:
    """Set up a new connection: transactions are begun by statements, writes go to the write-ahead log."""
    driver.isolation_level = None
    _write_ahead(driver)
    driver.execute("PRAGMA synchronous=NORMAL")


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
