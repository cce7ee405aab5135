"""What a killed process left of a file is removed by the next one that writes it, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sightline.formats import files
from sightline.formats.files import AtomicFile, temporary_folder, write_atomically


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Folders are listed when a process first writes there."""
    files._found.cache_clear()


def killed(path: Path) -> Path:
    """A temporary file whose process ended without removing it."""
    if os.fork() == 0:
        AtomicFile(path).__enter__().write(b"half")
        os._exit(9)
    assert os.wait()[1] == 9 << 8
    (left,) = path.parent.glob(f".{path.name}.*.tmp")
    return left


def test_a_file_removes_its_own_leftovers_and_those_of_no_other_name(tmp_path: Path) -> None:
    mine, others = killed(tmp_path / "a.json"), killed(tmp_path / "b.json")
    foreign = tmp_path / ".a.json.backup.tmp"
    foreign.write_text("of an editor")
    write_atomically(tmp_path / "a.json", [b"{}"])
    assert not mine.exists()
    assert sorted(tmp_path.iterdir()) == sorted([foreign, others, tmp_path / "a.json"])


def test_what_a_live_process_writes_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with AtomicFile(path) as first, temporary_folder(path) as folder:
        first.write(b"first")
        (folder / "part").touch()
        files._found.cache_clear()
        write_atomically(path, [b"second"])
        assert (folder / "part").exists()
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_of_a_killed_process_is_removed_with_its_files(tmp_path: Path) -> None:
    left = tmp_path / ".data.1.0123abcd.tmp"
    (left / "images").mkdir(parents=True)
    (left / "images" / "a.png").touch()
    with temporary_folder(tmp_path / "data") as fresh:
        assert list(tmp_path.iterdir()) == [fresh]
        (fresh / "b").touch()
        fresh.rename(tmp_path / "data")
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "b"]


def test_a_link_named_like_a_leftover_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / ".data.1.0123abcd.tmp").symlink_to(tmp_path / "kept")
    with temporary_folder(tmp_path / "data"):
        assert (tmp_path / "kept").is_dir()
