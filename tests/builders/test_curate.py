"""Curation: at which step an image falls, which of two is kept, and what is written of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from PIL import Image

from sightline.builders.curate import (
    CurationOptions,
    Funnel,
    count_words,
    curate,
    without_false_words,
)
from sightline.builders.folder import read_manifest
from sightline.builders.near_duplicates import DISTANCE
from sightline.builders.sources import check_images, images_in
from sightline.cli.build_questions import REASONS
from sightline.cli.main import main
from sightline.images import BadImage
from sightline.models.ocr import Word
from sightline.store.store import Store
from sightline.types import ImageFile

pytest.importorskip("imagehash", reason="curating needs the extra `build`")

Capture = pytest.CaptureFixture[str]

TEXTS = {"menu": (9, 0.6), "sign": (2, 0.1), "wide": (5, 0.2), "photo": (0, 0.0)}
"""What stands in images by the beginning of their names: words, and the share of the area they cover."""


class Signs:
    """Reads in each image what TEXTS says of it; one whose name begins with 'odd' cannot be read."""

    name = "signs"
    identity = "signs 1"
    reading: ClassVar[list[str]] = []

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        name = Path(image.path).stem
        self.reading.append(name)
        if name.startswith("odd"):
            raise BadImage(f"{image.path}: the reader stumbles")
        words, share = TEXTS[name.split("-")[0]]
        high = image.height * share / max(words, 1)
        return tuple(Word("word", (0, n * high, image.width, (n + 1) * high), 1.0) for n in range(words))


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sightline.models.ocr.RapidOcr", Signs)
    monkeypatch.setattr(Signs, "reading", [])
    monkeypatch.chdir(tmp_path)


def photograph(seed: int, side: int = 120) -> Image.Image:
    small = np.random.default_rng(seed).integers(0, 256, (9, 9, 3), dtype=np.uint8)
    return Image.fromarray(small).resize((side, side * 3 // 4), Image.Resampling.BICUBIC)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Six images, one of them three times: as it is, as the same file, and larger; and one broken file."""
    folder = tmp_path / "raw"
    (folder / "more").mkdir(parents=True)
    for seed, name in enumerate(("menu", "odd", "photo", "sign", "sign-2", "wide")):
        photograph(seed).save(folder / f"{name}.png")
    (folder / "more" / "wide.png").write_bytes((folder / "wide.png").read_bytes())
    photograph(5, 300).save(folder / "more" / "wide-large.jpg", quality=60)
    (folder / "broken.png").write_text("no image")
    return folder


def run(raw: Path, how: CurationOptions, **more: Any) -> Funnel:
    store = Store.open("s.db")
    try:
        return curate(check_images(images_in(raw)), how, store, **more)
    finally:
        store.close()


def fallen(funnel: Funnel) -> dict[str, str]:
    return {name: fate.step for name, fate in funnel.statuses.items() if fate.step}


def command(*words: object) -> int:
    return main(["build", "curate", *map(str, words), "--processes", "1", "--quiet"])


# Steps


def test_the_first_of_equal_files_and_the_largest_of_near_duplicates_is_kept(raw: Path) -> None:
    funnel = run(raw, CurationOptions())
    assert fallen(funnel) == {"broken.png": "broken", "wide.png": "copy", "more/wide.png": "near_duplicate"}
    assert funnel.statuses["wide.png"].like == "more/wide.png"
    near_duplicate = funnel.statuses["more/wide.png"]
    assert near_duplicate.like == "more/wide-large.jpg"
    assert near_duplicate.distance is not None
    assert near_duplicate.distance <= DISTANCE
    assert list(funnel.kept) == [
        "menu.png",
        "more/wide-large.jpg",
        "odd.png",
        "photo.png",
        "sign-2.png",
        "sign.png",
    ]
    assert not Signs.reading


def test_every_step_counts_the_images_that_it_received_and_dropped(raw: Path) -> None:
    funnel = run(raw, CurationOptions(max_text=0.5, top=2), reader=Signs())
    assert [(step.step, step.came, step.dropped) for step in funnel.steps] == [
        ("broken", 9, 1),
        ("copy", 8, 1),
        ("undecoded", 7, 0),
        ("near_duplicate", 7, 1),
        ("unreadable", 6, 1),
        ("text", 5, 1),
        ("words", 4, 2),
    ]
    assert [step.left for step in funnel.steps] == [8, 7, 7, 6, 5, 4, 2]
    assert list(funnel.kept) == ["more/wide-large.jpg", "sign-2.png"]
    menu = funnel.statuses["menu.png"]
    assert (menu.step, menu.words) == ("text", 9)
    assert menu.text == pytest.approx(0.6)
    assert menu.why == "text covers 60.0 % of it, more than 50 %"
    assert funnel.statuses["sign.png"].why == "number 3 by words, with 2"
    assert funnel.statuses["odd.png"].why == "the reader stumbles"


def test_text_that_covers_exactly_the_largest_share_is_accepted(raw: Path) -> None:
    wide = run(raw, CurationOptions(max_text=0.2), reader=Signs())
    assert "more/wide-large.jpg" in wide.kept
    assert fallen(run(raw, CurationOptions(max_text=0.19), reader=Signs()))["more/wide-large.jpg"] == "text"


