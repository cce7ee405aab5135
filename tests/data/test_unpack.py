"""`data unpack` makes records and an images folder of Parquet files as `datasets` writes them."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.cli.main import main
from sightline.formats.groups import read_groups

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

STRUCT = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
SCHEMA = pyarrow.schema(
    [
        ("Index", pyarrow.int64()),
        ("image", STRUCT),
        ("more", pyarrow.list_(STRUCT)),
        ("Question_Type ", pyarrow.string()),
    ]
)


def encoded(colour: str, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 48), colour).save(file, kind)
    return file.getvalue()


def cell(content: bytes | None, path: str | None = "x.png") -> dict[str, Any]:
    return {"bytes": content, "path": path}


def written(path: Path, *rows: tuple[Any, ...]) -> str:
    table = pyarrow.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA
    )
    parquet.write_table(table, path)
    return str(path)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_parts_become_one_file_of_records_and_each_image_one_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    red, blue, green = encoded("red"), encoded("blue", "JPEG"), encoded("green")
    (tmp_path / "green.png").write_bytes(green)
    first = written(tmp_path / "a-0.parquet", (0, cell(red), [cell(blue), cell(red)], "yes_no"))
    second = written(
        tmp_path / "a-1.parquet", (1, cell(None, "green.png"), None, None), (2, cell(None, None), [], "é")
    )
    assert main(["data", "unpack", first, second, "--name", "made", "--quiet"]) == 0
    assert capsys.readouterr().out == "data/made/records.jsonl: 3 records, 3 images\n"
    records = [json.loads(line) for line in (tmp_path / "data/made/records.jsonl").read_text().splitlines()]
    assert [record["Index"] for record in records] == [0, 1, 2]
    assert [record["Question_Type"] for record in records] == ["yes_no", None, "é"]
    named = [records[0]["image"], *records[0]["more"], records[1]["image"]]
    assert [(tmp_path / "data/made" / name).read_bytes() for name in named] == [red, blue, red, green]
    assert [Path(name).suffix for name in named] == [".png", ".jpeg", ".png", ".png"]
    assert (records[1]["more"], records[2]["image"], records[2]["more"]) == (None, None, [])
    assert main(["data", "unpack", first, "--name", "made", "--quiet"]) == 2
    assert "exists already" in capsys.readouterr().err


def test_the_same_part_twice_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = written(tmp_path / "a-0.parquet", (0, cell(encoded("red")), None, ""))
    other = written(tmp_path / "a-1.parquet", (1, cell(encoded("blue")), None, ""))
    copy = tmp_path / "a-0 (1).parquet"
    copy.write_bytes(Path(first).read_bytes())
    assert main(["data", "unpack", first, other, str(copy), "--quiet"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in (str(copy), f"has the content of {first}", "each part"))
    assert not (tmp_path / "data").exists()


def test_a_groups_file_is_made_of_the_records(tmp_path: Path) -> None:
    rows = [(number, cell(encoded("red")), [cell(encoded("blue"))], "Which?") for number in range(2)]
    file = written(tmp_path / "hub.parquet", *rows)
    assert main(["data", "unpack", file, "--quiet"]) == 0
    words = ["data/hub/records.jsonl", "--group", "Index", "--prompt", "Question_Type", "--to", "made"]
    assert main(["data", "groups", *words, "--image", "image", "more", "--quiet"]) == 0
    lines = read_groups(tmp_path / "made/records/groups.jsonl")
    contents = [[(tmp_path / "made/records" / name).read_bytes() for name in line.images] for line in lines]
    assert contents == [[encoded("red"), encoded("blue")]] * 2


@pytest.mark.parametrize("damaged", [b"no image", encoded("red")[:-30], encoded("red", "JPEG")[:400]])
def test_a_damaged_image_is_named_by_file_row_and_column_and_leaves_no_folder(
    damaged: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = (0, cell(encoded("red")), None, "")
    file = written(tmp_path / "a.parquet", good, (1, cell(encoded("red")), [cell(damaged)], ""))
    assert main(["data", "unpack", file, "--quiet"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in ("a.parquet", "row 2", "more", "its image:", "get it again"))
    assert not (tmp_path / "data/a").exists()


def test_a_truncated_file_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(written(tmp_path / "a.parquet", (0, cell(encoded("red")), None, "")))
    file.write_bytes(file.read_bytes()[:-9])
    assert main(["data", "unpack", str(file), "--quiet"]) == 2
    assert "broken or truncated" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "begins"),
    [
        (b"<!DOCTYPE html>\n<html>Sign in, or not</html>\n", "'<!DOCTYPE html>"),
        (b"some,text\nmore,text\n", "'some,text"),
        (b"<html>PAR1", "'<html>PAR1'"),
        (b"", "nothing: it is empty"),
    ],
)
def test_another_file_with_the_name_of_a_parquet_file_is_refused(
    content: bytes, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.parquet").write_bytes(content)
    assert main(["data", "unpack", "h.parquet", "--quiet"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"h.parquet: is not a Parquet file; it begins with {begins}" in said
    assert not (tmp_path / "data/h").exists()


def test_a_file_that_only_begins_as_a_parquet_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "h.parquet").write_bytes(b"PAR1 and then some text, long enough for a footer")
    assert main(["data", "unpack", "h.parquet", "--quiet"]) == 2
    assert "broken or truncated" in capsys.readouterr().err
