"""Headings that neighbours share stand once over their columns in LaTeX, as in the tables of papers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from sightline.reporting.table import Column, ReportTable
from sightline.reporting.tables import latex


def table(*heads: str) -> ReportTable:
    columns = tuple(Column("text", head, str(nth)) for nth, head in enumerate(heads))
    return ReportTable("t", columns, (tuple("x" for _ in heads),))


def head_lines(*heads: str) -> list[str]:
    text = latex([table(*heads)])
    return text[text.index("\\toprule\n") : text.index("\\midrule")].splitlines()[1:]


def test_a_category_stands_over_its_metrics() -> None:
    heads = [
        "model",
        "Attributes\nacc_p",
        "Attributes\nacc_q",
        "Relationships\nacc_p",
        "Relationships\nacc_q",
    ]
    assert head_lines(*heads) == [
        r" & \multicolumn{2}{c}{Attributes} & \multicolumn{2}{c}{Relationships} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r"model & acc\_p & acc\_q & acc\_p & acc\_q \\",
    ]


def test_different_headings_have_no_rule() -> None:
    assert head_lines("run 1\nmini", "run 2\nmini") == [r"run 1 & run 2 \\", r"mini & mini \\"]


@given(st.lists(st.lists(st.sampled_from("ab"), min_size=1, max_size=3), min_size=1, max_size=6))
def test_every_line_covers_all_columns(heads: list[list[str]]) -> None:
    for line in head_lines(*map("\n".join, heads)):
        if not line.startswith("\\cmidrule"):
            spans = [int(width) for width in re.findall(r"multicolumn\{(\d)\}", line)]
            cells = line.removesuffix(r" \\").split(" & ")
            assert len(cells) - len(spans) + sum(spans) == len(heads)
