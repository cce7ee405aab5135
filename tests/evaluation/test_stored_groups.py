"""Groups in a temporary file are those that were added; the answers of a comparison are read from them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluation.conftest import MakeResult
from tests.evaluation.test_compare import outcome

from sightline.evaluation.folder import SentGroups, StoredGroups, read_judged_run
from sightline.evaluation.runs import default_options
from sightline.formats.jsonl import write_answers
from sightline.metrics.flips import ComparedAnswers, answer_changes, pair_groups
from sightline.types import Group, ImageFile, Verdict

MARKS = st.lists(st.text("10?x-", min_size=1, max_size=3), max_size=6)


@pytest.fixture(autouse=True, scope="module")
def _small_blocks() -> Iterator[None]:
    """Few groups are written at once, so that those of the tests are read from the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sightline.evaluation.folder._PER_BLOCK", 2)
        yield


def group(sample: str, marks: str) -> Group:
    return Group(sample, 0, sample, tuple(outcome(sample, f"v{nth}", one) for nth, one in enumerate(marks)))


def stored(*groups: Group) -> StoredGroups:
    found = StoredGroups()
    for one in groups:
        found.add(one)
    return found


@given(st.lists(st.tuples(st.sampled_from("abc"), st.text("10?x-", min_size=1, max_size=3))))
def test_they_are_those_of_a_dictionary(added: list[tuple[str, str]]) -> None:
    """In its order: a group that is added again keeps its place."""
    made = [group(*one) for one in added]
    assert list(stored(*made).items()) == list({one.key: one for one in made}.items())


def test_every_field_comes_back() -> None:
    both = group("a", "10")
    judged = Verdict(
        targets=("k", "l"), question="same_meaning", scorer="s", judge="j", kind="human", verdict="right"
    )
    full = msgspec.structs.replace(
        both,
        judgements=(judged,),
        partners={"none": both.outcomes},
        evidence={"k": (ImageFile("a.jpg", "d", "JPEG", 1, 2, (3, 4)),)},
        pooled="v0",
    )
    assert stored(full, group("b", "1"))["a", 0, "v0"] == full


@given(MARKS)
def test_only_groups_that_were_sent_completely_are_sent(marks: list[str]) -> None:
    groups = stored(*(group(f"s{nth}", one) for nth, one in enumerate(marks)))
    sent = SentGroups(groups)
    assert dict(sent) == {key: one for key, one in groups.items() if one.sent}
    assert len(sent) == len(dict(sent))
    assert sent.not_sent == "".join(marks).count("-")
    assert all((key in sent) == one.sent for key, one in groups.items())


@given(MARKS, MARKS)
def test_the_answers_of_a_comparison_can_be_read_twice(first: list[str], second: list[str]) -> None:
    """Two pairs of runs: all groups as they are, and each with itself."""
    base, other = (
        {(f"s{nth}", 0, ""): group(f"s{nth}", one) for nth, one in enumerate(marks)}
        for marks in (first, second)
    )
    pairs = [pair_groups(base, other).pairs, pair_groups(other, other).pairs]
    expected = [change for number, several in enumerate(pairs) for change in answer_changes(number, several)]
    answers = ComparedAnswers(pairs)
    assert list(answers) == list(answers) == expected


def test_a_folder_whose_lines_are_mixed_has_the_groups_of_the_sorted_one(
    make_result: MakeResult, tmp_path: Path
) -> None:
    lines = [one for sample in "abc" for one in group(sample, "101")]
    found = []
    for name, written in (("sorted", lines), ("mixed", Random(1).sample(lines, len(lines)))):
        folder = tmp_path / name
        folder.mkdir()
        result = make_result(options=default_options("groups", "mine.jsonl"))
        (folder / "metrics.json").write_bytes(msgspec.json.encode(result))
        write_answers(written, folder / "answers.jsonl")
        (folder / "verdicts.jsonl").touch()
        groups = read_judged_run(folder).groups
        assert list(groups) == list(dict.fromkeys((one.sample, one.draw, "") for one in written))
        found.append({key: {one.variant: one for one in of} for key, of in groups.items()})
    assert found[0] == found[1]
