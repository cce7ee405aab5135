"""The columns of a report table as lines of text: how wide each column is, and where texts are broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec import Struct

from sightline.reporting.report_table import Cell, Column, ReportTable
from sightline.reporting.table_text import parts
from sightline.reporting.wrapping import cells_of, least_width, longest_word, wrapped

GAP = "  "
"""What separates two columns."""

NARROWEST_HEAD = 8
"""Headings of numbers are broken into lines of at least this width."""


class Page(NamedTuple):
    """Where a table is printed."""

    width: int
    shorten: bool


class Line(NamedTuple):
    """A line and its style."""

    text: str
    style: str = ""


class TextColumn(Struct, frozen=True):
    """A column as it is printed."""

    head: str
    cells: Sequence[str]
    least: int
    whole: int
    most: int
    is_text: bool = False
    indent: int = 0
    hanging: int = 0


def text_columns(table: ReportTable, page: Page, *, narrow: bool) -> list[TextColumn]:
    """The columns of a table, without the one that becomes the headings of groups."""
    first = 1 if _groups(table) else 0
    return [
        _number_column(column.head, [parts(row[nth], column) for row in table.rows], page, narrow)
        if column.kind != "text"
        else _text_column(column, [row[nth] for row in table.rows], page, nth == first, 2 * first)
        for nth, column in enumerate(table.columns)
        if nth >= first
    ]


def least_table_width(columns: Sequence[TextColumn]) -> int:
    return sum(column.least for column in columns) + len(GAP) * (len(columns) - 1)


def grid_lines(table: ReportTable, columns: Sequence[TextColumn], page: Page) -> Iterator[Line]:
    """The heading and the rows of a table; a first cell that rows share stands once above them."""
    widths = _widths(columns, page.width - len(GAP) * (len(columns) - 1))
    heads = [_lines(one, one.head, width, page) for one, width in zip(columns, widths, strict=True)]
    height = max(map(len, heads))
    for line in _beside([[""] * (height - len(head)) + head for head in heads], widths):
        yield Line(line, "bold")
    yield Line("─" * (sum(widths) + len(GAP) * (len(columns) - 1)))
    groups = _groups(table)
    first_rows = {name: nth for nth, name in reversed(list(enumerate(groups)))}
    for nth in range(len(table.rows)):
        if groups and first_rows[groups[nth]] == nth:
            yield from (Line(line, "bold") for line in wrapped(groups[nth], page.width, shorten=page.shorten))
        cells = [_lines(one, one.cells[nth], width, page) for one, width in zip(columns, widths, strict=True)]
        yield from map(Line, _beside(cells, widths))


def stacked_lines(table: ReportTable, page: Page) -> Iterator[Line]:
    """The rows one below the other, with a line for each cell that is not empty."""
    heads = [column.head.replace("\n", " ") for column in table.columns]
    left = min(max(map(cells_of, heads)), page.width // 2)
    widths = [left, page.width - left - len(GAP)]
    for nth, row in enumerate(table.rows):
        if nth:
            yield Line("")
        for head, column, cell in zip(heads, table.columns, row, strict=True):
            if text := " ".join(parts(cell, column)):
                texts = zip((head, text), widths, strict=True)
                sides = [wrapped(side, width, shorten=page.shorten) for side, width in texts]
                yield from map(Line, _beside(sides, widths))


def aligned(cells: Sequence[tuple[str, ...]], between: str = " ") -> list[str]:
    """Align the parts of number cells, part below part and digit below digit.

    >>> aligned([("9.1*", "(-0.3)"), ("32.3", "(+10.0)"), ()])
    [' 9.1*  (-0.3)', '32.3  (+10.0)', '             ']
    """
    count = max(map(len, cells), default=0)
    columns = [_flush([cell[nth] if nth < len(cell) else "" for cell in cells]) for nth in range(count)]
    return [between.join(texts) for texts in zip(*columns, strict=True)] if count else [""] * len(cells)


def _groups(table: ReportTable) -> list[str]:
    """The first cell of each row if rows share it, to print it once above them; otherwise an empty list."""
    names = [str(row[0]) for row in table.rows]
    return names if len(set(names)) < len(names) and len(table.columns) > 1 else []


def _text_column(
    column: Column, cells: Sequence[Cell], page: Page, names_rows: bool, indent: int
) -> TextColumn:
    """A column of texts; the one that names the rows is indented, and its further lines are so again."""
    texts = [str(cell or "") for cell in cells]
    everything = [column.head, *texts]
    indent = indent if names_rows else 0
    hanging = 2 if names_rows and any(" " in text for text in texts) else 0
    before = indent + hanging
    most = indent + _width(everything)
    return TextColumn(
        column.head,
        texts,
        min(most, before + max(least_width(text, shorten=page.shorten) for text in everything)),
        min(most, before + max(map(longest_word, everything))),
        most,
        is_text=True,
        indent=indent,
        hanging=hanging,
    )


def _number_column(head: str, cells: Sequence[tuple[str, ...]], page: Page, narrow: bool) -> TextColumn:
    """Every line has the same width, so that digits align; in a narrow table parts are on lines of their
    own, and so are the words of the heading."""
    texts = aligned(cells, "\n" if narrow else " ")
    if narrow:
        room = max(NARROWEST_HEAD, _width(texts), least_width(head, shorten=page.shorten))
        head = "\n".join(wrapped(head, room, shorten=page.shorten))
    width = _width([head, *texts])
    head, *texts = ("\n".join(_right(line, width) for line in text.split("\n")) for text in (head, *texts))
    return TextColumn(head, texts, width, width, width)


def _widths(columns: Sequence[TextColumn], room: int) -> list[int]:
    """The width of each column: the least, then what whole words need, then what whole lines need."""
    widths = [column.least for column in columns]
    for goals in ([column.whole for column in columns], [column.most for column in columns]):
        for _ in range(room - sum(widths)):
            below = [nth for nth, goal in enumerate(goals) if widths[nth] < goal]
            if not below:
                break
            widths[min(below, key=widths.__getitem__)] += 1
    return widths


def _lines(column: TextColumn, text: str, width: int, page: Page) -> list[str]:
    """The lines of a cell or heading."""
    if not column.is_text:
        return text.split("\n")
    before = " " * column.indent
    room = width - column.indent
    return [before + line for line in wrapped(text, room, shorten=page.shorten, indent=column.hanging)]


def _beside(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
    """The lines of cells that stand beside each other."""
    for lines in zip_longest(*cells, fillvalue=""):
        padded = (line + " " * (width - cells_of(line)) for line, width in zip(lines, widths, strict=True))
        yield GAP.join(padded).rstrip()


def _flush(texts: Sequence[str]) -> list[str]:
    """Right-aligned texts of one width; a '*' hangs behind the digits."""
    hanging = any(text.endswith("*") for text in texts)
    texts = [text if text.endswith("*") or not hanging else f"{text} " for text in texts]
    width = _width(texts)
    return [_right(text, width) for text in texts]


def _right(line: str, width: int) -> str:
    return " " * (width - cells_of(line)) + line


def _width(texts: Sequence[str]) -> int:
    return max((cells_of(line) for text in texts for line in text.split("\n")), default=0)
