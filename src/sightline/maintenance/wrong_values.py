"""Finds a value that a column cannot have, in a SQLite store: SQLite accepts every type in every column.

Such a value can end any command that reads it. A command that ended unexpectedly looks here for the reason.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Table

from sightline.engine import schema
from sightline.engine.connect import sqlite_path
from sightline.engine.database_errors import StoreFailedError, damaged_store
from sightline.errors import UserError
from sightline.maintenance.damaged_tables import LARGEST
from sightline.maintenance.faults import key_text
from sightline.maintenance.row_checks import LARGEST_TIME, TIMES, wrong_value

_HEADER = b"SQLite format 3\0"
_TYPES = {bytes: "'blob'", str: "'text'", int: "'integer'", float: "'real', 'integer'"}


def damage_by_wrong_value(words: Iterable[str]) -> StoreFailedError | None:
    """Find a wrong value in the stores that a command names.

    Args:
        words: The words of the command line; those that name no SQLite file are skipped.

    Returns:
        The error that names store, table and row; None if no store has a wrong value.
    """
    for name in dict.fromkeys(word.partition("=")[2] if word.startswith("-") else word for word in words):
        with suppress(UserError, OSError, ValueError, sqlite3.Error):
            path = sqlite_path(name)
            if path is not None and path.is_file() and _is_sqlite(path) and (found := _find(path)):
                return damaged_store(str(path), found)
    return None


def _is_sqlite(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def _find(path: Path) -> str:
    """Which row has a wrong value, and in which column; '' if none has."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        for table in schema.metadata.sorted_tables:
            columns = [str(name) for _, name, *_ in connection.execute(f"PRAGMA table_info({table.name})")]
            # An earlier version of the store has other columns.
            if {column.key for column in table.columns} == set(columns):
                names = ", ".join(columns)
                query = f"SELECT {names} FROM {table.name} WHERE {_condition(table)} LIMIT 1"
                for values in connection.execute(query):
                    return _described(table, columns, values)
    return ""


def _condition(table: Table) -> str:
    """The SQL that is true of a row with a wrong value."""
    parts = []
    for column in table.columns:
        types = _TYPES[column.type.python_type] + (", 'null'" if column.nullable else "")
        parts.append(f"typeof({column.key}) NOT IN ({types})")
        if column.type.python_type is int:
            parts.append(f"{column.key} NOT BETWEEN 0 AND {LARGEST - 1}")
        if column.key in TIMES:
            parts.append(f"abs({column.key}) >= {LARGEST_TIME}")
    return " OR ".join(parts)


def _described(table: Table, columns: Sequence[str], values: Sequence[Any]) -> str:
    row = dict(zip(columns, values, strict=True))
    key = key_text({column.key: row[column.key] for column in table.primary_key.columns})
    return f"the row {key} of the table {table.name} cannot be read ({wrong_value(table, row)})"
