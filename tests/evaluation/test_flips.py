"""Changed answers add up, and agree with the difference in accuracy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluation.test_compare import outcome

from sightline.metrics.consistency import acc
from sightline.metrics.flips import GroupPair, answer_changes, count_changes, group_changes
from sightline.types import Group

MARKS = st.sampled_from("10?x")
RUNS = st.lists(st.lists(st.tuples(MARKS, MARKS), min_size=1, max_size=3), min_size=1, max_size=8)


def pairs(groups: list[list[tuple[str, str]]]) -> list[GroupPair]:
    made = []
    for number, marks in enumerate(groups):
        sides = [
            Group(
                str(number),
                0,
                "c",
                tuple(outcome(str(number), f"v{i}", m[side]) for i, m in enumerate(marks)),
            )
            for side in (0, 1)
        ]
        made.append(GroupPair(*sides))
    return made


@settings(max_examples=40)
@given(RUNS)
def test_gained_minus_lost_is_the_difference_in_accuracy(groups: list[list[tuple[str, str]]]) -> None:
    both = pairs(groups)
    counts = count_changes(answer_changes(0, both))[0]
    accuracy = [
        [
            sum(values)
            for values in zip(*((term.sum, term.count) for group in side for term in acc(group)), strict=True)
        ]
        for side in zip(*both, strict=True)
    ]
    (right_before, n), (right_after, scored) = accuracy
    assert counts.scored == n == scored
    assert counts.gained - counts.lost == right_after - right_before
    assert counts.both_right + counts.lost == right_before


@settings(max_examples=40)
@given(RUNS)
def test_counts_add_up_for_answers_and_groups(groups: list[list[tuple[str, str]]]) -> None:
    answers = list(answer_changes(0, pairs(groups)))
    totals = {"answers": len(answers), "groups": len(list(group_changes(answers)))}
    for counts in count_changes(answers):
        assert counts.both_right + counts.gained + counts.lost + counts.both_wrong == counts.scored
        assert counts.scored == totals[counts.unit]
        assert counts.compared == totals[counts.unit] - counts.unanswered
        assert counts.identical <= counts.compared


@settings(max_examples=40)
@given(RUNS)
def test_in_a_run_and_itself_nothing_is_gained_or_lost(groups: list[list[tuple[str, str]]]) -> None:
    same = [[(before, before) for before, _ in marks] for marks in groups]
    for counts in count_changes(answer_changes(0, pairs(same))):
        assert counts.gained == counts.lost == 0
        assert counts.identical == counts.compared


@pytest.mark.parametrize(
    ("marks", "unit", "expected"),
    [
        ([("1", "1"), ("0", "1")], "groups", {"gained": 1, "lost": 0}),
        ([("1", "0"), ("0", "1")], "groups", {"gained": 0, "both_wrong": 1}),
        ([("1", "0"), ("0", "1")], "answers", {"gained": 1, "lost": 1}),
        ([("?", "1"), ("x", "1")], "answers", {"gained": 2, "undecided": 1, "unanswered": 1}),
    ],
)
def test_a_group_is_right_if_all_its_answers_are(marks: Any, unit: str, expected: dict[str, int]) -> None:
    (counts,) = (one for one in count_changes(answer_changes(0, pairs([marks]))) if one.unit == unit)
    assert {name: getattr(counts, name) for name in expected} == expected
