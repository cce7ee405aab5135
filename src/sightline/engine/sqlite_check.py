"""Checks a SQLite file before SQLite opens it to write, which changes a file that is damaged or no store."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.engine.database_errors import damaged_store, no_store, repair_command
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.engine.write_ahead_log import CommittedPages

_READINGS = 3
"""How often a log must look damaged: another process may write to it during a reading."""
_SECONDS = 0.05
"""The time between two readings."""
_SMALLEST_PAGE = 512
"""SQLite takes a file without a whole page for an empty one, and overwrites it."""


def check_sqlite_file(path: Path, *, create: bool) -> None:
    """Check that a file is a store, or may become one. Nothing is written.

    Args:
        path: The file; it exists.
        create: Whether an empty file becomes a store.

    Raises:
        NoStoreError: The file is empty, and no store is to be created.
        UserError: The file is not a SQLite database, or that of another program.
        StoreFailedError: The write-ahead log is damaged.
    """
    log = path.with_name(f"{path.name}-wal")
    _check_log(path, log)
    size, has_log = path.stat().st_size, log.exists()
    try:
        tables = _tables(path, has_log=has_log)
    except sqlite3.DatabaseError:
        raise _not_a_database(path, create=create) from None
    if 0 < size < _SMALLEST_PAGE:
        raise _not_a_database(path, create=create)
    if tables == set() and not create:
        raise no_store(path, _copied_alone(log) if size and not has_log else "")
    if tables and not tables >= {"meta", "answers"}:
        raise not_a_store(path)


def not_a_store(name: object) -> UserError:
    """Make the error of a database of another program.

    Args:
        name: The file, or what messages call the database.

    Returns:
        The error.
    """
    return UserError("this database is not a Sightline store", file=name, expected="a Sightline store")


def _not_a_database(path: Path, *, create: bool) -> UserError:
    stores = "a store, or a new name" if create else "a store"
    return UserError(
        "this file is not a SQLite database",
        file=path,
        expected=f"{stores}; if it was a store, {repair_command(str(path))}",
    )


def _copied_alone(log: Path) -> str:
    return f" (if this is the copy of a store in use, {log.name} of the original is missing beside it)"


def _check_log(path: Path, log: Path) -> None:
    """SQLite drops what follows the first damaged page, and with an empty file the whole log."""
    for reading in range(_READINGS):
        if reading:
            time.sleep(_SECONDS)
        if not (problem := _problem(path, log)):
            return
    raise damaged_store(str(path), problem)


def _problem(path: Path, log: Path) -> str:
    """What is wrong with a write-ahead log; '' if nothing is, or if there is none."""
    found = _committed(log)
    if found is None:
        return ""
    if found.pages > 0 and not path.stat().st_size:
        return f"the file is empty, and its write-ahead log {log.name} is not"
    if found.damaged:
        pages = "1 page is" if found.damaged == 1 else f"{found.damaged:,} pages are"
        return f"{pages} damaged in its write-ahead log {log.name}, which holds the latest answers"
    if found.is_damaged:
        return f"the header of its write-ahead log {log.name} is damaged, which holds the latest answers"
    return ""


def _committed(log: Path) -> CommittedPages | None:
    """What is committed in a write-ahead log; None if there is none, as while no process uses the store."""
    try:
        file = os.open(log, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        # It imports numpy, which takes longer than the rest of a small run.
        from sightline.engine.write_ahead_log import committed_pages, logged_page_size

        return committed_pages(file, logged_page_size(file))
    finally:
        os.close(file)


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
