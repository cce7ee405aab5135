"""What can be wrong in a store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from sqlalchemy import RowMapping, Table

GC = "`sightline store gc` drops such rows"
DELETE = "`sightline runs delete {}` deletes the run, its answers stay"
ASK_AGAIN = "run the same command again, which asks only what is missing"


class Fault(Struct, frozen=True, kw_only=True):
    """Something that is wrong in a store.

    Attributes:
        table: The table; '' for the whole file.
        key: Column -> value of the primary key of the row; empty if it is about no single row.
        run: The run that it concerns; None if it is unknown.
        problem: What is wrong.
        remedy: What the user can do; '' for the remedy of any damage to this store.
    """

    table: str = ""
    key: Mapping[str, Any] = field(default_factory=dict)
    run: int | None = None
    problem: str
    remedy: str = ""

    @property
    def row(self) -> str:
        """The primary key of the row as text; '' if it is about no single row."""
        return key_text(self.key)


def key_of(table: Table, row: RowMapping) -> dict[str, Any]:
    """The primary key of a row.

    Args:
        table: Its table.
        row: The row.

    Returns:
        Column -> value.
    """
    return {column.key: row[column.key] for column in table.primary_key.columns}


def key_text(key: Mapping[str, Any]) -> str:
    """Format the primary key of a row.

    Args:
        key: Column -> value.

    Returns:
        The columns and values in one line; '' if there are none.
    """
    return ", ".join(
        f"{name} {value.hex() if isinstance(value, bytes) else value}" for name, value in key.items()
    )
