"""Cells are escaped so that no spreadsheet runs them as formulas, and are read back unchanged."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.text import escape_formula, unescape_formula

CELLS = st.text(st.one_of(st.sampled_from("'=+-@\t\r\n\", a"), st.characters(codec="utf-8")), max_size=9)


@given(st.lists(CELLS, min_size=2, max_size=2))
@example(["'=1", "'"])
def test_escaped_cells_are_read_back_unchanged(cells: list[str]) -> None:
    path = Path("form.csv")
    written = csv_bytes([["one", "other"], [*map(escape_formula, cells)]])
    ((_, row),) = table_rows(read_table(written, path), path)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())
    assert [unescape_formula(cell) for cell in row.values()] == cells
