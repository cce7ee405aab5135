"""Report tables in HTML, as a fragment of a page."""

from __future__ import annotations

from collections.abc import Iterable

from sightline.escaping import for_html
from sightline.reporting.report_table import Column, ReportTable
from sightline.reporting.table_text import cell_text


def html(tables: Iterable[ReportTable]) -> str:
    """Tables as HTML: a `table` with its title as caption, and its notes as a list, each."""
    return "".join(f"{line}\n" for table in tables for line in _lines(table))


def _lines(table: ReportTable) -> list[str]:
    heads = "".join(_element("th", column, _head(column)) for column in table.columns)
    rows = [
        "".join(
            _element("td", column, for_html(cell_text(cell, column)))
            for cell, column in zip(row, table.columns, strict=True)
        )
        for row in table.rows
    ]
    notes = [f"<li>{for_html(note)}</li>" for note in table.notes]
    return [
        "<table>",
        f"<caption>{for_html(table.title)}</caption>",
        f"<thead><tr>{heads}</tr></thead>",
        "<tbody>",
        *(f"<tr>{row}</tr>" for row in rows),
        "</tbody>",
        "</table>",
        *(["<ul>", *notes, "</ul>"] if notes else []),
    ]


def _head(column: Column) -> str:
    return "<br>".join(map(for_html, column.head.split("\n")))


def _element(name: str, column: Column, content: str) -> str:
    side = "" if column.kind == "text" else ' style="text-align: right"'
    return f"<{name}{side}>{content}</{name}>"
