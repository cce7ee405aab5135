"""Reading groups files group by group: groups are whole wherever their lines are."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.errors import UserError
from sightline.formats import files, groups
from sightline.formats.groups import GroupLine, by_group, open_groups, write_groups
from sightline.scoring.letters import right_positions

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


@given(ORDERS, st.sets(st.integers(0, 11)), st.booleans())
def test_a_cluster_on_any_line_counts_for_the_whole_group(
    order: list[tuple[str, str]], named: set[int], hashes_collide: bool
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if hashes_collide:
            patch.setattr(groups, "hash", lambda text: 1, raising=False)
        path = Path(folder) / "groups.jsonl"
        lines = [
            GroupLine(group, variant, prompt="?", cluster=f"photo {group}" if place in named else "")
            for place, (group, variant) in enumerate(order)
        ]
        write_groups(lines, path)
        with_cluster = {line.group for line in lines if line.cluster}
        for group in (*open_groups(path).groups(), *by_group(lines).values()):
            name = group[0].group
            expected = f"photo {name}" if name in with_cluster else ""
            assert {line.cluster for line in group} == {expected}


@given(ORDERS, st.integers(0, 11), st.integers(0, 11))
def test_two_clusters_in_a_group_name_both_lines_wherever_they_are(
    order: list[tuple[str, str]], one: int, other: int
) -> None:
    first, second = sorted((one, other))
    lines = [GroupLine(group, variant, prompt="?") for group, variant in order]
    lines[first] = GroupLine(*order[first], prompt="?", cluster="p")
    if first != second:
        lines[second] = GroupLine(*order[second], prompt="?", cluster="q")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "groups.jsonl"
        write_groups(lines, path)
        if first == second or order[first][0] != order[second][0]:
            open_groups(path)
            return
        said = f"line {second + 1}, field cluster: .*cluster 'p' on line {first + 1} already.*found 'q'"
        with pytest.raises(UserError, match=said):
            open_groups(path)


@pytest.mark.parametrize(
    ("options", "reference", "said"),
    [
        ("BADC", "B", "is the letter of the option 'A' and the text of another one"),
        ("ba", "A", "is the letter of the option 'b' and the text of another one"),
        ([*map(str, range(27)), " "], " ", "can never be chosen: it is option 28 of 28"),
        (["TT", "Tt", "tt"], "tT", "is the text of several options, in another spelling"),
        (["x", "y"], "C", "is not an option"),
    ],
)
def test_a_reference_names_one_option_that_can_be_chosen(
    tmp_path: Path, options: list[str], reference: str, said: str
) -> None:
    good = GroupLine("a", "v", prompt="?", options=("A", "B"), references=("A", "b"))
    bad = GroupLine("b", "v", prompt="?", options=tuple(options), references=(reference,))
    write_groups([good, bad], tmp_path / "g.jsonl")
    with pytest.raises(UserError, match=f"record line 2, field references: .*{said}"):
        open_groups(tmp_path / "g.jsonl")


@pytest.mark.parametrize(
    ("options", "reference", "right"),
    [
        ("BADC", "b", {0}),
        ("ABCD", "B", {1}),
        ("xyz", "C", {2}),
        ("xyz", "Z ", {2}),
        ("BA", "B", {1}),
        (["TT", "Tt", "tt"], "Tt", {1}),
        (["\uff13", "\u0664"], "3", {0}),
        (["3", "4"], "\u0664", {1}),
        (["the stra\u00dfe", "a road"], "THE  STRASSE", {0}),
        (["of\ufb01ce", "\u212bngstr\u00f6m"], "\u00e5ngstro\u0308m", {1}),
        ([*map(str, range(30))], "27", {27}),
    ],
)
def test_a_reference_is_a_letter_before_it_is_a_text(
    options: Sequence[str], reference: str, right: set[int]
) -> None:
    assert right_positions([reference], tuple(options)) == right
