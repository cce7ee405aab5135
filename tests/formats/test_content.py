"""Files of other tools are read within limits, line by line where they have lines."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.formats import files
from sightline.formats.files import numbered_lines, read_bytes


@given(
    st.lists(st.sampled_from([b"a", b"{}", b"", b" ", b"\n", b"\r\n", b"\r", b"\xef\xbb\xbf"]), min_size=1)
)
def test_lines_are_those_of_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_bytes(b"".join(parts))
    whole = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    expected = [(number, line) for number, line in enumerate(whole.splitlines(), 1) if line.strip()]
    if not expected:
        with pytest.raises(UserError, match="empty"):
            list(numbered_lines(path))
        return
    assert list(numbered_lines(path)) == expected
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert list(numbered_lines(path)) == expected


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"id": "1"}\n' * 10**6)
    tracemalloc.start()
    try:
        assert sum(1 for _ in numbered_lines(path)) == 10**6
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("zipped", [False, True])
def test_a_line_over_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1000)
    path, written = tmp_path / "a.jsonl", b"{}\n" + b"x" * 10**6
    path.write_bytes(gzip.compress(written) if zipped else written)
    with pytest.raises(UserError, match=r"line 2.*1,000 bytes"):
        list(numbered_lines(path))


@pytest.mark.parametrize("zipped", [False, True])
def test_a_file_over_the_limit_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    monkeypatch.setattr(files, "MAX_FILE", 10**6)
    path, written = tmp_path / "a.json", b" " * 10**8
    path.write_bytes(gzip.compress(written) if zipped else written)
    with pytest.raises(UserError, match=r"1,000,000 bytes, decompressed.*smaller files"):
        read_bytes(path)


def test_lines_of_a_truncated_archive_and_of_a_missing_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "1"}\n' * 99, mtime=0)[:-9])
    for file, said in (
        (path, "truncated"),
        (tmp_path / "none.jsonl", "cannot be read"),
        (tmp_path, "cannot be"),
    ):
        with pytest.raises(UserError, match=said):
            list(numbered_lines(file))


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "answers.jsonl")
    with pytest.raises(UserError, match=r"answers\.jsonl: cannot be read several times \(found 'a pipe'"):
        read_bytes(tmp_path / "answers.jsonl")
