"""VLMEvalKit's tables are read as its inference.py and smp/file.py write them, in all their file types."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import Prediction

COLUMNS = ["index", "id", "question", *"ABCDEF", "image_path", "prediction"]
OPTIONS = ["one", "two, or so", 'th"ree', "four\nlines", "five\ttabs", "six"]


def row(number: int = 1, prediction: object = "(B)", **changes: object) -> dict[str, Any]:
    cells = [number, f"test-{number}", "Why?", *OPTIONS, f"{number}.jpg", prediction]
    return {**dict(zip(COLUMNS, cells, strict=True)), **changes}


def write_text(path: Path, rows: list[dict[str, Any]], delimiter: str) -> None:
    # pandas.DataFrame.to_csv(..., index=False, quoting=csv.QUOTE_ALL), as dump_tsv and dump_csv do.
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(rows[0])
    writer.writerows(entry.values() for entry in rows)
    path.write_text(out.getvalue())


def write_workbook(path: Path, rows: list[dict[str, Any]]) -> None:
    workbook = pytest.importorskip("openpyxl").Workbook()
    sheet = workbook.active
    sheet.append(list(rows[0]))
    for entry in rows:
        sheet.append([None if cell == "" else cell for cell in entry.values()])
    workbook.save(path)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    match path.suffix:
        case ".xlsx":
            write_workbook(path, rows)
        case ".json":
            path.write_text(json.dumps(rows, indent=4))
        case suffix:
            write_text(path, rows, "\t" if suffix == ".tsv" else ",")
    return path


def read(path: Path, benchmark: str = "iibench") -> list[Prediction]:
    return read_predictions(path, benchmark_class(benchmark).answer_files, setting="cot")


@pytest.mark.parametrize("name", ["m_II.xlsx", "m_II.tsv", "m_II.csv", "m_II.json"])
def test_every_file_type_gives_the_same_answers(tmp_path: Path, name: str) -> None:
    rows = [row(1), row(2, ""), row(3, "Failed to obtain answer via API."), row(4, "=SUM(A)")]
    predictions = read(write(tmp_path / name, rows))
    assert predictions[0] == Prediction(
        sample="test-1",
        variant="cot",
        response="(B)",
        question="Why?",
        options=tuple(OPTIONS),
        image="1.jpg",
    )
    assert [(p.response, p.error) for p in predictions[1:]] == [
        ("", None),
        ("", "Failed to obtain answer via API."),
        ("=SUM(A)", None),
    ]


def test_the_table_that_pandas_writes_is_read(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([row(1), row(2, "3"), row(3, "=1")])
    frame.to_csv(tmp_path / "p.tsv", sep="\t", index=False, encoding="utf-8", quoting=csv.QUOTE_ALL)
    frame.to_excel(tmp_path / "p.xlsx", index=False, engine="openpyxl")
    for name in ("p.tsv", "p.xlsx"):
        assert [p.response for p in read(tmp_path / name)] == ["(B)", "3", "=1"]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1))
@example(["<NA>", "nan "])
def test_what_a_model_writes_comes_back_from_a_table(
    tmp_path_factory: pytest.TempPathFactory, responses: list[str]
) -> None:
    path = tmp_path_factory.mktemp("table") / "t.tsv"
    rows = [row(n, response) for n, response in enumerate(responses)]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(entry.values() for entry in rows)
    path.write_bytes(out.getvalue().encode())
    # What pandas writes for a missing value is read as an empty answer, with a note.
    missing = ("nan", "NaN", "NAN", "<NA>")
    expected = ["" if response.strip() in missing else response for response in responses]
    assert [p.response for p in read(path)] == expected


def test_a_cell_may_be_longer_than_the_csv_modules_limit(tmp_path: Path) -> None:
    limit = csv.field_size_limit()
    [prediction] = read(write(tmp_path / "t.tsv", [row(1, "thinking " * 50_000)]))
    assert len(prediction.response) == 450_000
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "", "index": "test-9"},
        {"id": "9", "image_path": "images/test/test-9.jpg"},
        {"id": "9", "local_path": "images/test/test-9.jpg"},
        {"id": "9", "image_path": "C:\\LMUData\\images\\II\\test-9.webp"},
    ],
)
def test_a_question_is_known_by_its_id_or_its_image(tmp_path: Path, changes: dict[str, str]) -> None:
    assert read(write(tmp_path / "t.csv", [row(9, **changes)]))[0].sample == "test-9"


def test_an_index_alone_is_no_question(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read(write(tmp_path / "t.csv", [row(9, id="")]))
    message = str(caught.value)
    assert "record line 2, field id: does not say which question it answers" in message
    assert "only index 9" in message
    assert "'test-N' or 'dev-N' in one of the columns id, sample, index, local_path, image_path" in message


def test_other_benchmarks_go_by_id_and_need_a_variant_where_a_sample_has_several(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", [row(1, id="007", variant="context_2")])
    assert [(p.sample, p.variant) for p in read(path, "codis")] == [("007", "context_2")]
    with pytest.raises(UserError, match="record 007, field variant"):
        read(write(tmp_path / "t.csv", [row(1, id="007")]), "codis")


def test_without_openpyxl_a_workbook_is_refused_with_the_way_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.xlsx", [row()])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(UserError, match=r"pip install 'sightline\[table\]'"):
        read(path)


@pytest.mark.parametrize("name", ["t.xlsx", "t.tsv", "t.csv"])
def test_a_table_that_is_cut_off_is_refused(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [row(1), row(2)])
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(UserError, match="truncated"):
        read(path)


def test_a_row_with_too_few_cells_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("index,id,prediction\n1,test-1,A\n2,test-2\n")
    with pytest.raises(UserError, match=r"record line 3: has more or fewer cells.*found 2.*3 cells"):
        read(tmp_path / "t.csv")
