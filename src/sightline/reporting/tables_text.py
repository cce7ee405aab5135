"""Report tables as one text in any format, and as the value of a notebook cell."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from sightline.errors import needs_extra, unknown_name
from sightline.reporting.html_table import html
from sightline.reporting.latex_table import latex
from sightline.reporting.markdown import markdown
from sightline.reporting.report_table import ReportTable
from sightline.reporting.table_text import csv_text, flat, json_text

WRITERS: Mapping[str, Callable[[Sequence[ReportTable]], str]] = {
    "markdown": lambda tables: f"{markdown(tables)}\n",
    "csv": lambda tables: "\n".join(map(csv_text, tables)),
    "latex": latex,
    "html": html,
    "json": json_text,
}
"""The formats of `--format` that are texts, and what writes them."""

_Content = TypeVar("_Content")


def tables_text(tables: Sequence[ReportTable], form: str) -> str:
    if form not in WRITERS:
        raise unknown_name("format", form, WRITERS)
    return WRITERS[form](tables)


class Tables(Struct, Generic[_Content], frozen=True):
    """Tables for a script or a notebook, which displays them, with the record that they show."""

    content: _Content
    tables: tuple[ReportTable, ...]

    def text(self, form: str = "markdown") -> str:
        """The tables as text."""
        return tables_text(self.tables, form)

    def frame(self) -> Any:
        """The main table as a pandas DataFrame with unrounded numbers; needs the extra `table`."""
        return import_pandas().DataFrame(flat(self.tables[0]))

    def _repr_html_(self) -> str:
        """The tables as a notebook shows them."""
        return html(self.tables)

    def __str__(self) -> str:
        """The tables as the command prints them."""
        from sightline.reporting.terminal import show

        file = io.StringIO()
        show(self.tables, file, 120)
        return file.getvalue()


def import_pandas() -> Any:
    with needs_extra("table", "pandas is not installed"):
        import pandas
    return pandas
