"""Tables as records: workbooks (xlsx), and text with tabs or commas between the cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

from sightline.errors import UserError
from sightline.formats.files import Records

LONGEST_CELL = 2**31 - 1
"""The csv module's own limit, 131,072 characters, is less than what a reasoning model writes."""


_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""How a formula begins, and what only looks like one behind apostrophes."""


class RawTable(NamedTuple):
    """The first line of a table, and the numbered lines below it, read as they are asked for."""

    header: list[str]
    lines: Iterator[tuple[int, list[str]]]


def read_table(content: bytes, path: Path) -> RawTable:
    """The table in a file; a workbook's is its first sheet and needs the extra `table`.

    UserError where the file is no table that can be read.
    """
    lines = _workbook(content, path) if content.startswith(b"PK\x03\x04") else _delimited(content, path)
    _, header = next(lines, (1, []))
    return RawTable(header, lines)


def table_rows(table: RawTable, path: Path) -> Records:
    """The lines as records by column; UserError where a line has not the header's cells."""
    rows: Records = []
    for number, cells in table.lines:
        if len(cells) != len(table.header):
            raise UserError(
                "has another number of cells than the header",
                file=path,
                record=f"line {number}",
                found=len(cells),
                expected=f"{len(table.header)} cells; is the file cut off?",
            )
        rows.append((f"line {number}", dict(zip(table.header, cells, strict=True))))
    return rows


def csv_bytes(rows: Iterable[Sequence[str]]) -> bytes:
    """A table as CSV, the header its first row; lines end in a line break alone."""
    stream = io.StringIO(newline="")
    # The writer quotes what its line terminator holds: a lone carriage return would end the line for readers.
    writer = csv.writer(stream, lineterminator="\r\n")
    lines = []
    for row in rows:
        writer.writerow(row)
        lines.append(stream.getvalue().removesuffix("\r\n"))
        stream.seek(0)
        stream.truncate()
    return "".join(f"{line}\n" for line in lines).encode()


def escape_formula(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula: what is shown may come from a model, or off the web.

    >>> escape_formula("=1+1"), escape_formula("'tis"), unescape_formula(escape_formula("'=1"))
    ("'=1+1", "'tis", "'=1")
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """The cell of which `escape_formula` made this one."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _workbook(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        from openpyxl import load_workbook
    except ImportError:
        message = "an xlsx table needs openpyxl, which is not installed"
        raise UserError(message, file=path, expected="pip install 'sightline[table]'") from None
    try:
        sheet = load_workbook(io.BytesIO(content), read_only=True).worksheets[0]
        lines = [[_text(cell) for cell in line] for line in sheet.iter_rows(values_only=True)]
    except (BadZipFile, KeyError, IndexError, EOFError) as error:
        raise UserError("the workbook is broken or cut off", file=path, found=str(error)) from None
    # Cells at the end of a line are not stored where they are empty.
    width = max((len(line) for line in lines), default=0)
    padded = ([*line, *[""] * (width - len(line))] for line in lines)
    return ((number, line) for number, line in enumerate(padded, 1) if any(line))


def _text(cell: object) -> str:
    # Spreadsheets keep an answer such as 3 as a number, and an empty one as nothing. A formula stays the
    # text that it is: writers take an answer that starts with '=' for one.
    return "" if cell is None else str(cell)


def _delimited(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UserError("is neither a workbook nor UTF-8 text", file=path, found=error.reason) from None
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        number = reader.line_num + 1
        try:
            with _long_cells():
                cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"line {number}"
            expected = "a whole table; is the file cut off?"
            raise UserError(f"breaks off: {error}", file=path, record=where, expected=expected) from None
        if cells:
            yield number, cells


@contextmanager
def _long_cells() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)
