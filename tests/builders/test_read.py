"""`build read`: each image is read once, and written down with words, boxes, and how sure they are."""

from __future__ import annotations

import json
import os
import pickle
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest
from PIL import Image

from sightline.builders.read import images_at, read_all
from sightline.builders.run import map_in_processes
from sightline.builders.sources import check_images
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.images import BadImage
from sightline.models.ocr import Word
from sightline.store.store import Store, read_images
from sightline.types import ImageFile

Capture = pytest.CaptureFixture[str]


class Signs:
    """Reads two words that stand side by side in every image, and nothing in a square one of 5 pixels."""

    name = "signs"
    identity = "signs 1"
    reading: ClassVar[list[str]] = []
    made: ClassVar[list[int]] = []

    def __init__(self, threads: int = 0) -> None:
        self.made.append(threads)

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        self.reading.append(Path(image.path).name)
        if image.width == image.height == 4:
            raise BadImage(f"{image.path}: its pixels cannot be read")
        if image.width == image.height == 5:
            return ()
        return (Word("EXIT", (0.0, 0.0, 40.0, 10.0), 0.5), Word("left", (100.0, 1.0, 140.0, 11.0), 1.0))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sightline.models.ocr.RapidOcr", Signs)
    monkeypatch.setattr(Signs, "reading", [])
    monkeypatch.setattr(Signs, "made", [])
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A sign, its twin in another folder, an empty square, and no image at all."""
    folder = tmp_path / "photos"
    for name, size in {"a/sign": (9, 4), "b/twin": (9, 4), "empty": (5, 5)}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, "red").save(folder / f"{name}.png")
    (folder / "broken.png").write_text("no image")
    return folder


def read(*words: object) -> int:
    return main(["build", "read", *map(str, words), "--processes", "1", "--quiet"])


def lines(file: str = "read.jsonl") -> dict[str, list[dict[str, object]]]:
    return {line["image_id"]: line["words"] for line in map(json.loads, Path(file).read_text().splitlines())}


def test_every_image_has_a_line_and_equal_files_are_read_once(photos: Path, capsys: Capture) -> None:
    assert read(photos, "--out", "read.jsonl") == 1
    exit_, left = (
        {"text": "EXIT", "box": [0, 0, 40, 10], "confidence": 0.5},
        {"text": "left", "box": [100, 1, 140, 11], "confidence": 1.0},
    )
    assert lines() == {"a/sign.png": [exit_, left], "b/twin.png": [exit_, left], "empty.png": []}
    assert len(Signs.reading) == 2
    told = capsys.readouterr().err
    assert "read.jsonl: 3 of 4 images read" in told
    assert "not an image in a known format" in told
    assert "broken.png" in told
    first = json.loads(Path("read.jsonl").read_text().splitlines()[0])
    assert (first["reader"], len(first["digest"])) == ("signs 1", 64)


def test_a_second_call_runs_no_ocr_and_replaces_no_file(photos: Path, capsys: Capture) -> None:
    read(photos, "--out", "read.jsonl")
    written = Path("read.jsonl").read_bytes()
    count = len(Signs.reading)
    assert read(photos, "--out", "read.jsonl") == 2
    assert "exists already" in capsys.readouterr().err
    assert read(photos, "--out", "read.jsonl", "--force") == 1
    assert (len(Signs.reading), Path("read.jsonl").read_bytes()) == (count, written)


@pytest.mark.parametrize(("how", "text"), [("ocr", "EXIT left"), ("layout", "EXIT      left")])
def test_the_text_is_printed_in_reading_order_or_laid_out(
    photos: Path, capsys: Capture, how: str, text: str
) -> None:
    assert read(photos / "a" / "sign.png", "--text", how) == 0
    assert capsys.readouterr().out == f"== {photos / 'a' / 'sign.png'}\n{text}\n\n"
    assert [path.name for path in Path().iterdir() if path.suffix == ".jsonl"] == []


def test_files_and_folders_may_be_mixed_and_keep_distinct_names(photos: Path) -> None:
    found = images_at([photos / "a", photos / "b", photos / "empty.png"])
    assert list(found) == [str(photos / name) for name in ("a/sign.png", "b/twin.png", "empty.png")]
    assert list(images_at([photos / "a"])) == ["sign.png"]
    with pytest.raises(UserError, match="no such image"):
        images_at([photos / "gone.png"])
    with pytest.raises(UserError, match="no such folder"):
        images_at([photos / "gone"])


def test_an_image_on_which_ocr_fails_affects_no_other_image(photos: Path, capsys: Capture) -> None:
    Image.new("RGB", (4, 4)).save(photos / "hard.png")
    (photos / "broken.png").unlink()
    assert read(photos, "--out", "read.jsonl") == 1
    assert "hard.png" not in lines()
    assert "  its pixels cannot be read: hard.png\n" in capsys.readouterr().err
    assert read(photos, "--out", "read.jsonl", "--force") == 1
    assert Signs.reading.count("hard.png") == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["photos"], "neither --out nor --text is given"),
        (["photos", "--out", "gone/read.jsonl"], "no such folder"),
        (["photos", "--out", "read.jsonl", "--threads", "0"], "--threads is too small"),
        (["photos", "--out", "read.jsonl", "--limit", "0"], "--limit leaves nothing"),
        (["nothing", "--text", "ocr"], "no such folder or file"),
        (["photos", "--txt", "ocr"], "did you mean '--text'"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_read(
    photos: Path, capsys: Capture, words: list[str], message: str
) -> None:
    assert read(*words) == 2
    assert message in capsys.readouterr().err
    assert (Signs.reading, list(Path().glob("*.db"))) == ([], [])


def test_a_folder_without_readable_images_is_a_user_error(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty.png").touch()
    assert read("empty.png", "--text", "ocr") == 2
    assert "all 1 images are dropped" in capsys.readouterr().err


def test_the_cores_are_divided_among_processes(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cores = 5
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    for words, threads in (([], cores), (["--threads", "3"], 3)):
        read(photos / "empty.png", "--text", "ocr", *words)
        assert Signs.made[-1] == threads
    read_with = ["build", "read", str(photos / "empty.png"), "--text", "ocr", "--quiet"]
    main(read_with)
    assert Signs.made[-1] == 1
    main([*read_with, "--processes", str(2 * cores)])
    assert Signs.made[-1] == 1


def test_ocr_results_of_worker_processes_are_cached(photos: Path, tmp_path: Path) -> None:
    gallery = check_images(images_at([photos]))
    store = Store.open(str(tmp_path / "s.db"))
    # What goes to and from processes must survive pickling, the reasons too.
    again = pickle.loads(pickle.dumps(BadImage("a.png: broken")))
    assert (type(again), str(again)) == (BadImage, "a.png: broken")
    over = partial(map_in_processes, processes=1)
    one = dict(read_images(gallery.files.values(), Signs(), store, over))
    assert len(one) == len(Signs.reading) == 2
    assert list(read_all(gallery, Signs(), store)) == ["a/sign.png", "b/twin.png", "empty.png"]
    assert len(Signs.reading) == 2
    store.close()
