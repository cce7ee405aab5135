"""Report tables in LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from sightline.escaping import for_latex
from sightline.reporting.report_table import Cell, Column, ReportTable
from sightline.reporting.table_text import cell_text

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
        *_head(table.columns),
        r"\midrule",
        *map(_row, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        *(f"% {for_latex(note)}" for note in table.notes),
    ]
    return "\n".join(lines) + "\n"


def _head(columns: Sequence[Column]) -> list[str]:
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