@pytest.mark.parametrize(
    ("text", "box", "kept"),
    [
        ("8", (0, 0, 100, 100), False),
        ("HYMP", (0, 0, 100, 100), False),
        ("Ads", (0, 0, 50, 100), True),
        ("po", (0, 0, 30, 100), False),
        (" 9 ", (0, 0, 10, 100), True),
        ("YES", (5, 5, 90, 45), True),
    ],
)
def test_an_image_that_ocr_takes_for_a_letter_has_no_text(
    text: str, box: tuple[float, float, float, float], kept: bool
) -> None:
    assert bool(without_false_words([Word(text, box, 0.6)], 100, 100)) is kept


def test_a_shape_taken_for_a_letter_counts_neither_as_text_nor_as_a_word(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(self: Signs, image: ImageFile) -> tuple[Word, ...]:
        return (Word("S", (0, 0, image.width, image.height), 0.7),)

    monkeypatch.setattr(Signs, "read", read)
    funnel = run(raw, CurationOptions(max_text=0.3), reader=Signs())
    assert {(fate.words, fate.text) for fate in funnel.statuses.values() if not fate.step} == {(0, 0.0)}
    assert "text" not in fallen(funnel).values()


def test_a_line_of_several_words_counts_as_several() -> None:
    box = (0.0, 0.0, 1.0, 1.0)
    assert count_words([Word("NO PARKING  here", box, 1.0), Word("9", box, 1.0)]) == 4


# From the command line


def test_kept_images_are_copied_and_every_image_has_a_status(raw: Path, capsys: Capture) -> None:
    assert command(raw, "--max-text", 0.5, "--out", "out") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "is a near-duplicate 7 1 6" in shown
    assert "text covers too much of the area 5 1 4" in shown
    kept = {"more-wide-large.jpg", "photo.png", "sign-2.png", "sign.png"}
    assert {path.name for path in Path("out/images").iterdir()} == kept
    assert Path("out/images/photo.png").read_bytes() == (raw / "photo.png").read_bytes()
    report = json.loads(Path("out/curation.json").read_text())
    assert (report["images"], report["kept"], len(report["statuses"])) == (9, 4, 9)
    assert report["settings"] == {
        "distance": DISTANCE, "max_text": 0.5, "top": None, "reader": "signs 1"
    }  # fmt: skip
    manifest = read_manifest(Path("out"))
    assert manifest.images == 4
    assert manifest.dropped.keys() == {"broken", "menu", "more-wide", "odd", "wide"}
    assert manifest.versions.keys() == {"sightline", "imagehash"}
    assert manifest.made.keys() == {"curation.json", *(f"images/{name}" for name in kept)}


def test_a_second_call_runs_no_ocr_and_writes_the_same_bytes(raw: Path, capsys: Capture) -> None:
    words = (raw, "--top", 3, "--out", "out")
    assert command(*words) == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    read = [name for name in Signs.reading if name != "odd"]
    Signs.reading.clear()
    assert command(*words) == 0
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    assert (len(read), Signs.reading) == (5, ["odd"])
    assert command(raw, "--top", 2, "--out", "out") == 2
    assert "holds another build: top 3 instead of 2" in capsys.readouterr().err
    assert command(raw, "--top", 2, "--out", "out", "--force") == 0
    assert len(list(Path("out/images").iterdir())) == 2


def test_the_output_folder_cannot_contain_the_input(raw: Path, capsys: Capture) -> None:
    assert command(raw, "--out", "out") == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    for source in ("out/images", "out", "out/images/photo.png"):
        assert command(source, "--out", "out", "--force", "--distance", 9) == 2
        assert "out: " in capsys.readouterr().err
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["raw", "--distance", "128"], "--distance 128 is out of range"),
        (["raw", "--max-text", "30"], "--max-text 30.0 is not a share"),
        (["raw", "--top", "0"], "--top leaves nothing"),
        (["raw", "--limit", "0"], "--limit leaves nothing"),
        (["raw", "--out", "raw/out"], "is inside the image folder"),
        (["gone"], "no such folder or file"),
    ],
)
def test_a_wrong_call_is_refused_before_anything_is_written(
    raw: Path, words: list[str], message: str, capsys: Capture
) -> None:
    assert command(*words) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"raw"}


def test_without_a_remaining_image_nothing_is_built(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "raw").mkdir()
    photograph(0).save(tmp_path / "raw" / "menu.png")
    assert command("raw", "--max-text", 0.5, "--out", "out") == 2
    assert "all 1 images are dropped (menu.png: text: text covers 60.0 %" in capsys.readouterr().err
    assert not Path("out").exists()


def test_help_states_the_default_distance(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["build", "curate", "--help"])
    assert f"(default: {DISTANCE})" in " ".join(capsys.readouterr().out.split())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes nothing")
def test_an_unwritable_out_is_refused_before_any_image_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    store = tmp_path / "s.db"
    assert main(["build", "curate", str(tmp_path), "--out", "/proc/x/c", "--store", str(store)]) == 2
    assert "/proc/x/c: cannot be written" in capsys.readouterr().err
    assert not store.exists()


def test_the_docs_list_every_step() -> None:
    page = Path(__file__, "../../../docs/curating.md").resolve().read_text()
    table = page.partition("| step |")[2].partition("\n\n")[0].splitlines()[2:]
    steps = {step for row in table for step in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert steps == set(REASONS)
