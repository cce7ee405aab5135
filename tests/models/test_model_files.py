"""Digests of files: they follow the content, and big files are read once."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from sightline.formats.files import file_digest
from sightline.models import model_files
from sightline.models.model_files import answer_files, digest_of_files


@pytest.fixture(autouse=True)
def small_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(model_files, "LARGE", 8)
    model_files._content.cache_clear()


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a.json").write_text("{}")
    (folder / "b.bin").write_text("large enough")
    return folder


PARTS = [Path("b.bin"), Path("a.json")]


def test_the_digest_is_that_of_names_and_contents(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    lines = "".join(
        f"{name} {hashlib.sha256((folder / name).read_bytes()).hexdigest()}\n" for name in ("a.json", "b.bin")
    )
    assert digest_of_files(folder, PARTS) == hashlib.sha256(lines.encode()).hexdigest()


def test_a_large_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, read = _folder(tmp_path), []

    def watched(place: str | Path) -> str:
        read.append(Path(place).name)
        return file_digest(place)

    monkeypatch.setattr("sightline.models.model_files.file_digest", watched)
    digest_of_files(folder, PARTS)
    model_files._content.cache_clear()
    read.clear()
    digest_of_files(folder, PARTS)
    assert read == ["a.json"], "as another process would: the small one is read again, the large one is known"
    os.utime(folder / "b.bin", ns=(1, 1))
    digest_of_files(folder, PARTS)
    assert read == ["a.json", "b.bin"]


def test_a_cache_that_is_damaged_or_cannot_be_written_costs_nothing_but_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _folder(tmp_path)
    expected = digest_of_files(folder, PARTS)
    for file in (tmp_path / "cache" / "sightline" / "digests").iterdir():
        file.write_bytes(b"\xff half")
    model_files._content.cache_clear()
    assert digest_of_files(folder, PARTS) == expected
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    model_files._content.cache_clear()
    assert digest_of_files(folder, PARTS) == expected


def test_other_bytes_of_the_same_size_and_time_have_another_digest(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    before, place = digest_of_files(folder, PARTS), folder / "b.bin"
    stamp = place.stat()
    place.write_text("LARGE enough")
    os.utime(place, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert digest_of_files(folder, PARTS) != before


def test_what_training_left_has_no_part_and_an_adapter_has(tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    before = digest_of_files(folder, answer_files(folder))
    for name in ("README.md", "trainer_state.json", "optimizer.pt", ".gitattributes"):
        (folder / name).write_text("x")
    assert digest_of_files(folder, answer_files(folder)) == before
    (folder / "adapter_model.safetensors").write_text("x")
    assert digest_of_files(folder, answer_files(folder)) != before
