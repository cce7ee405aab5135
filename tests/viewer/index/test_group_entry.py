"""What the index says of a group: how many answers are right, and whether they fit together."""

from __future__ import annotations

import pytest

from sightline.types import Group, Outcome, Usage, Verdict, VerdictName
from sightline.viewer.index_entry import group_entry


def outcome(variant: str, verdict: VerdictName) -> Outcome:
    failed = verdict == "error"
    return Outcome(
        sample="001",
        variant=variant,
        draw=0,
        key=f"key of {variant}",
        labels={},
        response="" if failed else f"Answer to {variant}.",
        status="error" if failed else "ok",
        finish_reason="stop",
        usage=Usage(),
        verdict=verdict,
        references=(f"Reference of {variant}.",),
    )


def pair(first: VerdictName, second: VerdictName, same_meaning: VerdictName = "wrong") -> Group:
    """A pair of CODIS: its references differ, so that its answers should differ in meaning."""
    outcomes = outcome("context_1", first), outcome("context_2", second)
    verdict = Verdict(
        targets=(outcomes[0].key, outcomes[1].key),
        question="same_meaning",
        scorer="codis/same_meaning",
        judge="rules",
        kind="rules",
        verdict=same_meaning,
    )
    return Group(id="001", draw=0, cluster="", outcomes=outcomes, judgements=(verdict,))


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("right", "right", "all"),
        ("right", "wrong", "some"),
        ("wrong", "miss", "none"),
        ("refused", "wrong", "none"),
        ("right", "undecided", "undecided"),
        ("undecided", "wrong", "undecided"),
        ("undecided", "undecided", "undecided"),
        ("error", "wrong", "undecided"),
        ("right", "unscored", "unscored"),
    ],
)
def test_a_pair_with_an_open_verdict_is_undecided_and_not_none_right(
    first: VerdictName, second: VerdictName, share: str
) -> None:
    entry = group_entry(pair(first, second), [], 1, {})
    assert entry.row.right == share
    assert ("right", "", share) in entry.facets


@pytest.mark.parametrize(
    ("same_meaning", "consistency"),
    [("wrong", "consistent"), ("right", "inconsistent"), ("undecided", "undecided"), ("error", "undecided")],
)
def test_a_pair_is_consistent_only_if_the_comparison_of_its_answers_is_decided(
    same_meaning: VerdictName, consistency: str
) -> None:
    assert group_entry(pair("right", "right", same_meaning), [], 1, {}).row.consistency == consistency


def test_a_pair_with_a_missing_answer_is_undecided_and_not_consistent() -> None:
    assert group_entry(pair("right", "error"), [], 1, {}).row.consistency == "undecided"


def test_a_single_answer_is_neither_consistent_nor_undecided() -> None:
    alone = Group(id="001", draw=0, cluster="", outcomes=(outcome("none", "right"),))
    assert group_entry(alone, [], 1, {}).row.consistency is None


def test_right_and_wrong_answers_are_some_right_whatever_a_third_verdict_is() -> None:
    three = outcome("r1", "right"), outcome("r2", "wrong"), outcome("r3", "undecided")
    assert group_entry(Group(id="001", draw=0, cluster="", outcomes=three), [], 1, {}).row.right == "some"
