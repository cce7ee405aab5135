"""Writing workbooks (xlsx) of text cells."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

from sightline.errors import needs_extra

LONGEST_CELL = 32_767
"""The most characters of a cell."""

_NOT_ALLOWED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


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
    return text if len(text) <= LONGEST_CELL else f"{text[: LONGEST_CELL - 1]}…"
