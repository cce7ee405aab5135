"""Tables go out and come back, as spreadsheets save them."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

import pytest

from sightline.annotation.exchange import import_sheets, items_table, judgements_table
from sightline.annotation.export import export_project
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import task
from sightline.annotation.types import Item, Project
from sightline.errors import UserError
from sightline.formats.files import read_bytes
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> AnnotationStore:
    made = AnnotationStore(Store.open(str(tmp_path / "s.db")), time.time)
    texts = ["=1+1", "Größe; 3,5", "line\nbreak", "12-1"]
    items = [
        Item(number, texts={"response": (text,)}, hidden={"model": "secret"})
        for number, text in enumerate(texts, start=1)
    ]
    made.create(Project("p", task("rate"), annotators=2), items)
    return made


def state_of(store: AnnotationStore) -> State:
    row = store.project("p")
    return State(row.project, store.items(row.number)).advance(store.entries(row.number))


def filled(store: AnnotationStore, name: str, value: str = "right") -> list[list[str]]:
    rows = items_table(state_of(store))
    header = rows[0]
    for row in rows[1:]:
        row[header.index("by")], row[header.index("verdict")] = name, value
    return rows


def imported(store: AnnotationStore, *files: Path) -> tuple[int, int]:
    result = import_sheets(store, store.project("p"), state_of(store), files, 0.0)
    return result.added, result.known


@pytest.mark.parametrize(
    ("delimiter", "encoding"),
    [(",", "utf-8"), (",", "utf-8-sig"), (";", "cp1252"), (";", "utf-8-sig"), ("\t", "utf-8")],
)
def test_a_filled_in_table_comes_back_however_it_was_saved(
    store: AnnotationStore, tmp_path: Path, delimiter: str, encoding: str
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(filled(store, "Zoë"))
    file = tmp_path / "filled.csv"
    file.write_bytes(text.getvalue().encode(encoding))
    assert imported(store, file) == (4, 0)
    assert imported(store, file) == (0, 4), "the same file adds nothing"
    assert [one.name for one in store.annotators(1)] == ["Zoë"]
    assert state_of(store).of_item(2)[1].values == {"verdict": "right"}


@pytest.mark.parametrize("name", ["a" * 300, "a\x07b"])
def test_a_name_that_no_annotator_can_have_is_found_before_anything_is_added(
    store: AnnotationStore, tmp_path: Path, name: str
) -> None:
    rows = filled(store, "anna")
    rows[-1][rows[0].index("by")] = name
    file = tmp_path / "filled.csv"
    file.write_bytes(csv_bytes(rows))
    with pytest.raises(UserError, match=r"filled\.csv, record .*the name cannot be used"):
        imported(store, file)
    assert store.annotators(1) == []


def test_judgements_beyond_what_an_item_needs_are_named(store: AnnotationStore, tmp_path: Path) -> None:
    files = []
    for name in ("anna", "ben", "cleo", "zed"):
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_bytes(csv_bytes(filled(store, name)))
    row = store.project("p")
    found = import_sheets(store, row, state_of(store), files, 1.0)
    assert found.beyond == tuple(state_of(store).items)


def test_an_earlier_file_counts_again_when_it_is_imported_after_a_corrected_one(
    store: AnnotationStore, tmp_path: Path
) -> None:
    first, corrected = tmp_path / "first.csv", tmp_path / "corrected.csv"
    for file, verdict in ((first, "right"), (corrected, "wrong")):
        rows = filled(store, "anna")
        place = rows[0].index("verdict")
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows(
                [rows[0], *([*row[:place], verdict, *row[place + 1 :]] for row in rows[1:])]
            )
    for file, expected in ((first, "right"), (corrected, "wrong"), (first, "right")):
        assert imported(store, file) == (4, 0)
        assert state_of(store).of_item(2)[1].values == {"verdict": expected}


def test_a_workbook_keeps_every_cell_as_text_and_comes_back(store: AnnotationStore, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    list(export_project(state_of(store), [], [], tmp_path / "out", xlsx=True))
    file = tmp_path / "out" / "items.xlsx"
    book = openpyxl.load_workbook(file)
    sheet = book.worksheets[0]
    header = [cell.value for cell in sheet[1]]
    shown = [row[header.index("response")].value for row in sheet.iter_rows(min_row=2)]
    assert shown == ["=1+1", "Größe; 3,5", "line\nbreak", "12-1"]
    assert {cell.data_type for row in sheet.iter_rows() for cell in row if cell.value} == {"s"}
    for row in sheet.iter_rows(min_row=2):
        row[header.index("by")].value, row[header.index("verdict")].value = "anna", "wrong"
    book.save(file)
    assert imported(store, file) == (4, 0)


def test_nothing_hidden_is_in_the_table_that_annotators_fill_in(store: AnnotationStore) -> None:
    assert "secret" not in repr(items_table(state_of(store)))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("item", "item-0099", "is no item"),
        ("item", "7", "is no item"),
        ("verdict", "maybe", "is not an option"),
    ],
)
def test_a_wrong_cell_is_named_and_nothing_is_added(
    store: AnnotationStore, tmp_path: Path, column: str, value: str, message: str
) -> None:
    rows = filled(store, "anna")
    rows[3][rows[0].index(column)] = value
    file = tmp_path / "filled.csv"
    with file.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    with pytest.raises(UserError, match=message) as error:
        imported(store, file)
    assert str(file) in str(error.value)
    assert store.entries(1) == []


def test_every_column_of_the_judgements_has_its_own_name(store: AnnotationStore) -> None:
    item = Item(1, variant="v", hidden={"item": "7", "by": "x", "role": "y"})
    number = store.create(Project("drafts", task("verify")), [item])
    row = store.project(str(number))
    (header,) = judgements_table(State(row.project, store.items(number)), [])
    assert len(set(header)) == len(header)
    assert {"item", "item of the source", "by of the source", "role of the source"} <= set(header)


def test_a_formula_in_a_response_is_text_in_the_csv(store: AnnotationStore, tmp_path: Path) -> None:
    list(export_project(state_of(store), [], [], tmp_path / "out", xlsx=False))
    path = tmp_path / "out" / "items.csv"
    rows = [row for _, row in table_rows(read_table(read_bytes(path), path), path)]
    assert rows[0]["response"] == "'=1+1"


def test_a_table_without_names_of_annotators_is_refused(store: AnnotationStore, tmp_path: Path) -> None:
    file = tmp_path / "anna.csv"
    file.write_text("item,verdict\nitem-0001,right\n")
    with pytest.raises(UserError, match=r"anna\.csv, field by: lacks a column"):
        imported(store, file)


def test_lines_about_one_item_without_names_are_not_one_annotator(
    store: AnnotationStore, tmp_path: Path
) -> None:
    file = tmp_path / "both.csv"
    file.write_text("item,by,verdict\nitem-0001,,right\nitem-0002,,right\nitem-0001,,right\n")
    with pytest.raises(UserError, match=r"line 4.*judged twice by annotators without a name"):
        imported(store, file)


def test_a_form_in_which_nothing_is_filled_in_is_refused(store: AnnotationStore, tmp_path: Path) -> None:
    file = tmp_path / "empty.csv"
    file.write_bytes(csv_bytes(items_table(state_of(store))))
    with pytest.raises(UserError, match="holds no judgement"):
        imported(store, file)


def test_lines_without_values_are_counted(store: AnnotationStore, tmp_path: Path) -> None:
    file = tmp_path / "part.csv"
    file.write_bytes(csv_bytes([*filled(store, "anna")[:3], *items_table(state_of(store))[3:]]))
    found = import_sheets(store, store.project("p"), state_of(store), [file], 0.0)
    assert (found.added, found.empty) == (2, 2)
