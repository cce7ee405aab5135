"""Files are read or refused with the position of the error, and written completely or not at all."""

from __future__ import annotations

import gzip
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import (
    AtomicFile,
    read_bytes,
    refuse_overwriting,
    refuse_unwritable,
    write_atomically,
)


def test_gzipped_and_plain_files_read_the_same(tmp_path: Path) -> None:
    plain, zipped = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    plain.write_bytes(b'{"id": "1"}\n')
    zipped.write_bytes(gzip.compress(b'{"id": "1"}\n'))
    assert read_bytes(plain) == read_bytes(zipped)


def test_a_byte_order_mark_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xef\xbb\xbf[]")
    assert read_bytes(path) == b"[]"


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "empty"), (b" \n", "empty"), (gzip.compress(b"[]" * 99, mtime=0)[:-9], "truncated")],
)
def test_empty_and_truncated_files_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_bytes(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(UserError, match=str(path)):
            read_bytes(path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.jsonl"
    write_atomically(path, [b"old"])

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(EnvironmentFailedError, match="No space left"):
        write_atomically(path, [b"new"])
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a file system that takes nothing")
def test_an_unwritable_path_is_refused_before_any_work(tmp_path: Path) -> None:
    refuse_unwritable(tmp_path / "a" / "b")
    refuse_overwriting(tmp_path / "answers.jsonl", force=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match=r"/proc/sightline/out: cannot be written.*--out"):
        refuse_unwritable(Path("/proc/sightline/out"))
    with pytest.raises(UserError, match=r"/proc: cannot be written.*--out"):
        refuse_overwriting(Path("/proc/list.csv"), False)


def test_a_write_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    write_atomically(path, [b"old"])
    write_atomically(path, [b"n", b"ew"])
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_input_of_the_command_is_not_replaced_even_with_force(tmp_path: Path) -> None:
    source, link, other = (tmp_path / name for name in ("a.csv", "link.csv", "b.csv"))
    source.write_text("a")
    other.write_text("b")
    link.symlink_to(source)
    for written, read in ((source, source), (link, source), (source, tmp_path / "x" / ".." / "a.csv")):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(
            UserError, match="is an input of this command and would be replaced; expected another --out"
        ):
            refuse_overwriting(written, True, read=[tmp_path / "gone.csv", read])
    refuse_overwriting(source, True, read=[other, tmp_path / "gone.csv"])


def test_a_link_stays_and_the_file_that_it_names_is_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for name, target in (("a", tmp_path / "folder" / "a"), ("b", Path("folder/new"))):
        (tmp_path / name).symlink_to(target)
        write_atomically(tmp_path / name, [b"1", b"2"])
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / target).read_bytes() == b"12"
    assert sorted(one.name for one in (tmp_path / "folder").iterdir()) == ["a", "new"]


def test_a_pipe_and_a_device_are_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    refuse_overwriting(pipe, False)
    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(pipe.read_bytes)
        write_atomically(pipe, [b"1", b"2"])
        assert read.result(10) == b"12"
    (tmp_path / "null").symlink_to(os.devnull)
    for device in (Path(os.devnull), tmp_path / "null"):
        write_atomically(device, [b"1"])
        with pytest.raises(ValueError, match="stop"), AtomicFile(device):
            raise ValueError("stop")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert pipe.is_fifo()
    assert (tmp_path / "null").is_symlink()
