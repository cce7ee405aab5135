"""Tables read well in a terminal of any width."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.metric_types import Result
from sightline.reporting.report_table import Cell, Column, ReportTable, Value
from sightline.reporting.table_text import parts
from sightline.reporting.tables import summary
from sightline.reporting.terminal import aligned, show
from sightline.results.published import add_published

Make = Callable[..., Result]


def shown(results: list[Result], width: int, by: str | None = None) -> str:
    """What a terminal of this width shows."""
    file = io.StringIO()
    show(summary(results, by), file, width)
    return file.getvalue()


def test_a_table_of_one_run_reads_line_by_line(codis: Make) -> None:
    lines = [line.rstrip() for line in shown([add_published(codis(), "GPT-4V")], 100).splitlines()[:8]]
    assert lines == [
        "codis:default, openai/gpt-4o",
        "                             value                      GPT-4V       GPT-4V         Human",
        "metric                        95 %    n  clusters  Tables 3, 4     Table 10   Tables 3, 4",
        "─" * 90,
        "acc_p               32.5 28.5-36.5  353       216  32.3 (+0.2)  31.2 (+1.3)  86.2 (-53.8)",
        "acc_q               56.2 52.2-60.2  706       216  56.9 (-0.6)  55.1 (+1.1)  87.7 (-31.5)",
        "context_awareness   54.8 50.8-58.8  353       216  54.7 (+0.0)               97.3 (-42.5)",
        "output_variability     -              0         0  58.6                      81.9",
    ]


def test_the_rows_of_a_group_stand_under_its_name(codis: Make) -> None:
    lines = shown([codis(), codis(model="mini")], 80).splitlines()
    start = next(nth for nth, line in enumerate(lines) if line.startswith("acc_p"))
    assert [line.split("  ")[1] for line in lines[start + 1 : start + 3]] == ["openai/gpt-4o", "mini"]


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("by", [None, "category"])
def test_nothing_is_wider_than_the_terminal(codis: Make, width: int, by: str | None) -> None:
    assert max(map(len, shown([add_published(codis(), "GPT-4V")], width, by).splitlines())) <= width
    assert (
        max(map(len, shown([add_published(codis(), "GPT-4V"), codis(model="a/b")], width, by).splitlines()))
        <= width
    )


def test_names_that_are_too_long_are_broken_behind_a_hyphen() -> None:
    head = (Column("text", "responder", "responder"), *(Column("count", "x" * 14, f"n{n}") for n in range(4)))
    rows = (("Gemini-Pro-Vision", 1, 2, 3, 4), ("GPT-4V", 1, 2, 3, 4))
    file = io.StringIO()
    show([ReportTable("title", head, rows)], file, 80)
    names = [line.split("  ")[0].rstrip() for line in file.getvalue().splitlines()[3:6]]
    assert names == ["Gemini-Pro-", "Vision", "GPT-4V"]


@pytest.mark.parametrize("rows", [0, 3])
def test_a_table_of_any_columns_fits_and_may_be_empty(rows: int) -> None:
    head = (
        Column("text", "metric", "metric"),
        *(Column("value", f"/a/long/folder/of/results/{n}\nmini", f"n{n}") for n in range(5)),
        *(Column("count", "clusters", f"c{n}") for n in range(4)),
    )
    row: tuple[Cell, ...] = ("acc", *(Value(-10.0 - n, -33.3, 44.4) for n in range(5)), 1, 2, 3, 4)
    file = io.StringIO()
    show([ReportTable("title", head, (row,) * rows)], file, 80)
    assert max(map(len, file.getvalue().splitlines())) <= 80
    assert all(file.getvalue().count(f"-{10 + n}.0") == rows for n in range(5))


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_no_number_is_ever_cut(codis: Make, iibench: Make, width: int) -> None:
    for result in (add_published(codis(samples=40), "GPT-4V"), add_published(iibench(), "GPT-4o")):
        words = set(re.split(r"\s+", shown([result], width)))
        for table in summary([result]):
            for row in table.rows:
                for cell, column in zip(row, table.columns, strict=True):
                    if column.kind != "text":
                        assert words >= set(parts(cell, column)), (width, cell)


@given(st.lists(st.tuples(st.floats(-99, 99), st.booleans(), st.booleans()), min_size=1))
def test_digits_stand_under_digits(cells: list[tuple[float, bool, bool]]) -> None:
    texts = [
        (f"{value:.1f}{'*' if starred else ''}", *((f"({value:+.1f})",) if differs else ()))
        for value, starred, differs in cells
    ]
    lines = aligned(texts)
    assert len({len(line) for line in lines}) == 1
    assert len({line.index(".") for line in lines}) == 1
    assert [tuple(line.split()) for line in lines] == texts


def test_markup_in_a_name_is_shown_as_it_is(codis: Make) -> None:
    text = shown([codis(model="[bold]x[/bold]", notes=["[red]odd[/red] :smile:"])], 100)
    assert "codis:default, [bold]x[/bold]" in text
    assert "[red]odd[/red] :smile:" in text
