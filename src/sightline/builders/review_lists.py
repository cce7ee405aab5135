"""Review lists: CSV tables in which humans mark each line, and the marks that are read back.

A list has the columns `mark` (empty until it is filled in), `by` (the reviewer's name), `remark`, `key`
(which identifies the item by its content, wherever its line is moved), and behind them what the reviewer
needs to see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from sightline.errors import UserError, did_you_mean
from sightline.escaping import for_csv_lines
from sightline.formats.content import read_bytes
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.scoring.majority import majority

COLUMNS = ("mark", "by", "remark", "key")
ERRORS = "errors"
"""An additional column for the errors of an item, in lists that ask for them."""


class MarkWords(NamedTuple):
    """The two words that a mark may be."""

    yes: str
    no: str


class Mark(Struct, frozen=True):
    """One reviewer's mark of one item; `errors` are the errors that the reviewer named, if the list asks."""

    yes: bool
    by: str
    remark: str = ""
    errors: tuple[str, ...] | UnsetType = UNSET


class AcceptanceRule(Struct, frozen=True):
    """When an item is accepted: `needed` of `of` marks are yes; if both are 0, the majority is."""

    needed: int = 0
    of: int = 0

    @property
    def text(self) -> str:
        """The rule as text, such as '4/5' or 'majority'."""
        return f"{self.needed}/{self.of}" if self.of else "majority"

    def decide(self, marks: Sequence[Mark]) -> bool | None:
        """Decide about an item.

        Args:
            marks: The marks of its reviewers.

        Returns:
            Whether it is accepted; None if it is undecided: no marks, a tie, or marks are still missing.

        >>> yes, no = Mark(True, "a"), Mark(False, "b")
        >>> AcceptanceRule().decide([yes, no])
        >>> AcceptanceRule(4, 5).decide([no, no])
        False
        """
        if not self.of:
            return majority(mark.yes for mark in marks)
        votes = Counter(mark.yes for mark in marks)
        if votes[True] >= self.needed:
            return True
        return False if votes[False] > self.of - self.needed else None


def parse_rule(text: str | None) -> AcceptanceRule:
    """Parse the value of `--accept`.

    Args:
        text: Such as '4/5'; None means the majority.

    Returns:
        The rule.

    Raises:
        UserError: The text is not a rule, or needs half of the marks or less.
    """
    if text is None:
        return AcceptanceRule()
    needed, _, of = text.partition("/")
    if needed.isdecimal() and of.isdecimal() and 2 * int(needed) > int(of) >= int(needed):
        return AcceptanceRule(int(needed), int(of))
    raise UserError(f"--accept {text} is not a rule", expected="such as 4/5: more than half of the reviewers")


def write_list(path: Path, items: Mapping[str, Mapping[str, str]]) -> None:
    """Write a review list.

    Args:
        path: The CSV file.
        items: Key of an item -> column -> cell; all items have the same columns.
    """
    columns = next(iter(items.values()), {})
    rows = (["", "", "", key, *map(for_csv_lines, cells.values())] for key, cells in items.items())
    write_atomically(path, [csv_bytes([[*COLUMNS, *columns], *rows])])


def read_marks(
    paths: Sequence[Path], words: MarkWords, errors: Sequence[str] | None = None
) -> dict[str, list[Mark]]:
    """Read the marks of filled-in lists.

    A reviewer without a name in `by` is named after the file. Names that differ by case or blanks are equal.

    Args:
        paths: The lists.
        words: The two words that a mark may be.
        errors: The errors that may be named; any if it is empty. None if the lists do not ask for errors.

    Returns:
        Key of an item -> its marks; items without a mark are absent.

    Raises:
        UserError: A mark or an error is unknown, a line names an error but has no mark, a reviewer marked
            an item with both words, or two lists without names have the same file name.
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
            named = UNSET if errors is None else _errors(row.get(ERRORS, ""), errors, path, where)
            if not word and named:
                raise _wrong_mark("names an error of an unmarked item", row, path, where, words)
            if not word:
                continue
            if word not in words:
                raise _wrong_mark("is not a mark", row, path, where, words)
            by = names.name_of(row, path, where)
            mark = Mark(word == words.yes, by, row.get("remark", "").strip(), named)
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

    Args:
        name: A human's name.

    Returns:
        The normalised name.

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
        """Get the name of the human who filled in a line.

        Args:
            row: The cells of the line.
            path: The list.
            where: The line, such as 'line 3'.

        Returns:
            The name in `by`, or the name of the file if that is empty.

        Raises:
            UserError: Two files without names have the same file name, so that two humans would be mixed up.
        """
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


def _wrong_mark(problem: str, row: Mapping[str, str], path: Path, where: str, words: MarkWords) -> UserError:
    expected = (
        f"'{words.yes}', '{words.no}' or nothing" if row["mark"].strip() else " or ".join(map(repr, words))
    )
    return UserError(
        problem, file=path, record=where, field="mark", found=row["mark"] or None, expected=expected
    )


def _errors(cell: str, allowed: Sequence[str], path: Path, where: str) -> tuple[str, ...]:
    """The errors in a cell, separated by commas or semicolons, each once."""
    named = (" ".join(part.split()).casefold() for part in cell.replace(";", ",").split(","))
    distinct = tuple(dict.fromkeys(name for name in named if name))
    for name in distinct:
        if allowed and name not in allowed:
            raise UserError(
                f"is not an error type{did_you_mean(name, allowed)}",
                file=path,
                record=where,
                field=ERRORS,
                found=name,
                expected=f"some of: {', '.join(allowed)}",
            )
    return distinct
