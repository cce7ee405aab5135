"""Report tables in LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sightline.escaping import for_latex
from sightline.report.report_table import Cell, Column, ReportTable
from sightline.report.table_text import cell_text

_RANGE, _MINUS = re.compile(r"(?<=\d)-(?=\d)"), re.compile(r"(?<!\d)-(?=\d)")


def latex(tables: Iterable[ReportTable]) -> str:
    """Tables as LaTeX: a `table` each, with its title as caption and its notes below.

    Args:
        tables: The tables.

    Returns:
        The LaTeX text, with a line break at its end. It needs `\\usepackage{booktabs}`.
    """
    return "\n".join(map(_table, tables))


def _table(table: ReportTable) -> str:
    body = [list(map(_cell, row, table.columns)) for row in table.rows]
    notes = [line for note in table.notes for line in ("", for_latex(note))]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{for_latex(table.title)}}}",
        rf"\begin{{tabular}}{{{''.join('l' if column.kind == 'text' else 'r' for column in table.columns)}}}",
        r"\toprule",
        *map(_row, _head(table.columns)),
        r"\midrule",
        *map(_row, body),
        r"\bottomrule",
        r"\end{tabular}",
        *(["", r"\footnotesize\raggedright", *notes[1:]] if notes else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _head(columns: Sequence[Column]) -> list[list[str]]:
    """The lines of the headings as rows; shorter headings begin further down."""
    heads = [column.head.split("\n") for column in columns]
    most = max(map(len, heads))
    padded = [[""] * (most - len(lines)) + lines for lines in heads]
    return [[for_latex(lines[nth]) for lines in padded] for nth in range(most)]


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: Cell, column: Column) -> str:
    """A cell; numbers have minus signs, and dashes between the bounds of their intervals."""
    text = for_latex(cell_text(cell, column))
    return text if isinstance(cell, str) else _RANGE.sub("--", _MINUS.sub("$-$", text))
