"""Lists for people: a table with a line for each thing to be marked, and the marks read back.

A list is CSV: `mark` (empty until somebody fills it in), `by` (whose mark it is), `remark`, `key` (what tells
the thing again, whatever became of the line), and behind them what people need to see.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from sightline.errors import UserError
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.tables import csv_bytes, read_table, table_rows

COLUMNS = ("mark", "by", "remark", "key")


class Wording(NamedTuple):
    """The two words of a mark."""

    yes: str
    no: str


class Mark(Struct, frozen=True):
    """What one person said of one thing."""

    yes: bool
    by: str
    remark: str = ""


class Rule(Struct, frozen=True):
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
        >>> Rule().decide([yes, no]), Rule(4, 5).decide([yes, no]), Rule(4, 5).decide([no, no])
        (None, None, False)
        """
        votes = Counter(mark.yes for mark in marks)
        if not self.of:
            return None if votes[True] == votes[False] else votes[True] > votes[False]
        if votes[True] >= self.needed:
            return True
        return False if votes[False] > self.of - self.needed else None


def rule_of(text: str | None) -> Rule:
    """The rule that a text such as '4/5' stands for, the majority for None. UserError where it is none."""
    if text is None:
        return Rule()
    needed, _, of = text.partition("/")
    if needed.isdecimal() and of.isdecimal() and 2 * int(needed) > int(of) >= int(needed):
        return Rule(int(needed), int(of))
    raise UserError(f"--accept {text} is no rule", expected="such as 4/5: more than half of those who mark")


def write_list(path: Path, things: Mapping[str, Mapping[str, str]]) -> None:
    """Write a list of things by key, with what is shown of each; all things show the same columns.

    SurroundingsError where the disk refuses.
    """
    shown = next(iter(things.values()), {})
    rows = (["", "", "", key, *map(_harmless, seen.values())] for key, seen in things.items())
    write_atomically(path, [csv_bytes([[*COLUMNS, *shown], *rows])])


def read_marks(paths: Sequence[Path], wording: Wording) -> dict[str, list[Mark]]:
    """The marks on each thing by its key; of things that nobody has marked there are none.

    Whoever left `by` empty is named as the file. Raises UserError that names file and line for a mark that is
    none of the two words, and for a person who said both of one thing.
    """
    found: dict[str, dict[str, Mark]] = defaultdict(dict)
    for path in paths:
        table = read_table(read_bytes(path), path)
        for column in ("mark", "key"):
            if column not in table.header:
                raise UserError("lacks a column", file=path, field=column, expected=", ".join(COLUMNS))
        for where, row in table_rows(table, path):
            said = row["mark"].strip().casefold()
            if not said:
                continue
            if said not in wording:
                expected = f"'{wording.yes}', '{wording.no}' or nothing"
                raise UserError(
                    "is no mark", file=path, record=where, field="mark", found=row["mark"], expected=expected
                )
            by = row.get("by", "").strip() or path.stem
            mark = Mark(said == wording.yes, by, row.get("remark", "").strip())
            if found[row["key"]].setdefault(by, mark).yes != mark.yes:
                raise UserError(
                    f"'{by}' has said both of one thing",
                    file=path,
                    record=where,
                    field="mark",
                    found=row["mark"],
                    expected="one mark a person",
                )
    return {key: list(by_person.values()) for key, by_person in found.items()}


def _harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what is shown may come from a model, or off the web."""
    return f"'{cell}" if cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
