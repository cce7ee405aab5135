"""Tables: no cell is a formula to a spreadsheet, and what was kept from being one comes back as it was."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from sightline.formats.tables import csv_bytes, escape_formula, read_table, table_rows, unescape_formula

CELLS = st.text(st.one_of(st.sampled_from("'=+-@\t\r\n\", a"), st.characters(codec="utf-8")), max_size=9)


@given(st.lists(CELLS, min_size=2, max_size=2))
@example(["'=1", "'"])
def test_cells_come_back_from_a_table_that_no_spreadsheet_computes(cells: list[str]) -> None:
    path = Path("form.csv")
    written = csv_bytes([["one", "other"], [*map(escape_formula, cells)]])
    ((_, row),) = table_rows(read_table(written, path), path)
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())
    assert [unescape_formula(cell) for cell in row.values()] == cells
