"""Tables read well in a terminal of any width."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from sightline.benchmarks.released import add_published
from sightline.reporting.table import Cell, Column, ReportTable, Value, aligned, parts, show
from sightline.reporting.tables import summary
from sightline.types import Result

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
        "                                value                       GPT-4V        GPT-4V          Human",
        "metric                           95 %    n  clusters   Tables 3, 4      Table 10    Tables 3, 4",
        "─" * 95,
        "acc_p               32.5 [28.5, 36.5]  353       216  32.3† (+0.2)  31.2† (+1.3)  86.2† (-53.8)",
        "acc_q               56.2 [52.2, 60.2]  706       216  56.9† (-0.6)  55.1† (+1.1)  87.7† (-31.5)",
        "context_awareness   54.8 [50.8, 58.8]  353       216  54.7† (+0.0)                97.3† (-42.5)",
        "output_variability     -                 0         0  58.6†                       81.9†",
    ]


def test_a_name_that_rows_share_stands_once(codis: Make) -> None:
    lines = shown([codis(), codis(model="mini")], 80).splitlines()
    start = next(nth for nth, line in enumerate(lines) if line.startswith("acc_p"))
    assert [line.split("  ")[0] for line in lines[start : start + 3]] == ["acc_p", "", "acc_q"]
    assert "mini" in lines[start + 1]


@pytest.mark.parametrize("width", [80, 100, 120])
@pytest.mark.parametrize("by", [None, "category"])
def test_nothing_is_wider_than_the_terminal(codis: Make, width: int, by: str | None) -> None:
    assert max(map(len, shown([add_published(codis(), "GPT-4V")], width, by).splitlines())) <= width
    assert (
        max(map(len, shown([add_published(codis(), "GPT-4V"), codis(model="a/b")], width, by).splitlines()))
        <= width
    )


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def printed(table: ReportTable, width: int, file: io.StringIO) -> list[str]:
    show([table], file, width)
    return re.sub("\x1b\\[[0-9;]*m", "", file.getvalue()).splitlines()


MODELS = (
    "http://localhost:8000/v1#llava",
    "http://gpu-node-17.cluster.example.org:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct",
    "Gemini-Pro-Vision",
    "mini",
    "http://127.0.0.1:8000/v1#模型/看图说话",
    "sha256:" + "0123456789abcdef" * 4,
)
names = (
    st.sampled_from(MODELS)
    | st.text("abcxyz-_/#.", min_size=1, max_size=70)
    | st.text("看图说话的模型", max_size=30)
)
phrases = st.lists(names, min_size=1, max_size=4).map(" ".join)
numbers = st.none() | st.floats(-100, 100).map(lambda number: Value(number, number - 9, number + 9))


@st.composite
def any_table(draw: st.DrawFn) -> ReportTable:
    """A table of texts and numbers, with names and addresses in all of its texts."""
    texts = draw(st.integers(1, 4))
    values = draw(st.integers(0, 5))
    columns = [
        *(Column("text", draw(phrases), f"t{nth}") for nth in range(texts)),
        *(Column("value", draw(phrases), f"v{nth}") for nth in range(values)),
    ]
    rows = draw(st.lists(st.tuples(*[phrases] * texts, *[numbers] * values), max_size=4))
    return ReportTable(draw(phrases), tuple(columns), tuple(rows), tuple(draw(st.lists(phrases, max_size=2))))


def words_of(table: ReportTable) -> set[str]:
    texts = [table.title, *table.all_notes, *(column.head for column in table.columns)]
    cells = [
        text
        for row in table.rows
        for cell, column in zip(row, table.columns, strict=True)
        for text in parts(cell, column)
    ]
    return {word for text in (*texts, *cells) for word in text.split()}


def numbers_of(table: ReportTable) -> set[str]:
    return {
        word
        for row in table.rows
        for cell, column in zip(row, table.columns, strict=True)
        if column.kind != "text"
        for text in parts(cell, column)
        for word in text.split()
    }


@given(any_table(), st.sampled_from([60, 80, 120, 200]))
def test_a_terminal_keeps_its_width_and_breaks_no_number(table: ReportTable, width: int) -> None:
    lines = printed(table, width, Terminal())
    assert max(map(cell_len, lines)) <= width
    assert {word for line in lines for word in line.split()} >= numbers_of(table)
    assert "…" not in "".join(lines)


@given(any_table(), st.sampled_from([60, 80, 200]))
def test_a_file_or_pipe_holds_every_word_whole(table: ReportTable, width: int) -> None:
    found = {word for line in printed(table, width, io.StringIO()) for word in line.split()}
    words = words_of(table)
    assert {word for word in found - {"(continued)"} if set(word) != {"─"}} <= words
    assert numbers_of(table) <= found


@given(any_table(), st.sampled_from([60, 80, 200]))
def test_styles_change_nothing_else_in_a_pipe(table: ReportTable, width: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FORCE_COLOR", "1")
        patch.setenv("TERM", "xterm")
        patch.delenv("TTY_COMPATIBLE", raising=False)
        file = io.StringIO()
        styled = printed(table, width, file)
    assert "\x1b[" in file.getvalue()
    assert styled == printed(table, width, io.StringIO())


@pytest.mark.parametrize(("columns", "width"), [("120", 120), ("0", 80), ("", 80), ("wide", 80)])
def test_a_pipe_without_a_terminal_is_80_wide_unless_columns_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    def no_terminal(stream: int) -> os.terminal_size:
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", no_terminal)
    monkeypatch.setenv("COLUMNS", columns)
    file = io.StringIO()
    show([ReportTable("word " * 100, (Column("text", "a", "a"),), ())], file)
    assert width - len("word ") <= max(map(len, file.getvalue().splitlines())) <= width


def test_a_pipe_beside_a_terminal_has_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    def stderr_alone(stream: int) -> os.terminal_size:
        if stream != 2:
            raise OSError
        return os.terminal_size((100, 30))

    monkeypatch.setattr(os, "get_terminal_size", stderr_alone)
    monkeypatch.delenv("COLUMNS", raising=False)
    file = io.StringIO()
    show([ReportTable("word " * 100, (Column("text", "a", "a"),), ())], file)
    assert 95 <= max(map(len, file.getvalue().splitlines())) <= 100


def test_a_table_that_does_not_fit_lists_its_rows_one_below_the_other() -> None:
    head = (
        Column("text", "run", "run"),
        Column("text", "task", "task"),
        Column("text", "model", "model"),
        Column("count", "bytes", "bytes"),
    )
    rows = (
        ("1", "codis:no-context", "http://localhost:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct", 6829),
        ("2", "mmr3:rephrasing", "mini", 12555),
    )
    assert printed(ReportTable("runs", head, rows, ("a note",)), 48, Terminal()) == [
        "runs",
        "run    1",
        "task   codis:no-context",
        "model  http://localhost:8000/v1#Qwen/Qwen2.5-VL-",
        "       72B-Instruct",
        "bytes  6,829",
        "",
        "run    2",
        "task   mmr3:rephrasing",
        "model  mini",
        "bytes  12,555",
        "",
        "  a note",
        "",
    ]


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
        text = shown([result], width)
        for table in summary([result]):
            for row in table.rows:
                for cell, column in zip(row, table.columns, strict=True):
                    if column.kind != "text":
                        assert all(part in text for part in parts(cell, column)), (width, cell)


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
