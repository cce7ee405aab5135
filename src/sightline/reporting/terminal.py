"""Report tables in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import IO, TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sightline.reporting.report_table import Cell, Column, ReportTable, visible_table
from sightline.reporting.table_text import parts

if TYPE_CHECKING:
    from rich.table import Table as Grid

LONGEST_WORD, SHORTEST_WORD = 18, 8
"""Words longer than the first may be broken; in a table that is still too wide, words longer than the
second."""


def show(tables: Iterable[ReportTable], file: IO[str] | None = None, width: int | None = None) -> None:
    """Print tables and their notes.

    A table that is too wide wraps its texts, then moves intervals and differences below their values, then
    is split into several. It never cuts a number.

    Args:
        tables: The tables.
        file: The output, in colour if it supports colour; None is standard output.
        width: The width in characters; None asks the terminal.
    """
    from rich.padding import Padding
    from rich.text import Text

    from sightline.reporting.console import Console

    console = Console(file=file, width=width)
    available = console.width
    for table in (part for whole in tables for part in _within(visible_table(whole), available)):
        wide = _layout(table, narrow=False)
        columns = wide if _least(wide) <= available else _layout(table, narrow=True)
        console.print(Text(table.title, style="bold"))
        console.width = max(available, _least(columns, SHORTEST_WORD))
        console.print(_grid(_hyphenated(columns, console.width), _groups(table)))
        console.width = available
        for note in ("", *table.notes):
            console.print(Padding(Text(note, style="dim"), (0, 0, 0, 2)))
        console.print()


def _within(table: ReportTable, width: int) -> list[ReportTable]:
    """The table, split if it is too wide even with broken words."""
    too_wide = _least(_layout(table, narrow=True), SHORTEST_WORD) > width
    return fitted(table, width) if too_wide else [table]


def fitted(table: ReportTable, width: int) -> list[ReportTable]:
    """Split a table into tables of a limited width, as far as possible.

    Args:
        table: The table.
        width: The width in characters.

    Returns:
        The tables; each begins with the text columns, and the columns under one value stay together if
        they fit.
    """
    text_columns = sum(column.kind == "text" for column in table.columns)
    numbers = range(text_columns, len(table.columns))
    parts: list[list[int]] = [[]]
    for _, block in groupby(numbers, lambda number: table.columns[number].head.split("\n")[:-1]):
        whole_block = list(block)
        fits = least_width(_select_columns(table, text_columns, whole_block)) <= width
        for piece in [whole_block] if fits else [[number] for number in whole_block]:
            extended = _select_columns(table, text_columns, [*parts[-1], *piece])
            if parts[-1] and least_width(extended) > width:
                parts.append([])
            parts[-1] += piece
    if len(parts) == 1:
        return [table]
    first, *middle, last = [_select_columns(table, text_columns, part) for part in parts]
    continued = [*middle, replace(last, notes=table.notes)]
    return [first, *(replace(part, title=f"{part.title} (continued)") for part in continued)]


def least_width(table: ReportTable) -> int:
    """The width below which the table would break names.

    Args:
        table: The table.

    Returns:
        The width in characters.
    """
    return _least(_layout(table, narrow=True))


def aligned(cells: Sequence[tuple[str, ...]], between: str = " ") -> list[str]:
    """Align the parts of number cells, part below part and digit below digit.

    Args:
        cells: The parts of each cell.
        between: The text between two parts.

    Returns:
        One text per cell, all of one width.

    >>> aligned([("9.1*", "(-0.3)"), ("32.3", "(+10.0)"), ()])
    [' 9.1*  (-0.3)', '32.3  (+10.0)', '             ']
    """
    count = max(map(len, cells), default=0)
    columns = [_flush([cell[nth] if nth < len(cell) else "" for cell in cells]) for nth in range(count)]
    return [between.join(texts) for texts in zip(*columns, strict=True)] if count else [""] * len(cells)


class _Texts(Struct, frozen=True):
    """A column as it is printed: heading, cells of one or several lines, and the least width."""

    head: str
    cells: list[str]
    least: int
    wraps: bool = False
    indent: int = 0


def _groups(table: ReportTable) -> list[str]:
    """The first cell of each row if rows share it, to print it once above them; otherwise an empty list."""
    names = [str(row[0]) for row in table.rows]
    return names if len(set(names)) < len(names) else []


def _layout(table: ReportTable, narrow: bool) -> list[_Texts]:
    """The columns as texts, without the one that becomes the headings of groups."""
    first = 1 if _groups(table) else 0
    return [
        _number_column(column.head, [parts(row[nth], column) for row in table.rows], narrow)
        if column.kind != "text"
        else _text_column(column, [row[nth] for row in table.rows], indent=2 if nth == first == 1 else 0)
        for nth, column in enumerate(table.columns)
        if nth >= first
    ]


def _text_column(column: Column, cells: Sequence[Cell], indent: int) -> _Texts:
    texts = [str(cell or "") for cell in cells]
    word = max((len(word) for text in (column.head, *texts) for word in text.split()), default=0)
    return _Texts(column.head, texts, word + indent, wraps=True, indent=indent)


def _number_column(head: str, cells: Sequence[tuple[str, ...]], narrow: bool) -> _Texts:
    """Every line has the same width, so that digits align; in a narrow table parts are on lines of their
    own."""
    texts = aligned(cells, "\n" if narrow else " ")
    if narrow:
        room = max(8, _width(texts))
        head = "\n".join(_folded(line, room) for line in head.split("\n"))
    width = _width([head, *texts])
    head, *texts = ("\n".join(line.rjust(width) for line in text.split("\n")) for text in (head, *texts))
    return _Texts(head, texts, width)


def _folded(line: str, room: int) -> str:
    """A line in several, broken at spaces and behind slashes."""
    broken = textwrap.fill(
        line.replace("/", "/\t"),
        room,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )
    return broken.replace("\t", "")


def _flush(texts: Sequence[str]) -> list[str]:
    """Right-aligned texts of one width; a '*' hangs behind the digits."""
    hanging = any(text.endswith("*") for text in texts)
    texts = [text if text.endswith("*") or not hanging else f"{text} " for text in texts]
    width = _width(texts)
    return [text.rjust(width) for text in texts]


def _width(texts: Sequence[str]) -> int:
    return max((len(line) for text in texts for line in text.split("\n")), default=0)


def _least(columns: Sequence[_Texts], word: int = LONGEST_WORD) -> int:
    """The least width of the table, with two characters behind each column."""
    return sum(
        (min(column.least, word + column.indent) if column.wraps else column.least) + 2 for column in columns
    )


def _hyphenated(columns: Sequence[_Texts], room: int) -> list[_Texts]:
    """The columns with names broken behind hyphens if one column wraps; unchanged if several do."""
    wrapping = [column for column in columns if column.wraps]
    if len(wrapping) != 1:
        return list(columns)
    (one,) = wrapping
    width = room - sum(column.least + 2 for column in columns if column is not one) - 1 - one.indent
    cells = ["\n".join(textwrap.fill(line, width) for line in text.split("\n")) for text in one.cells]
    return [replace(one, cells=cells) if column is one else column for column in columns]


def _grid(columns: Sequence[_Texts], groups: Sequence[str]) -> Grid:
    from rich.box import SIMPLE_HEAD
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        head = Padding(Text(column.head), (0, 0, 0, column.indent))
        least = min(column.least, SHORTEST_WORD + column.indent) if column.wraps else column.least
        grid.add_column(head, no_wrap=not column.wraps, overflow="fold", min_width=least)
    first_rows = {name: nth for nth, name in reversed(list(enumerate(groups)))}
    for nth in range(len(columns[0].cells)):
        if groups and first_rows[groups[nth]] == nth:
            grid.add_row(Text(groups[nth], style="bold"))
        grid.add_row(*(Padding(Text(column.cells[nth]), (0, 0, 0, column.indent)) for column in columns))
    return grid


def _select_columns(table: ReportTable, text_columns: int, chosen: Sequence[int]) -> ReportTable:
    """The table with its text columns and the chosen ones, without rows that are empty there."""
    columns = tuple(table.columns[number] for number in (*range(text_columns), *chosen))
    rows = tuple(
        (*row[:text_columns], *(row[number] for number in chosen))
        for row in table.rows
        if any(row[number] is not None for number in chosen)
    )
    return ReportTable(table.title, columns, rows)
