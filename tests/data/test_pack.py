"""`data pack` makes a data set that `datasets` and mlcroissant open, and `data unpack` the groups again."""

from __future__ import annotations

import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.cli.main import main
from sightline.formats.groups import GroupLine, read_groups, write_groups

pytest.importorskip("pyarrow")

LINES = (
    GroupLine("g1", "original", ("images/a.png", "images/b.jpg"), "Which is red?\nA. one", references=("A",)),
    GroupLine(
        "g1",
        "rephrased",
        ("images/b.jpg",),
        "Quelle… 是?",
        question="Which?",
        references=("red", "crimson"),
        options=("red", "blue", "crimson"),
        labels={"style": "oil", "topics": ("a", "b; c")},
        cluster="c-1",
        facts={"box": [1, 2.5, None], "nested": {"of": True}},
    ),
    GroupLine("g2", "blank", (), "2 + 2?", references=("4",), response="4"),
    GroupLine("g2", "empty", (), "2 + 3?", references=("5",), response=None),
)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "built/images").mkdir(parents=True)
    for name, colour in (("a.png", "red"), ("b.jpg", "blue")):
        Image.new("RGB", (32, 24), colour).save(tmp_path / "built/images" / name)
    write_groups(LINES, tmp_path / "built/groups.jsonl")
    return tmp_path / "built"


def contents(folder: Path) -> list[list[bytes]]:
    return [
        [(folder / image).read_bytes() for image in line.images]
        for line in read_groups(folder / "groups.jsonl")
    ]


def pack(*words: str) -> int:
    return main(["data", "pack", "built/groups.jsonl", "--out", "packed", "--quiet", *words])


def unpack(*files: str) -> int:
    return main(["data", "unpack", *files, "--name", "again", "--quiet"])


def test_a_packed_groups_file_comes_back_byte_for_byte(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pack("--split", "dev") == 0
    assert capsys.readouterr().out == "packed: 2 groups, 4 lines, 2 images\n"
    assert unpack("packed/data/dev.parquet") == 0
    assert capsys.readouterr().out == "data/again/groups.jsonl: 4 records, 2 images\n"
    again = Path("data/again")
    assert (again / "groups.jsonl").read_bytes() == (built / "groups.jsonl").read_bytes()
    assert contents(again) == contents(built)


def test_datasets_loads_the_folder_with_its_images(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    assert pack() == 0
    loaded = datasets.load_dataset("packed", cache_dir="cache")
    assert list(loaded) == ["test"]
    rows = loaded["test"]
    assert rows.features["images"] == datasets.List(datasets.Image())
    for row, line in zip(rows, LINES, strict=True):
        for name in ("group", "variant", "prompt", "question", "cluster"):
            assert row[name] == getattr(line, name), name
        assert (tuple(row["references"]), tuple(row["options"])) == (line.references, line.options)
        for image, path in zip(row["images"], line.images, strict=True):
            assert image.tobytes() == Image.open(built / path).tobytes()
    # What its owner uploads, the Hub writes anew: the rows still become the groups.
    for part in (0, 1):
        rows.shard(2, part).to_parquet(f"hub-{part}.parquet")
    assert unpack("hub-0.parquet", "hub-1.parquet") == 0
    again = Path("data/again")
    assert contents(again) == contents(built)
    plain = [{**json.loads(line), "images": []} for line in (again / "groups.jsonl").open()]
    assert plain == [{**json.loads(line), "images": []} for line in (built / "groups.jsonl").open()]


@pytest.mark.filterwarnings("ignore:ConjunctiveGraph", "ignore:The inplace keyword")
def test_mlcroissant_validates_the_description_and_reads_the_records(
    built: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    assert pack() == 0
    data = mlcroissant.Dataset(jsonld="packed/croissant.json")
    assert data.metadata.issues.errors == set()
    assert "not standard" not in caplog.text
    (file,) = data.metadata.distribution
    packed = Path("packed/data/test.parquet").read_bytes()
    assert file.sha256 == hashlib.sha256(packed).hexdigest()
    for record, line in zip(data.records("lines"), LINES, strict=True):
        assert record["lines/prompt"].decode() == line.prompt
        assert [text.decode() for text in record["lines/references"]] == list(line.references)
        assert json.loads(record["lines/facts"]) == line.facts
        for image, path in zip(record["lines/images"], line.images, strict=True):
            assert image.tobytes() == Image.open(built / path).tobytes()


def test_a_missing_image_leaves_no_folder(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (built / "images/b.jpg").unlink()
    assert pack() == 2
    said = capsys.readouterr().err
    assert "b.jpg" in said
    assert "line 1" in said
    assert not Path("packed").exists()


def hostile(path: str, content: bytes, **more: Any) -> None:
    """A Parquet file with the columns of packed groups and one image of this path."""
    import pyarrow
    from pyarrow import parquet

    texts = ("group", "variant", "prompt", "question", "cluster")
    row = {name: name for name in texts} | {"labels": "{}", "facts": "{}", "options": [], "references": []}
    rows = [{**row, "images": [{"bytes": content, "path": path}], **more}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), "hostile.parquet")


@pytest.mark.parametrize("path", ["../out.png", "/tmp/out.png", "groups.jsonl", "records.jsonl", ".", ""])
def test_an_image_never_leaves_its_folder_and_replaces_no_other_file(path: str, tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (9, 9), "red").save(stream, "PNG")
    hostile(path, stream.getvalue())
    before = set(tmp_path.rglob("*"))
    assert unpack("hostile.parquet") == 0
    (line,) = read_groups(Path("data/again/groups.jsonl"))
    (image,) = line.images
    assert (Path("data/again") / image).read_bytes() == stream.getvalue()
    inside = {Path(os.path.relpath(one, tmp_path)).parts[:2] for one in set(tmp_path.rglob("*")) - before}
    assert inside <= {("data",), ("data", "again")}


@pytest.mark.parametrize(
    ("more", "named"),
    [({"labels": "{"}, "no packed line"), ({"facts": "[1]"}, "no packed line"), ({}, "its image")],
)
def test_a_damaged_row_is_named_and_leaves_no_folder(
    more: dict[str, Any], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile("a.png", b"no image" if not more else b"", **({**more, "images": []} if more else {}))
    assert unpack("hostile.parquet") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert named in said
    assert "row 1" in said
    assert not Path("data/again").exists()
