"""The tables of a SQLite file: their definitions, and the pages that hold their rows."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from sightline.maintenance.sqlite.pages import Pages
from sightline.maintenance.sqlite.records import (
    INDEX_INTERIOR,
    INDEX_LEAF,
    TABLE_LEAF,
    Node,
    Row,
    Value,
    read_node,
    read_rows,
)

_NUMBERLESS = re.compile(r"\bWITHOUT\s+ROWID\b", re.IGNORECASE)

SCHEMA_ROOT = 1
"""The page where the table of all tables begins."""


class Column(NamedTuple):
    """A column of a table: its name, the Python types of its values, its place in the primary key from 1."""

    name: str
    types: tuple[type, ...]
    nullable: bool
    key: int


class TableShape(NamedTuple):
    """How the rows of a table look.

    Attributes:
        name: The name of the table.
        columns: Its columns in the order in which a row holds them.
        number: The column that is the number of the row; None if there is none.
        has_numbers: Whether rows have numbers (not WITHOUT ROWID).
    """

    name: str
    columns: tuple[Column, ...]
    number: str | None
    has_numbers: bool

    def named(self, row: Row) -> dict[str, Value] | None:
        """Name the values of a row.

        Args:
            row: The row.

        Returns:
            Column -> value; None if the row cannot be one of this table: values have other types, or their
            number is another. A column that was added to the table later may be missing.
        """
        if self.has_numbers != (row.number is not None) or len(row.values) > len(self.columns):
            return None
        named: dict[str, Value] = {}
        for place, column in enumerate(self.columns):
            value = row.values[place] if place < len(row.values) else None
            if column.name == self.number and value is None:
                value = row.number
            if not (isinstance(value, column.types) or (value is None and column.nullable)):
                return None
            if place < len(row.values):
                named[column.name] = value
        return named


class Definition(NamedTuple):
    """A table or an index as the file defines it."""

    kind: str
    name: str
    root: int
    sql: str


def read_definitions(pages: Pages) -> list[Definition]:
    """Read what the file says about its tables and indexes, as far as it is readable.

    Args:
        pages: The database.

    Returns:
        The definitions; those of indexes that SQLite makes itself have no `sql`.
    """
    found: list[Definition] = []
    for leaf in walk(pages, SCHEMA_ROOT):
        if leaf.node is None:
            continue
        for row in read_rows(pages, leaf.number, leaf.node):
            match row.values if row else ():
                # A definition that is damaged can hold NUL characters, which no statement may.
                case (str(kind), str(name), str(), int(root), str() | None as sql) if "\0" not in (sql or ""):
                    found.append(Definition(kind, name, root, sql or ""))
    return found


def shapes(definitions: Sequence[str]) -> dict[str, TableShape]:
    """How the rows of tables look.

    Args:
        definitions: CREATE TABLE statements.

    Returns:
        The shape of each table by name.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        for sql in definitions:
            connection.execute(sql)
        listed = connection.execute(
            "SELECT name, sql FROM sqlite_master"
            " WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        ).fetchall()
        return {
            name: _shape(connection, name, has_numbers=not _NUMBERLESS.search(sql)) for name, sql in listed
        }


def _shape(connection: sqlite3.Connection, name: str, *, has_numbers: bool) -> TableShape:
    rows = connection.execute(
        'SELECT name, type, "notnull", pk FROM pragma_table_info(?)', (name,)
    ).fetchall()
    columns = [
        Column(column, _types(kind), not notnull and not key, key) for column, kind, notnull, key in rows
    ]
    keys = [(column, kind) for column, kind, _, key in rows if key]
    number = keys[0][0] if has_numbers and len(keys) == 1 and keys[0][1].upper() == "INTEGER" else None
    if not has_numbers:
        columns.sort(key=lambda column: column.key or len(columns) + 1)
    return TableShape(name, tuple(columns), number, has_numbers)


def _types(declared: str) -> tuple[type, ...]:
    """The Python types of a declared type. SQLite stores a whole number of type FLOAT as an integer."""
    kind = declared.upper()
    if "INT" in kind or kind == "BOOLEAN":
        return (int,)
    if "CHAR" in kind or "TEXT" in kind:
        return (str,)
    return (bytes,) if "BLOB" in kind else (float, int)


class Page(NamedTuple):
    """A page with its structure; None if it is damaged."""

    number: int
    node: Node | None


def walk(pages: Pages, root: int) -> Iterator[Page]:
    """Find the pages of a table or an index from its first page.

    Args:
        pages: The database.
        root: The number of the first page.

    Yields:
        The pages in the order of their rows, also the damaged ones.
    """
    visited, left = bytearray(pages.count + 1), [root]
    while left:
        number = left.pop()
        if not 0 < number <= pages.count or visited[number]:
            continue
        visited[number] = 1
        node = read_node(pages, number)
        yield Page(number, node)
        if node is not None:
            left.extend(reversed(node.children))


def lost_pages(pages: Pages, found: bytearray) -> Iterator[Page]:
    """Find the pages with rows that no table leads to any more.

    Args:
        pages: The database.
        found: 1 at the number of each page that a table or an index leads to.

    Yields:
        The pages.
    """
    free = pages.free_pages()
    for number in range(1, pages.count + 1):
        if found[number] or number in free:
            continue
        node = read_node(pages, number)
        if node is not None and node.cells and node.kind in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
            yield Page(number, node)
