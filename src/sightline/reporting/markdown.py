"""Report tables in Markdown, and the report of a results folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from sightline.escaping import for_markdown, for_markdown_cell
from sightline.metric_types import Result
from sightline.reporting.option_texts import compact
from sightline.reporting.report_table import ReportTable
from sightline.reporting.table_text import cell_text
from sightline.reporting.tables import summary


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
