"""The connection that the engine's statements run on: SQL text and values, without SQLAlchemy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Connection(Protocol):
    """A connection of an open transaction. In its SQL, `?` stands for a value, and nowhere for itself."""

    @property
    def is_file(self) -> bool:
        """Whether it is one to a SQLite file, and not to a PostgreSQL server."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that returns rows."""

    def change(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement that returns no rows."""

    def change_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each of several rows."""

    def tables(self) -> set[str]:
        """List the tables of the database."""

    def has_table(self, name: str) -> bool:
        """Find out whether a table exists."""

    def roll_back(self) -> None:
        """Undo what the transaction changed, and end it."""
