"""Lists for people: a table with a line for each thing to be marked, and the marks read back.

A list is CSV: `mark` (empty until somebody fills it in), `by` (whose mark it is), `remark`, `key` (what tells
the thing again, whatever became of the line), and behind them what people need to see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType

from sightline.errors import UserError, did_you_mean
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.tables import csv_bytes, escape_formula, read_table, table_rows

COLUMNS = ("mark", "by", "remark", "key")
ERRORS = "errors"
"""A column behind them, for what is wrong with a thing, where a list asks for that."""


class MarkWords(NamedTuple):
    """The two words of a mark."""

    yes: str
    no: str


class Mark(Struct, frozen=True):
    """What one person said of one thing; `errors` are those that the person named, where the list asks."""

    yes: bool
    by: str
    remark: str = ""
    errors: tuple[str, ...] | UnsetType = UNSET


class AcceptanceRule(Struct, frozen=True):
    """When people have decided: `needed` marks for it, of `of`; the majority where both are 0."""

    needed: int = 0
    of: int = 0

    @property
    def text(self) -> str:
        """The rule as it is written."""
        return f"{self.needed}/{self.of}" if self.of else "majority"

    def decide(self, marks: Sequence[Mark]) -> bool | None:
        """Whether it is accepted; None where that is open: nobody said anything, a tie, marks to come.

        >>> yes, no = Mark(True, "a"), Mark(False, "b")
        >>> AcceptanceRule().decide([yes, no])
        >>> AcceptanceRule(4, 5).decide([no, no])
        False
        """
        votes = Counter(mark.yes for mark in marks)
        if not self.of:
            return None if votes[True] == votes[False] else votes[True] > votes[False]
        if votes[True] >= self.needed:
            return True
        return False if votes[False] > self.of - self.needed else None


def rule_of(text: str | None) -> AcceptanceRule:
    """The rule that a text such as '4/5' stands for, the majority for None. UserError where it is none."""
    if text is None:
        return AcceptanceRule()
    needed, _, of = text.partition("/")
    if needed.isdecimal() and of.isdecimal() and 2 * int(needed) > int(of) >= int(needed):
        return AcceptanceRule(int(needed), int(of))
    raise UserError(f"--accept {text} is no rule", expected="such as 4/5: more than half of those who mark")


def write_list(path: Path, things: Mapping[str, Mapping[str, str]]) -> None:
    """Write a list of things by key, with what is shown of each; all things show the same columns.

    EnvironmentFailedError where the disk refuses.
    """
    shown = next(iter(things.values()), {})
    rows = (["", "", "", key, *map(escape_formula, seen.values())] for key, seen in things.items())
    write_atomically(path, [csv_bytes([[*COLUMNS, *shown], *rows])])


def read_marks(
    paths: Sequence[Path], wording: MarkWords, errors: Sequence[str] | None = None
) -> dict[str, list[Mark]]:
    """The marks on each thing by its key; of things that nobody has marked there are none.

    Whoever left `by` empty is named as the file; case and blanks make no other name. `errors` are those that
    may stand in the column so called, any where there are none; None where the lists do not ask. Raises
    UserError that names file and line for a mark that is none of the two words, an error that is none or
    stands without a mark, for a person who said both of one thing, and for two nameless lists of one name.
    """
    found: dict[str, dict[str, Mark]] = defaultdict(dict)
    humans = AnnotatorNames()
    for path in paths:
        table = read_table(read_bytes(path), path)
        for column in ("mark", "key"):
            if column not in table.header:
                raise UserError("lacks a column", file=path, field=column, expected=", ".join(COLUMNS))
        for where, row in table_rows(table, path):
            said = row["mark"].strip().casefold()
            named = UNSET if errors is None else _errors(row.get(ERRORS, ""), errors, path, where)
            if not said and named:
                raise UserError(
                    "names an error of what is not marked",
                    file=path,
                    record=where,
                    field="mark",
                    expected=f"'{wording.yes}' or '{wording.no}'",
                )
            if not said:
                continue
            if said not in wording:
                expected = f"'{wording.yes}', '{wording.no}' or nothing"
                raise UserError(
                    "is no mark", file=path, record=where, field="mark", found=row["mark"], expected=expected
                )
            by = humans.whose(row, path, where)
            mark = Mark(said == wording.yes, by, row.get("remark", "").strip(), named)
            if found[row["key"]].setdefault(by, mark).yes != mark.yes:
                raise UserError(
                    f"'{by}' has said both of one thing",
                    file=path,
                    record=where,
                    field="mark",
                    found=row["mark"],
                    expected="one mark a person",
                )
    return {key: list(by_human.values()) for key, by_human in found.items()}


def bare(name: str) -> str:
    """What tells a person's name again, however it is spelt: without case, blanks alike.

    >>> bare(" Anna  B. ") == bare("anna b.")
    True
    """
    return " ".join(name.split()).casefold()


class AnnotatorNames:
    """The people who filled in lists that are read together; one is called as the first of them spells it."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._nameless: dict[str, Path] = {}

    def whose(self, row: Mapping[str, str], path: Path, where: str) -> str:
        """Who filled in a line: the name in `by`, else that of the file.

        Raises UserError where two files without names have one name: what two people said would be taken for
        one's.
        """
        by = " ".join(row.get("by", "").split())
        if by:
            return self._names.setdefault(bare(by), by)
        name = bare(path.stem)
        other = self._nameless.setdefault(name, path)
        if other.resolve() != path.resolve():
            raise UserError(
                f"does not say whose it is, and {other} has the same name of file",
                file=path,
                record=where,
                field="by",
                expected="a name in by",
            )
        return self._names.setdefault(name, path.stem)


def _errors(cell: str, known: Sequence[str], path: Path, where: str) -> tuple[str, ...]:
    """The errors in a cell, commas or semicolons between them, each once."""
    named = (" ".join(part.split()).casefold() for part in cell.replace(";", ",").split(","))
    found = tuple(dict.fromkeys(name for name in named if name))
    for name in found:
        if known and name not in known:
            raise UserError(
                f"is no error{did_you_mean(name, known)}",
                file=path,
                record=where,
                field=ERRORS,
                found=name,
                expected=f"some of: {', '.join(known)}",
            )
    return found
