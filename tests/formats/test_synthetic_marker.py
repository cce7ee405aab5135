"""Drawn data are known by their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.formats.files import is_synthetic
from training.scenes.build import generate_mmr3


def test_a_synthetic_folder_and_a_task_in_it_are_recognised(tmp_path: Path) -> None:
    drawn = generate_mmr3(tmp_path / "data" / "mmr3", groups=1)
    assert is_synthetic(drawn)
    assert is_synthetic(drawn / "context")
    assert not is_synthetic(tmp_path / "data")
    assert not is_synthetic(None)


def test_the_marker_is_found_from_inside_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = generate_mmr3(tmp_path / "mmr3", groups=1)
    monkeypatch.chdir(drawn / "context")
    assert is_synthetic(Path())
