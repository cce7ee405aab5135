"""Copies the rows of a damaged SQLite file that are still readable to a new one."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from sightline.maintenance.sqlite.pages import Pages
from sightline.maintenance.sqlite.records import INDEX_INTERIOR, INDEX_LEAF, TABLE_LEAF, Row, Value, read_rows
from sightline.maintenance.sqlite.trees import (
    SCHEMA_ROOT,
    Definition,
    Page,
    TableShape,
    lost_pages,
    read_definitions,
    shapes,
    walk,
)
from sightline.progress import Advance

_SEQUENCE = "sqlite_sequence"
"""SQLite's table of the last number that each table gave to a row."""


class SalvagedTable(Struct, frozen=True):
    """What was read of a table: rows, rows that are damaged, pages that are damaged, and where rows were."""

    rows: int
    damaged_rows: int
    damaged_pages: int


class Salvaged(Struct, frozen=True):
    """What was read of a file.

    Attributes:
        tables: What was read of each table.
        missing_pages: Pages that are missing at the end of the file.
        unknown_pages: Pages with rows of which it is unknown to which table they belong.
        damaged_frames: Damaged pages of the write-ahead log.
        lost_definitions: The tables whose definitions were lost; those of this version were used.
    """

    tables: Mapping[str, SalvagedTable]
    missing_pages: int
    unknown_pages: int
    damaged_frames: int
    lost_definitions: Sequence[str]


Check = Callable[[Mapping[str, Any]], bool]
"""Whether the content of a row is sound; it may also raise ValueError for a row that is not."""


def salvage(
    pages: Pages,
    target: sqlite3.Connection,
    expected: Sequence[str],
    checks: Mapping[str, Check],
    left_out: Collection[str] = (),
    advance: Advance = lambda _: None,
) -> Salvaged:
    """Copy all readable rows to an empty database.

    Rows of pages that a table still leads to come first: they replace older copies of the same rows.

    Args:
        pages: The damaged database.
        target: The empty database.
        expected: The definitions of the tables and indexes that a store of this version has; used if those of
            the file are damaged.
        checks: Table -> the check of its rows; a row that does not pass is damaged.
        left_out: Tables that are created without rows.
        advance: Reports how many more pages are done.

    Returns:
        What was read.
    """
    definitions = read_definitions(pages)
    tables = _tables(definitions, expected, target)
    found = {one.name for one in definitions}
    return _Salvage(pages, target, tables, checks, left_out, advance).copy(
        definitions, lost=sorted(set(tables) - found)
    )


def _tables(
    definitions: Sequence[Definition], expected: Sequence[str], target: sqlite3.Connection
) -> dict[str, TableShape]:
    """Create the tables and indexes of the file.

    Those of this version that the file lacks are created if the others are those of this version.
    """
    found = shapes([one.sql for one in definitions if one.kind == "table" and one.sql and _is_own(one.name)])
    usual = shapes([sql for sql in expected if _is_table(sql)])
    is_current = all(found[name] == usual[name] for name in found.keys() & usual.keys())
    statements = [one.sql for one in definitions if one.sql and _is_own(one.name)]
    if is_current:
        statements += [sql for sql in expected if sql not in statements]
    for sql in sorted(statements, key=_is_table, reverse=True):
        with suppress(sqlite3.OperationalError):  # exists already, or belongs to a table that is lost
            target.execute(sql)
    return {**usual, **found} if is_current else found


def _is_table(sql: str) -> bool:
    return sql.lstrip().upper().startswith("CREATE TABLE")


def _is_own(name: str) -> bool:
    """Whether SQLite itself does not create a table or index."""
    return not name.startswith("sqlite_")


def read_version(pages: Pages) -> int | None:
    """Read the schema version of a store.

    Args:
        pages: The database.

    Returns:
        The version; None if it is not readable.
    """
    for one in read_definitions(pages):
        for page in walk(pages, one.root) if one.name == "meta" else ():
            for row in read_rows(pages, page.number, page.node) if page.node else ():
                match row.values if row else ():
                    case ("schema_version", str(version)) if version.isdecimal():
                        return int(version)
    return None


