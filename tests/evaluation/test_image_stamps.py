"""A plan is used again only if each of its images is the same file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline.evaluation import image_stamps
from sightline.evaluation.image_stamps import StampRecorder, are_unchanged
from sightline.images import FoundImage, find_image
from sightline.types import ImageRef


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for path in paths:
        path.write_text(path.name)
    return paths


def _recorded(images: list[Path]) -> StampRecorder:
    recorder = StampRecorder()
    for path in images:
        recorder.add([find_image(ImageRef(str(path)))])
    return recorder


def _touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def _replace(path: Path) -> None:
    path.rename(path.with_suffix(".old"))
    path.write_text(path.name)


@pytest.mark.parametrize("together", [2, 100])
@pytest.mark.parametrize("change", [None, _touch, _replace, Path.unlink])
@pytest.mark.parametrize("number", [0, 4])
def test_any_change_of_any_image_is_seen(
    images: list[Path],
    change: Callable[[Path], None] | None,
    number: int,
    together: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(image_stamps, "IMAGES_TOGETHER", together)
    parts = _recorded(images).parts()
    assert len(parts) == -(-5 // together)
    if change is not None:
        change(images[number])
    assert are_unchanged(parts) is (change is None)


def test_an_image_that_this_process_cannot_name_has_changed(images: list[Path]) -> None:
    recorder = StampRecorder()
    recorder.add([FoundImage("a\0.png", str(images[0]), images[0].stat())])
    assert not are_unchanged(recorder.parts())
