"""Labels of any script are drawn with a font that has their characters; what no font has is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from sightline.builders.preview import NO_GLYPH, LabelFont, draw_lines, font_folders
from sightline.formats.groups import GroupLine


def drawn(font: LabelFont, text: str) -> bytes:
    canvas = Image.new("L", (200, 24), "white")
    font.draw(ImageDraw.Draw(canvas), (2, 2), text, "black")
    return canvas.tobytes()


def test_english_labels_need_no_font_of_the_system(tmp_path: Path) -> None:
    font = LabelFont(14, folders=[tmp_path / "none"])
    assert drawn(font, "cafe, 50 %") != drawn(font, "")
    assert font.missing == set()


@pytest.mark.parametrize("text", ["Кошка", "قطة", "αβγ"])
def test_a_script_that_a_font_of_the_system_has_is_drawn(text: str) -> None:
    if not any(folder.is_dir() for folder in font_folders()):
        pytest.skip("no fonts")
    font = LabelFont(14)
    shown = drawn(font, text)
    if font.missing:
        pytest.skip("no font has this script")
    assert shown != drawn(font, NO_GLYPH * len(text)), "no boxes and no question marks"
    assert font.getlength(text + "a") > font.getlength(text)


def test_characters_that_no_font_has_are_question_marks_and_reported(tmp_path: Path) -> None:
    font = LabelFont(14, folders=[tmp_path])
    assert drawn(font, "a中b") == drawn(font, "a?b")
    assert font.missing == {"中"}


def test_a_preview_says_which_characters_no_font_has(tmp_path: Path) -> None:
    tangsa = "\N{TANGSA DIGIT ZERO}"
    line = GroupLine(group="g", variant="original", prompt=f"What? {tangsa}", references=("cafe",))
    assert draw_lines([line], tmp_path, tmp_path / "sheet.png") == {tangsa}
