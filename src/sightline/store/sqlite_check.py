"""Checks a SQLite file before SQLite opens it to write, which changes a file that is damaged or no store."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from pathlib import Path

from sightline.errors import UserError
from sightline.store.database import damaged_store, no_store

_SMALLEST_PAGE = 512
"""SQLite takes a file without a whole page for an empty one, and overwrites it."""
_LOG_HEADER = struct.Struct(">8I")


def check_sqlite_file(path: Path, *, create: bool) -> None:
    """Check that a file is a store, or may become one. Nothing is written."""
    log = path.with_name(f"{path.name}-wal")
    size, has_log = path.stat().st_size, log.exists()
    if has_log and (problem := _log_problem(size, log)):
        raise damaged_store(
            str(path), f"{problem}: put both files of one backup here, or move {log.name} away"
        )
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


def not_a_store(name: object) -> UserError:
    """Make the error of a database of another program; `name` is what messages call it."""
    return UserError("this database is not a Sightline store", file=name, expected="a Sightline store")


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
        return f"the file is empty, and its write-ahead log {log.name} is not"
    magic, *_, sum_1, sum_2 = _LOG_HEADER.unpack(header)
    # Section 4.2 of SQLite's file format; the last bit of the magic number is the order of the bytes.
    words = struct.unpack(f"{'>' if magic & 1 else '<'}6I", header[:24])
    a = b = 0
    for x, y in zip(words[::2], words[1::2], strict=True):
        a = (a + x + b) & 0xFFFFFFFF
        b = (b + y + a) & 0xFFFFFFFF
    return "" if (a, b) == (sum_1, sum_2) else f"{log.name} is no write-ahead log, or its header is damaged"


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
