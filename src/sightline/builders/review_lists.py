"""Review lists: CSV tables in which humans mark each line, and the marks that are read back.

A list has the columns `mark` (empty until it is filled in), `by` (the reviewer's name), `remark`, `key`
(which identifies the item by its content, wherever its line is moved), and behind them what the reviewer
needs to see.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.text import for_csv_lines

COLUMNS = ("mark", "by", "remark", "key")


class MarkWords(NamedTuple):
    """The two words that a mark may be."""

    yes: str
    no: str


class Mark(Struct, frozen=True):
    """One reviewer's mark of one item."""

    yes: bool
    by: str
    remark: str = ""


def write_list(path: Path, items: Mapping[str, Mapping[str, str]]) -> None:
    columns = next(iter(items.values()), {})
    rows = (["", "", "", key, *map(for_csv_lines, cells.values())] for key, cells in items.items())
    write_atomically(path, [csv_bytes([[*COLUMNS, *columns], *rows])])


def read_marks(paths: Sequence[Path], words: MarkWords) -> dict[str, list[Mark]]:
    """Read the marks of filled-in lists.

    A reviewer without a name in `by` is named after the file. Names that differ by case or blanks are equal.
    """
    marks: dict[str, dict[str, Mark]] = defaultdict(dict)
    names = AnnotatorNames()
    for path in paths:
        table = read_table(read_bytes(path), path)
        for column in ("mark", "key"):
            if column not in table.header:
                raise UserError("lacks a column", file=path, field=column, expected=", ".join(COLUMNS))
        for where, row in table_rows(table, path):
            word = row["mark"].strip().casefold()
            if not word:
                continue
            if word not in words:
                raise UserError(
                    "is not a mark",
                    file=path,
                    record=where,
                    field="mark",
                    found=row["mark"],
                    expected=f"'{words.yes}', '{words.no}' or nothing",
                )
            by = names.name_of(row, path, where)
            mark = Mark(word == words.yes, by, row.get("remark", "").strip())
            if marks[row["key"]].setdefault(by, mark).yes != mark.yes:
                raise UserError(
                    f"'{by}' has marked one item with both marks",
                    file=path,
                    record=where,
                    field="mark",
                    found=row["mark"],
                    expected="one mark per reviewer",
                )
    return {key: list(by_reviewer.values()) for key, by_reviewer in marks.items()}


def normalised_name(name: str) -> str:
    """Normalise a name for comparison: without case, with single blanks.

    >>> normalised_name(" Anna  B. ") == normalised_name("anna b.")
    True
    """
    return " ".join(name.split()).casefold()


class AnnotatorNames:
    """Names of the humans who filled in several lists, spelt as at their first occurrence."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._nameless: dict[str, Path] = {}

    def name_of(self, row: Mapping[str, str], path: Path, where: str) -> str:
        by = " ".join(row.get("by", "").split())
        if by:
            return self._names.setdefault(normalised_name(by), by)
        name = normalised_name(path.stem)
        other = self._nameless.setdefault(name, path)
        if other.resolve() != path.resolve():
            raise UserError(
                f"has no name in 'by', and {other} has the same file name",
                file=path,
                record=where,
                field="by",
                expected="a name in by",
            )
        return self._names.setdefault(name, path.stem)
