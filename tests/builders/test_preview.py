"""A sheet shows groups as they were built, within its bounds, the same for the same seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sightline.builders.preview import CELL, LONGEST, draw_folder, draw_lines
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.groups import GroupLine, write_groups

COLOURS = {"original": (200, 0, 0), "m0": (0, 200, 0), "m1": (0, 0, 200)}
Pixels = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def fill(folder: Path, groups: int, variants: dict[str, tuple[int, int, int]] = COLOURS) -> Path:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(groups):
        for variant, colour in variants.items():
            name = f"images/g{number}_{variant}.png"
            Image.new("RGB", (300, 200), colour).save(folder / name)
            lines.append(
                GroupLine(f"g{number}", variant, (name,), "What?", references=("x",), labels={"v": variant})
            )
    write_groups(lines, folder / "groups.jsonl")
    return folder


def drawn(path: Path) -> Pixels:
    image = Image.open(path)
    assert image.format == "PNG"
    return np.asarray(image)


def columns(image: Pixels, colour: tuple[int, int, int]) -> tuple[int, int]:
    """From where to where a colour reaches across the sheet."""
    found = np.nonzero((image == colour).all(axis=2).any(axis=0))[0]
    return int(found.min()), int(found.max())


def test_a_row_shows_the_original_first_and_all_variants_beside_each_other(tmp_path: Path) -> None:
    fill(tmp_path, 2, {"m0": COLOURS["m0"], "original": COLOURS["original"], "m1": COLOURS["m1"]})
    draw_folder(tmp_path, tmp_path / "s.png")
    image = drawn(tmp_path / "s.png")
    places = [columns(image, COLOURS[variant]) for variant in ("original", "m0", "m1")]
    assert [last - first + 1 for first, last in places] == [CELL] * 3
    assert places[0][1] < places[1][0]
    assert places[1][1] < places[2][0]


def test_a_sheet_has_one_row_per_group_up_to_the_requested_number(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    for rows, seen in ((1, 1), (3, 3), (9, 5)):
        draw_folder(tmp_path, tmp_path / "s.png", rows=rows)
        red = (drawn(tmp_path / "s.png") == COLOURS["original"]).all(axis=2).any(axis=1).astype(int)
        assert (np.diff(red) == 1).sum() == seen


def test_the_seed_chooses_the_groups(tmp_path: Path) -> None:
    fill(tmp_path, 40)
    sheets = []
    for seed in (1, 1, 2):
        draw_folder(tmp_path, tmp_path / "s.png", rows=3, seed=seed)
        sheets.append((tmp_path / "s.png").read_bytes())
    assert sheets[0] == sheets[1]
    assert sheets[0] != sheets[2]


def test_without_a_seed_the_first_groups_are_drawn_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, place, text, **_: written.append(text))
    lines = [GroupLine(f"g{number}", "v", (), "What?") for number in range(40)]
    draw_lines(lines, tmp_path, tmp_path / "s.png", rows=3)
    assert [text for text in written if text.startswith("g")] == [
        f"g{number}, reference: none" for number in range(3)
    ]


@pytest.mark.parametrize(("groups", "variants"), [(40, 3), (2, 60)])
def test_a_sheet_never_exceeds_4000_pixels_a_side(tmp_path: Path, groups: int, variants: int) -> None:
    fill(tmp_path, groups, {f"v{number}": (number, 100, 100) for number in range(variants)})
    draw_folder(tmp_path, tmp_path / "s.png", rows=100)
    height, width, _ = drawn(tmp_path / "s.png").shape
    assert max(width, height) <= LONGEST
    assert max(width, height) > LONGEST * 0.9


def test_a_row_names_references_and_the_labels_that_distinguish_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, place, text, **_: written.append(text))
    lines = [
        GroupLine("room", "original", (), "Where?", references=("bar", "pub"), labels={"class": "bar"}),
        GroupLine("room", "m0", (), "Where?", labels={"class": "bar", "colour": "red", "tags": ("a", "b")}),
    ]
    write_groups(lines, tmp_path / "groups.jsonl")
    draw_folder(tmp_path, tmp_path / "s.png")
    assert written[:2] == ["room, reference: bar | pub", "Where?"]
    assert "original" in written
    assert " ".join(written).count("no image") == 2
    assert "m0: colour red; tags a, b" in " ".join(written)


def test_the_text_of_each_rephrasing_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, place, text, **_: written.append(text))
    write_groups(
        [GroupLine("q", "r1", (), "What is it?"), GroupLine("q", "r2", (), "Name it, " + "please " * 99)],
        tmp_path / "groups.jsonl",
    )
    draw_folder(tmp_path, tmp_path / "s.png")
    assert "r1 | What is it?" in " ".join(written)
    assert written[-1].endswith("...")


def test_an_unreadable_image_is_marked_as_missing(tmp_path: Path) -> None:
    fill(tmp_path, 1)
    (tmp_path / "images" / "g0_m1.png").write_text("404")
    (tmp_path / "images" / "g0_m0.png").unlink()
    draw_folder(tmp_path, tmp_path / "s.png")
    image = drawn(tmp_path / "s.png")
    assert (image == COLOURS["original"]).all(axis=2).any()
    assert (image == (178, 34, 34)).all(axis=2).sum() > 20


def test_texts_of_any_script_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = ImageDraw.ImageDraw.text
    written: list[str] = []

    def write(self: ImageDraw.ImageDraw, place: Any, words: str, *args: Any, **options: Any) -> None:
        written.append(words)
        text(self, place, words, *args, **options)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", write)
    prompt = "\U0001f9ff 什么 ما هذا"
    write_groups([GroupLine("g", "v", (), prompt, references=("Vlčí důl",))], tmp_path / "groups.jsonl")
    missing = draw_folder(tmp_path, tmp_path / "s.png")
    shown = "".join("?" if character in missing else character for character in "g, reference: Vlčí důl")
    assert "".join(written).startswith(shown)
    assert (drawn(tmp_path / "s.png") != 255).any()


def test_a_sheet_without_groups_or_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        draw_folder(tmp_path, tmp_path / "s.png")
    fill(tmp_path, 1)
    with pytest.raises(EnvironmentFailedError):
        draw_folder(tmp_path, tmp_path / "no" / "s.png")
