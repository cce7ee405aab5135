"""Report tables and paragraphs in a terminal, and in files and pipes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import IO

from msgspec.structs import replace

from sightline.output import print_line
from sightline.reporting.grid import (
    GAP,
    Line,
    Page,
    TextColumn,
    grid_lines,
    least_table_width,
    stacked_lines,
    text_columns,
)
from sightline.reporting.report_table import ReportTable, visible_table
from sightline.reporting.wrapping import wrapped
from sightline.secret_text import hide_secrets
from sightline.visible import visible

_STYLE_VARIABLES = ("FORCE_COLOR", "TTY_COMPATIBLE")
"""The variables by which rich styles text that goes to no terminal."""

_WIDTH_OF_FILES = 80
"""The width of lines where no standard stream is a terminal."""


def show(tables: Iterable[ReportTable], file: IO[str] | None = None, width: int | None = None) -> None:
    """Print tables and their notes.

    A table that is too wide wraps its texts between words, then moves intervals and differences below their
    values, then is split into several. Words and numbers are never broken. In a terminal, addresses and very
    long words lose their middle where they do not fit, and the rows of a table that is still too wide are
    printed one below the other. Elsewhere every text is whole, and such a table is wider.

    Args:
        file: The output, in colour if it supports colour; None is standard output.
        width: The width in characters; None asks the terminal.
    """
    out = file or sys.stdout
    if out.isatty() or any(os.environ.get(name) for name in _STYLE_VARIABLES):
        _show_with_styles(tables, file, width)
        return
    # Files and pipes do without rich, whose import takes longer than writing the tables.
    page = Page(width or _terminal_width(), shorten=False)
    for table in map(visible_table, tables):
        out.writelines(f"{line.text}\n" for line in _table_lines(table, page))


def show_paragraphs(paragraphs: Iterable[tuple[str, int]]) -> None:
    """Print paragraphs on standard output: a line each; in a terminal, wrapped between words."""
    in_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns
    for text, indent in paragraphs:
        whole = hide_secrets(visible(text))
        for line in wrapped(whole, width, shorten=True, indent=indent) if in_terminal else [whole]:
            print_line(line)


def fitted(table: ReportTable, page: Page) -> list[ReportTable]:
    """Split a table that is too wide, if each of its parts fits."""
    if _layout(table, page):
        return [table]
    parts = _split(table, page)
    return parts if all(_layout(part, page) for part in parts) else [table]


def _show_with_styles(tables: Iterable[ReportTable], file: IO[str] | None, width: int | None) -> None:
    from rich.text import Text

    from sightline.reporting.console import Console

    console = Console(file=file, width=width)
    page = Page(console.width, shorten=console.file.isatty())
    for table in map(visible_table, tables):
        for line in _table_lines(table, page):
            console.print(Text(line.text, line.style), soft_wrap=True)


def _terminal_width() -> int:
    """The width that COLUMNS gives, or that of the terminal of any standard stream: a pager may be there."""
    if (columns := os.environ.get("COLUMNS", "")).isdigit():
        return int(columns) or _WIDTH_OF_FILES
    for stream in (0, 1, 2):
        with suppress(OSError):
            return os.get_terminal_size(stream).columns or _WIDTH_OF_FILES
    return _WIDTH_OF_FILES


def _table_lines(table: ReportTable, page: Page) -> Iterator[Line]:
    for part in fitted(table, page):
        yield from (Line(line, "bold") for line in wrapped(part.title, page.width, shorten=page.shorten))
        columns = _layout(part, page)
        if columns is None and page.shorten:
            yield from stacked_lines(part, page)
        else:
            yield from grid_lines(part, columns or text_columns(part, page, narrow=True), page)
        yield Line("")
        for note in part.notes:
            for line in wrapped(note, page.width - len(GAP), shorten=page.shorten):
                yield Line(GAP + line, "dim")
        yield Line("")


def _layout(table: ReportTable, page: Page) -> list[TextColumn] | None:
    """The columns of the table as wide as they fit; None if they do not."""
    for narrow in (False, True):
        columns = text_columns(table, page, narrow=narrow)
        if least_table_width(columns) <= page.width:
            return columns
    return None


def _split(table: ReportTable, page: Page) -> list[ReportTable]:
    """The table in parts: as many of the columns of numbers as fit, in each."""
    texts = sum(column.kind == "text" for column in table.columns)
    numbers = range(texts, len(table.columns))
    parts: list[list[int]] = [[]]
    for _, block in groupby(numbers, lambda number: table.columns[number].head.split("\n")[:-1]):
        whole_block = list(block)
        fits = _layout(_select_columns(table, texts, whole_block), page)
        for piece in [whole_block] if fits else [[number] for number in whole_block]:
            if parts[-1] and not _layout(_select_columns(table, texts, [*parts[-1], *piece]), page):
                parts.append([])
            parts[-1] += piece
    if len(parts) == 1:
        return [table]
    first, *middle, last = [_select_columns(table, texts, part) for part in parts]
    continued = [*middle, replace(last, notes=table.notes)]
    return [first, *(replace(part, title=f"{part.title} (continued)") for part in continued)]


def _select_columns(table: ReportTable, texts: int, chosen: Sequence[int]) -> ReportTable:
    columns = tuple(table.columns[number] for number in (*range(texts), *chosen))
    rows = tuple(
        (*row[:texts], *(row[number] for number in chosen))
        for row in table.rows
        if any(row[number] is not None for number in chosen)
    )
    return ReportTable(table.title, columns, rows)
