"""Report tables as one text in any format, and as the value of a notebook cell."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import needs_extra, unknown_name
from sightline.reporting.notes import compact
from sightline.reporting.table import Cell, Column, ReportTable, cell_text, csv_text, flat, json_text
from sightline.reporting.tables import summary
from sightline.text import for_html, for_latex, for_markdown, for_markdown_cell
from sightline.types import Result

# -- Report tables in Markdown, and the report of a results folder


def report_markdown(result: Result, name: str | None = None) -> str:
    """The text of report.md: every table with its notes, then the run with all effective options.

    Args:
        name: The name of the run, which its tables are called by; None without a name.
    """
    whole, *by_label = summary([result], runs=[name] if name else [])
    sections = [
        f"# {for_markdown(whole.title)}",
        markdown([replace(whole, title="Overall"), *by_label]),
        f"## Run\n\n{_run(result)}",
    ]
    return "\n\n".join(sections) + "\n"


def markdown(tables: Iterable[ReportTable]) -> str:
    """Tables as Markdown: a heading, the table and its notes as a list, each."""
    return "\n\n".join(_section(table) for table in tables)


def _section(table: ReportTable) -> str:
    heads = [for_markdown_cell(*column.head.split("\n")) for column in table.columns]
    rows = [
        [for_markdown_cell(cell_text(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    marks = ["---" if column.kind == "text" else "---:" for column in table.columns]
    notes = "\n".join(f"- {for_markdown(note)}" for note in table.notes)
    blocks = [f"## {for_markdown(table.title)}", _grid(heads, marks, rows), notes]
    return "\n\n".join(block for block in blocks if block)


def _run(result: Result) -> str:
    facts = {
        "benchmark": result.benchmark,
        "setting": result.setting,
        "model": result.model,
        "model identity": result.model_identity,
        "judge": result.judge,
        "data digest": result.data_digest,
        **{f"version of {name}": value for name, value in result.versions.items()},
        **{f"option {name}": value for name, value in result.options.items()},
    }
    rows = [[for_markdown_cell(name), for_markdown_cell(compact(value))] for name, value in facts.items()]
    return _grid(["", ""], ["---", "---"], rows)


def _grid(heads: Sequence[str], marks: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, marks, *rows))


# -- Report tables in HTML, as a fragment of a page


def html(tables: Iterable[ReportTable]) -> str:
    """Tables as HTML: a `table` with its title as caption, and its notes as a list, each."""
    return "".join(f"{line}\n" for table in tables for line in _lines(table))


def _lines(table: ReportTable) -> list[str]:
    heads = "".join(_element("th", column, _html_head(column)) for column in table.columns)
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


def _html_head(column: Column) -> str:
    return "<br>".join(map(for_html, column.head.split("\n")))


def _element(name: str, column: Column, content: str) -> str:
    side = "" if column.kind == "text" else ' style="text-align: right"'
    return f"<{name}{side}>{content}</{name}>"


# -- Report tables in LaTeX, with the rules of the package booktabs

_MINUS = re.compile(r"(?<!\d)-(?=\d)")
_NOT_OF_A_LABEL = re.compile(r"[^a-z0-9]+")


def latex(tables: Iterable[ReportTable]) -> str:
    """Tables as LaTeX: a `table` each, with its title as caption and label; its notes are comments behind it.

    A float cannot break over pages, so that long notes would not fit in it. The author of the paper decides
    which of them the caption says.
    """
    return "\n".join(map(_table, tables))


def _table(table: ReportTable) -> str:
    body = [list(map(_cell, row, table.columns)) for row in table.rows]
    title = for_latex(table.title)
    label = _NOT_OF_A_LABEL.sub("-", table.title.lower()).strip("-")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{title}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{''.join('l' if column.kind == 'text' else 'r' for column in table.columns)}}}",
        r"\toprule",
        *_latex_head(table.columns),
        r"\midrule",
        *map(_row, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        *(f"% {for_latex(note)}" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"


def _latex_head(columns: Sequence[Column]) -> list[str]:
    """The lines of the headings; shorter headings begin further down.

    Above the last line, a heading that neighbours share stands once over all of them with a rule, as in the
    tables of papers: a category over its metrics.
    """
    heads = [column.head.split("\n") for column in columns]
    most = max(map(len, heads))
    padded = [[""] * (most - len(lines)) + lines for lines in heads]
    found: list[str] = []
    for nth in range(most - 1):
        cells, rules, start = [], [], 1
        for shared, group in groupby(padded, key=lambda lines: lines[: nth + 1]):
            width, text = len(list(group)), for_latex(shared[nth])
            if width > 1 and text:
                cells.append(rf"\multicolumn{{{width}}}{{c}}{{{text}}}")
                rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            else:
                cells += [text] * width
            start += width
        found += [_row(cells), *([" ".join(rules)] if rules else [])]
    return [*found, _row([for_latex(lines[-1]) for lines in padded])]


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: Cell, column: Column) -> str:
    """A cell; numbers have minus signs, and plain brackets, which stand behind a value."""
    text = for_latex(cell_text(cell, column))
    if isinstance(cell, str):
        return text
    return _MINUS.sub("$-$", text.replace("{[}", "[").replace("{]}", "]"))


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