class _Salvage:
    """One copy of a damaged database."""

    def __init__(
        self,
        pages: Pages,
        target: sqlite3.Connection,
        tables: Mapping[str, TableShape],
        checks: Mapping[str, Check],
        left_out: Collection[str],
        advance: Advance,
    ) -> None:
        self._pages, self._target, self._tables, self._advance = pages, target, tables, advance
        self._checks, self._left_out = checks, left_out
        self._found = bytearray(pages.count + 1)
        self._found[0] = 1
        self._rows: Counter[str] = Counter()
        self._damaged_rows: Counter[str] = Counter()
        self._damaged_pages: Counter[str] = Counter()
        self._last_numbers: dict[str, int] = {}

    def copy(self, definitions: Sequence[Definition], lost: Sequence[str]) -> Salvaged:
        """Copy the rows of all tables, then those of pages that no table leads to."""
        for page in walk(self._pages, SCHEMA_ROOT):
            self._found[page.number] = 1
        for one in definitions:
            if one.kind == "table" and one.name in self._tables:
                for page in walk(self._pages, one.root):
                    self._copy_page(page, self._tables[one.name])
            elif one.kind == "index":
                self._pass_by_index(one)
            elif one.name == _SEQUENCE:
                self._read_last_numbers(one)
        unknown = sum(self._copy_lost(page) for page in lost_pages(self._pages, self._found))
        self._set_last_numbers()
        tables = {
            name: SalvagedTable(self._rows[name], self._damaged_rows[name], self._damaged_pages[name])
            for name in self._tables
        }
        return Salvaged(tables, self._pages.missing, unknown, self._pages.damaged_frames, lost)

    def _copy_page(self, page: Page, shape: TableShape) -> None:
        """Copy the rows of a page, unless it belongs to another table, as after a damaged reference to it."""
        self._advance(1)
        if page.node is None:
            self._damaged_pages[shape.name] += shape.name not in self._left_out
            self._found[page.number] = 1
            return
        rows = list(read_rows(self._pages, page.number, page.node))
        sound = self._sound_rows(rows, shape)
        if sound or not rows:
            self._found[page.number] = 1
        if shape.name in self._left_out:
            return
        self._rows[shape.name] += _insert(self._target, shape, sound)
        self._damaged_rows[shape.name] += len(rows) - len(sound)
        self._damaged_pages[shape.name] += page.node.damaged

    def _copy_lost(self, page: Page) -> bool:
        """Copy a page that no table leads to; True if its table is unknown."""
        assert page.node is not None
        rows = list(read_rows(self._pages, page.number, page.node))
        sizes = {name: len(self._sound_rows(rows, shape)) for name, shape in self._tables.items()}
        best = max(sizes, key=sizes.__getitem__, default="")
        if not best or not sizes[best] or list(sizes.values()).count(sizes[best]) > 1:
            return page.node.kind == TABLE_LEAF
        self._copy_page(page, self._tables[best])
        return False

    def _sound_rows(self, rows: Sequence[Row | None], shape: TableShape) -> list[dict[str, Value]]:
        """The rows of a table whose content is sound, with the names of their columns."""
        check = self._checks.get(shape.name)
        sound: list[dict[str, Value]] = []
        for row in rows:
            # Of the check: the content cannot be decoded, or is of another type.
            with suppress(ValueError, TypeError, LookupError, OverflowError):
                named = shape.named(row) if row is not None else None
                if named is not None and (check is None or check(named)):
                    sound.append(named)
        return sound

    def _pass_by_index(self, index: Definition) -> None:
        for page in walk(self._pages, index.root):
            if page.node is not None and page.node.kind in (INDEX_LEAF, INDEX_INTERIOR):
                self._found[page.number] = 1

    def _read_last_numbers(self, definition: Definition) -> None:
        for page in walk(self._pages, definition.root):
            for row in read_rows(self._pages, page.number, page.node) if page.node else ():
                match row.values if row else ():
                    case (str(name), int(last)) if name in self._tables:
                        self._found[page.number] = 1
                        self._last_numbers[name] = last

    def _set_last_numbers(self) -> None:
        """Numbers of rows that were deleted are not given again."""
        for name, last in self._last_numbers.items():
            found = self._target.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (name,)).fetchone()
            if found is None or found[0] < last:
                self._target.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
                self._target.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, last))


def _insert(target: sqlite3.Connection, shape: TableShape, rows: Sequence[Mapping[str, Value]]) -> int:
    """Insert rows that are not there yet; returns how many."""
    before = target.total_changes
    for row in rows:
        columns, marks = ", ".join(map(_quoted, row)), ", ".join("?" * len(row))
        target.execute(
            f"INSERT OR IGNORE INTO {_quoted(shape.name)} ({columns}) VALUES ({marks})", list(row.values())
        )
    return target.total_changes - before


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
