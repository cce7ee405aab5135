"""Reading groups files group by group: groups are whole wherever their lines are."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.formats import files, groups
from sightline.formats.groups import GroupLine, by_group, open_groups, write_groups

ORDERS = st.permutations([(group, variant) for group in "abcd" for variant in "xyz"])


def written(order: list[tuple[str, str]], path: Path) -> list[GroupLine]:
    lines = [GroupLine(group, variant, prompt=f"{group}{variant}?") for group, variant in order]
    write_groups(lines, path)
    return lines


@given(ORDERS, st.booleans(), st.booleans())
def test_groups_are_whole_and_in_the_order_of_their_first_lines(
    order: list[tuple[str, str]], zipped: bool, hashes_collide: bool
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if hashes_collide:
            patch.setattr(groups, "hash", lambda text: 1, raising=False)
        path = Path(folder) / "groups.jsonl"
        lines = written(order, path)
        if zipped:
            path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + path.read_bytes()))
        file = open_groups(path)
        assert list(file.lines()) == lines
        assert list(file.groups()) == list(by_group(lines).values())


@given(ORDERS, st.integers(0, 11))
def test_a_variant_twice_names_both_lines_wherever_they_are(order: list[tuple[str, str]], again: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "groups.jsonl"
        written([*order, order[again]], path)
        with pytest.raises(UserError, match=f"line 13.*on line {again + 1} already"):
            open_groups(path)


@pytest.mark.parametrize("zipped", [False, True])
def test_a_line_over_the_limit_of_all_readers_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zipped: bool
) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1000)
    path = tmp_path / "groups.jsonl"
    written([("a", "x")], path)
    whole = path.read_bytes() + b"x" * 10**6
    path.write_bytes(gzip.compress(whole) if zipped else whole)
    with pytest.raises(UserError, match=r"groups.jsonl, record line 2: is too long .*1,000 bytes"):
        open_groups(path)


def test_a_file_that_changed_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "groups.jsonl"
    written([("a", "x")], path)
    assert len(list(open_groups(path).groups())) == 1
    written([("a", "x"), ("b", "x")], path)
    assert len(list(open_groups(path).groups())) == 2
    path.write_text("{}")
    with pytest.raises(UserError, match="line 1"):
        open_groups(path)


def test_a_pipe_is_refused_because_groups_files_are_read_several_times(tmp_path: Path) -> None:
    pipe = tmp_path / "groups.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="cannot be read several times"):
        open_groups(pipe)
