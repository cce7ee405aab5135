"""A finished folder of synthetic scenes is checked and left; other settings need --force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.builders.folder import read_manifest
from sightline.cli.main import main
from sightline.formats.files import changed_files


def build(out: Path, *more: str) -> int:
    return main(["build", "scenes", "--benchmark", "codis", "--count", "3", "--out", str(out), *more])


def stamps(out: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}


def test_a_finished_folder_is_left_as_it_is(tmp_path: Path) -> None:
    assert build(tmp_path) == 0
    before = stamps(tmp_path)
    assert build(tmp_path) == 0
    assert stamps(tmp_path) == before
    manifest = read_manifest(tmp_path / "codis")
    assert (manifest.kind, manifest.settings["count"]) == ("scenes", 3)
    assert changed_files(tmp_path / "codis", manifest.made) == []


def test_other_settings_are_refused_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert build(tmp_path) == 0
    before = stamps(tmp_path)
    assert build(tmp_path, "--seed", "4") == 2
    assert "holds another build: seed 0 instead of 4" in capsys.readouterr().err
    assert stamps(tmp_path) == before
    assert build(tmp_path, "--seed", "4", "--force") == 0
    assert read_manifest(tmp_path / "codis").settings["seed"] == 4


def test_a_changed_file_is_reported_and_an_unfinished_folder_is_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tmp_path) == 0
    data = tmp_path / "codis" / "data.json"
    content = data.read_bytes()
    data.write_text(json.dumps([]))
    assert build(tmp_path) == 2
    assert "missing or changed, first data.json" in capsys.readouterr().err
    (tmp_path / "codis" / "manifest.json").unlink()
    assert build(tmp_path) == 0
    assert data.read_bytes() == content
