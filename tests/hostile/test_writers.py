"""Whatever text a table holds, a parser of each format finds our own structure and the shown text."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile.readers import STYLE, ReadTable, read_html, read_latex, read_markdown, unsafe
from tests.hostile.texts import LINES, TEXTS, texts

from sightline.errors import visible, visible_lines
from sightline.reporting.table import Column, ReportTable, Value, csv_text, heading, json_text, show
from sightline.reporting.tables import html, latex, markdown
from sightline.text import (
    escape_formula,
    for_csv,
    for_json,
    for_markdown,
    for_markdown_cell,
    for_plot,
    unescape_formula,
)

FORMULA = tuple("=+-@\t\r\n＝＋－＠")


@st.composite
def tables(draw: st.DrawFn) -> ReportTable:
    columns = (
        Column("text", heading(draw(texts)), draw(texts)),
        Column("text", heading(draw(texts), draw(texts)), "second"),
        Column("value", "value\n95 %", "number"),
        Column("value", "", "other"),
    )
    number = Value(-3.25, -5.0, -1.5, "percent", "wilson")
    rows = draw(st.lists(st.tuples(texts, texts), min_size=1, max_size=3))
    notes = draw(st.lists(texts, max_size=3))
    return ReportTable(
        draw(texts), columns, tuple((*row, number, Value(50.0, 40.5, 60.0)) for row in rows), tuple(notes)
    )


def shown(table: ReportTable) -> ReadTable:
    """What a reader sees of a table."""
    rows = [
        [visible(str(cell)) for cell in row[:2]] + ["-3.2 [-5.0, -1.5]", "50.0 [40.5, 60.0]"]
        for row in table.rows
    ]
    return ReadTable(visible(table.title), rows, list(map(visible, table.notes)))


def stripped(table: ReadTable) -> ReadTable:
    """A table without the blanks around its texts, which no format shows."""
    rows = [[cell.strip() for cell in row] for row in table.rows]
    return ReadTable(table.title.strip(), rows, [note.strip() for note in table.notes])


def lines(table: ReportTable) -> list[list[str]]:
    """The lines of each heading."""
    return [column.head.split("\n") for column in table.columns]


@given(tables())
def test_markdown_has_our_structure_and_the_shown_text(table: ReportTable) -> None:
    text = f"{markdown([table])}\n"
    assert not unsafe(text)
    (read,) = read_markdown(text)
    heads, *rows = read.rows
    expected = stripped(shown(table))
    assert (read.title, rows) == (expected.title, expected.rows)
    assert read.notes == [note for note in expected.notes if note]
    assert heads == ["\n".join(map(str.strip, column)) for column in lines(table)]


@pytest.mark.parametrize(
    "text",
    [
        "8.3 ~0.9-47.0",
        "~: an approximate interval",
        '["gpt-4o"] {"temperature": 0} []',
        "86.2* (-53.8)",
        "acc_p, n < 10, 3 * 4 * 5, R&D, 5 $ and 6 $, a | b",
    ],
)
def test_what_markdown_does_not_interpret_is_not_escaped(text: str) -> None:
    assert for_markdown(text) == text
    assert for_markdown_cell(text.replace("|", "/")) == text.replace("|", "/")


def test_an_address_stays_readable_as_code() -> None:
    assert (
        for_markdown("http://localhost:8000/v1#mock_b, a@b.c") == "`http://localhost:8000/v1#mock_b`, `a@b.c`"
    )


@given(tables())
def test_html_has_our_structure_and_the_shown_text(table: ReportTable) -> None:
    text = html([table])
    assert not unsafe(text)
    (read,) = read_html(text)
    heads, *rows = read.rows
    assert ReadTable(read.title, rows, read.notes) == shown(table)
    assert heads == ["\n".join(column) for column in lines(table)]


@given(tables())
def test_latex_has_our_structure_and_the_shown_text(table: ReportTable) -> None:
    text = latex([table])
    assert not unsafe(text)
    (read,) = read_latex(text)
    first, second, *rows = read.rows
    found, expected = stripped(ReadTable(read.title, rows, read.notes)), stripped(shown(table))
    assert found.title == expected.title
    assert found.rows == expected.rows
    assert [note for note in found.notes if note] == [note for note in expected.notes if note]
    (top, *_), (one, other), *_ = lines(table)
    assert [cell.strip() for cell in first] == ["", one.strip(), "value", ""]
    assert [cell.strip() for cell in second] == [top.strip(), other.strip(), "95 %", ""]


@given(tables())
def test_csv_gives_the_shown_text_and_the_numbers_back_and_no_formula(table: ReportTable) -> None:
    text = csv_text(table)
    assert not unsafe(text)
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert unescape_formula(header[0]) == visible(table.columns[0].key)
    names = table.columns[0].key, "second"
    for read, row in zip(rows, table.rows, strict=True):
        if names[0] not in ("second", "number value", "number low", "number high", "number interval"):
            assert [unescape_formula(cell) for cell in read[:2]] == [visible(str(cell)) for cell in row[:2]]
        assert list(map(float, read[2:5])) == [-3.25, -5.0, -1.5]
        assert not any(cell.strip().startswith(FORMULA) for cell in read[:2])


@given(tables())
def test_json_gives_the_exact_text_back(table: ReportTable) -> None:
    try:
        table.title.encode(), [str(cell).encode() for row in table.rows for cell in row]
        text = json_text([table])
    except UnicodeEncodeError:  # JSON in UTF-8 has no lone surrogates
        return
    assert not unsafe(text)
    (read,) = json.loads(text)
    assert (read["title"], read["notes"]) == (table.title, list(table.notes))


@given(tables(), st.sampled_from([20, 80, 4000]))
def test_a_terminal_gets_no_control_character_but_line_feeds(table: ReportTable, width: int) -> None:
    printed = io.StringIO()
    show([table], printed, width)
    assert not unsafe(printed.getvalue())
    if width == 4000:
        for text in (table.title, *table.notes, *(str(cell) for row in table.rows for cell in row[:2])):
            assert "".join(visible(text).split()) in "".join(printed.getvalue().split())


def test_a_terminal_with_colours_gets_our_styles_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    printed = io.StringIO()
    column = Column("text", heading(*TEXTS), "text")
    show([ReportTable(TEXTS[0], (column,), tuple((text,) for text in TEXTS), tuple(TEXTS))], printed, 200)
    assert STYLE.search(printed.getvalue())
    assert not unsafe(STYLE.sub("", printed.getvalue()))
    assert not re.search(r"\x1b\[[0-9;]*m", "".join(map(visible, TEXTS)))


@given(texts)
def test_a_shown_text_is_one_safe_line_that_stays_as_it_is(text: str) -> None:
    assert "\n" not in visible(text)
    assert not unsafe(visible(text))
    assert visible(visible(text)) == visible(text)
    assert visible_lines(text).count("\n") == text.count("\n")


@pytest.mark.slow
def test_every_character_that_unicode_calls_ignorable_is_shown() -> None:
    regex = pytest.importorskip("regex")
    ignorable = regex.compile(r"\p{Default_Ignorable_Code_Point}")
    for number in range(0x110000):
        sign = chr(number)
        if ignorable.match(sign) or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp"):
            assert visible(f"a{sign}") == f"a{sign.encode('unicode_escape').decode()}"


@pytest.mark.parametrize("line", [one for one in LINES if one["kind"].startswith("scripts")], ids=repr)
def test_the_spelling_of_languages_stays(line: dict[str, str]) -> None:
    assert visible(line["text"]) == line["text"]


@given(texts)
def test_a_cell_of_a_form_is_no_formula_and_comes_back_exactly(text: str) -> None:
    assert not escape_formula(text).lstrip().startswith(FORMULA)
    assert unescape_formula(escape_formula(text)) == text


@given(texts)
def test_a_json_document_keeps_its_content(text: str) -> None:
    document = json.dumps([text], ensure_ascii=False, indent=1)
    assert not unsafe(for_json(document))
    assert json.loads(for_json(document)) == [text]


@given(st.lists(texts, max_size=1))
def test_matplotlib_reads_no_formula(found: Sequence[str]) -> None:
    cbook = pytest.importorskip("matplotlib.cbook")
    for text in found:
        assert not cbook.is_math_text(for_plot(text))


@given(texts)
def test_a_cell_that_a_reader_opens_is_no_formula(text: str) -> None:
    assert not for_csv(text).lstrip().startswith(FORMULA)


def test_an_address_ends_before_the_punctuation_of_its_sentence() -> None:
    assert for_markdown("see http://a.b/v1#m, and me@a.b.") == "see `http://a.b/v1#m`, and `me@a.b`."


@pytest.mark.parametrize("sign", "*_~$")
def test_signs_that_open_and_never_close_are_escaped_in_one_pass(sign: str) -> None:
    text = f"{sign}a " * 50_000  # A pass for each of them would take minutes.
    assert for_markdown(text) == text.strip()
