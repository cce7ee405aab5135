"""Files are read or refused with the position of the error, and written completely or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sightline.decoding import json_records
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.content import read_bytes
from sightline.formats.files import refuse_overwriting, refuse_unwritable, write_atomically


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


def test_a_list_lines_and_one_object_give_the_same_records() -> None:
    path = Path("f")
    record = {"id": "1", "n": [1, 2]}
    for content in (
        b'[{"id": "1", "n": [1, 2]}]',
        b'{"id": "1", "n": [1, 2]}',
        b'{"id": "1",\n "n": [1, 2]}',
    ):
        assert [found for _, found in json_records(content, path)] == [record]


def test_blank_lines_are_skipped_but_count_as_lines() -> None:
    rows = json_records(b'{"a": 1}\n\n{"a": 2}\r\n', Path("f"))
    assert rows == [("line 1", {"a": 1}), ("line 3", {"a": 2})]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}\n{"a": 2}\n{"a": ', "line 3"),
        (b'[\n{"a": 1},\n{"a": 2', "line 3"),
        (b'{"a": \n', "line "),
        (b'{"a": 1}\n{"a": "\xff"}\n', "line 2"),
        (b'[{"a": 1},\n{"a": "\xff"}]', "line 2"),
    ],
)
def test_the_error_of_truncated_json_names_its_line(content: bytes, line: str) -> None:
    with pytest.raises(UserError, match=line) as caught:
        json_records(content, Path("some.jsonl"))
    assert caught.value.file == Path("some.jsonl")


@pytest.mark.parametrize(
    "content", [b'{"a": "\\ud83d"}', b'{"a": 1}\n{"a": "\\ud83d"}', b'[{"a": "\\ud83d"}]']
)
def test_half_a_surrogate_pair_is_refused(content: bytes) -> None:
    with pytest.raises(UserError, match="surrogate"):
        json_records(content, Path("f"))


def test_an_entry_that_is_not_an_object_is_refused() -> None:
    with pytest.raises(UserError, match="entry 2"):
        json_records(b'[{"a": 1}, 7]', Path("f"))


def test_the_nan_of_python_is_read() -> None:
    [(_, record)] = json_records(b'{"id": "1", "score": NaN}', Path("f"))
    assert record["id"] == "1"


@pytest.mark.parametrize("number", ["1e999", "1" * 10_000])
def test_a_number_that_is_too_large_is_read_as_a_text(number: str) -> None:
    for content in (f'{{"id": "1", "score": {number}}}', f'[{{"id": "1", "score": {number}}}]'):
        [(_, record)] = json_records(content.encode(), Path("f"))
        assert record == {"id": "1", "score": number}


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, '{"id": "1"}\n' + "[" * 100_000])
def test_json_nested_too_deeply_is_refused_with_the_limit(content: str) -> None:
    with pytest.raises(UserError, match=r"nested too deeply.*1,000 levels"):
        json_records(content.encode(), Path("f"))


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
    with pytest.raises(UserError, match=r"/proc: cannot be written.*--write"):
        refuse_overwriting(Path("/proc/list.csv"), False, "--write")


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
            UserError, match="is an input of this command and would be replaced; expected another --write"
        ):
            refuse_overwriting(written, True, "--write", read=[tmp_path / "gone.csv", read])
    refuse_overwriting(source, True, read=[other, tmp_path / "gone.csv"])
