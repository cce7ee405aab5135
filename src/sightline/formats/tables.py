"""Reading and writing tables: workbooks (xlsx), and text with tabs or commas between the cells."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sightline.errors import UserError, needs_extra
from sightline.text import Records, cell_text

LONGEST_CELL = 2**31 - 1
"""The default of the csv module, 131,072 characters, is too small for the responses of reasoning models."""


class RawTable(NamedTuple):
    """The header of a table, and its numbered lines, which are read on demand."""

    header: list[str]
    lines: Iterator[tuple[int, list[str]]]


def read_table(content: bytes, path: Path, *, strict: bool = True) -> RawTable:
    """Read a workbook or delimited text; unless `strict`, a lone quotation mark in a cell is no error."""
    lines = _workbook(content, path) if is_workbook(content) else _delimited(content, path, strict=strict)
    _, header = next(lines, (1, []))
    twice = next((name for name in header if name.strip() and header.count(name) > 1), None)
    if twice is not None:
        raise UserError("occurs twice in the header", file=path, field=twice, expected="each column once")
    return RawTable(header, lines)


def is_workbook(content: bytes) -> bool:
    return content.startswith(b"PK\x03\x04")


def table_rows(table: RawTable, path: Path) -> Records:
    rows: Records = []
    for number, cells in table.lines:
        if len(cells) != len(table.header):
            raise UserError(
                "has more or fewer cells than the header",
                file=path,
                record=f"line {number}",
                found=len(cells),
                expected=f"{len(table.header)} cells; is the file truncated?",
            )
        rows.append((f"line {number}", dict(zip(table.header, cells, strict=True))))
    return rows


PARQUET = b"PAR1"
"""The first bytes of a Parquet file."""


def parquet_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The numbered rows of a Parquet file, part by part: its images may be larger than the memory."""
    with needs_extra("table", "a Parquet file needs pyarrow, which is not installed", path):
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    number = 0
    try:
        # With pre_buffer, the whole file stays in memory until the last row.
        for batch in ParquetFile(path, pre_buffer=False).iter_batches(batch_size=16):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except (ArrowException, OSError) as error:
        raise UserError("the Parquet file is broken or truncated", file=path, found=str(error)) from None


def csv_bytes(rows: Iterable[Sequence[str]]) -> bytes:
    stream = io.StringIO(newline="")
    # The writer quotes cells with a character of its line terminator. A lone carriage return must be quoted.
    writer = csv.writer(stream, lineterminator="\r\n")
    lines = []
    for row in rows:
        writer.writerow(row)
        lines.append(stream.getvalue().removesuffix("\r\n"))
        stream.seek(0)
        stream.truncate()
    return "".join(f"{line}\n" for line in lines).encode()


def _workbook(content: bytes, path: Path) -> Iterator[tuple[int, list[str]]]:
    with needs_extra("table", "an xlsx table needs openpyxl, which is not installed", path):
        from openpyxl import load_workbook
    try:
        sheet = load_workbook(io.BytesIO(content), read_only=True).worksheets[0]
        lines = [
            [unescape_cell(cell_text(cell)) for cell in line] for line in sheet.iter_rows(values_only=True)
        ]
    # What openpyxl and the parsers below it raise depends on the place of the damage.
    except Exception as error:
        found = str(error) or type(error).__name__
        raise UserError("the workbook is broken or truncated", file=path, found=found) from None
    # Workbooks do not store empty cells at the end of a line.
    width = max((len(line) for line in lines), default=0)
    padded = ([*line, *[""] * (width - len(line))] for line in lines)
    return ((number, line) for number, line in enumerate(padded, 1) if any(line))


_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")


def unescape_cell(text: str) -> str:
    r"""Decode the characters that workbooks write as `_xHHHH_`, an UTF-16 unit each (ECMA-376, ST_Xstring).

    >>> unescape_cell("B_x000D_"), unescape_cell("_x005F_x000D_"), unescape_cell("_xD83D__xDE00_")
    ('B\r', '_x000D_', '😀')
    """
    if "_x" not in text:
        return text
    units = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _delimited(content: bytes, path: Path, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise UserError(
            "is neither a workbook nor UTF-8 text",
            file=path,
            found=error.reason,
            expected="the table saved as 'CSV UTF-8', or as xlsx",
        ) from None
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=strict)
    while True:
        number = reader.line_num + 1
        try:
            with _long_cells():
                cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            where = f"line {number}"
            expected = "a complete table; is the file truncated?"
            raise UserError(
                f"is truncated or malformed: {error}", file=path, record=where, expected=expected
            ) from None
        if cells:
            yield number, cells


@contextmanager
def _long_cells() -> Iterator[None]:
    before = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# -- Writing workbooks (xlsx) of text cells

LONGEST_WORKBOOK_CELL = 32_767
"""The most characters of a cell."""

_NOT_ALLOWED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_TO_ESCAPE = re.compile("\r|_(?=x[0-9A-Fa-f]{4}_)")


def workbook_bytes(rows: Sequence[Sequence[str]]) -> bytes:
    """Encode a table as a workbook. Each cell is text: a spreadsheet changes no key and runs no formula."""
    with needs_extra("table", "an xlsx table needs openpyxl, which is not installed"):
        from openpyxl import Workbook
        from openpyxl.cell import WriteOnlyCell
    book = Workbook(write_only=True)
    sheet = book.create_sheet("table")
    for row in rows:
        cells = []
        for text in row:
            cell = WriteOnlyCell(sheet, value=_cell(text))
            cell.data_type = "s"
            cell.number_format = "@"
            cells.append(cell)
        sheet.append(cells)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def _cell(text: str) -> str:
    text = _NOT_ALLOWED.sub("\ufffd", text)
    text = text if len(text) <= LONGEST_WORKBOOK_CELL else f"{text[: LONGEST_WORKBOOK_CELL - 1]}…"
    # XML reads a carriage return as a line feed, and spreadsheets read `_x0041_` as an A.
    return _TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):04X}_", text)
