"""The metrics of chosen options: by hand, and the denominators of II-Bench from its test split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.metrics import choice
from sightline.metrics.tally import NO_ANSWER, tally
from sightline.types import (
    Group,
    Labels,
    Metric,
    Outcome,
    Usage,
    VerdictName,
)


def outcome(
    verdict: VerdictName, *, keyed: bool = True, labels: Labels | None = None, **fields: Any
) -> Outcome:
    given: dict[str, Any] = {"status": "error" if verdict == "error" else "ok"} | fields
    return Outcome(
        sample="test-1",
        variant="none",
        draw=0,
        key="k",
        labels=labels or {},
        response="A",
        finish_reason="stop",
        usage=Usage(),
        verdict=verdict,
        references=("A",) if keyed else (),
        **given,
    )


def group(*outcomes: Outcome, **partners: Outcome) -> Group:
    others = {setting.replace("_", "-"): (partner,) for setting, partner in partners.items()}
    return Group("test-1", 0, "image", outcomes, partners=others)


def terms(metric: Metric, *outcomes: Outcome, **partners: Outcome) -> list[tuple[float, float]]:
    return [(term.sum, term.count) for term in metric.terms(group(*outcomes, **partners))]


@pytest.mark.parametrize("verdict", ["wrong", "miss", "error", "refused", "undecided"])
def test_whatever_is_not_right_counts_as_not_right(verdict: VerdictName) -> None:
    assert terms(choice.ACCURACY, outcome(verdict)) == [(0, 1)]


def test_a_right_answer_counts() -> None:
    assert terms(choice.ACCURACY, outcome("right")) == [(1, 1)]


@pytest.mark.parametrize("verdict", ["unscored", "miss", "error", "refused"])
def test_without_an_answer_key_nothing_counts_for_or_against(verdict: VerdictName) -> None:
    [value] = tally([group(outcome(verdict, keyed=False))], [choice.ACCURACY])
    assert (value.value, value.n, value.interval) == (None, 0, None)
    assert value.reason == (NO_ANSWER if verdict == "error" else choice.NO_KEY)
    assert "released without answers" in choice.NO_KEY


def test_an_unmapped_letter_is_not_scored_though_there_is_a_key() -> None:
    assert terms(choice.ACCURACY, outcome("unscored")) == []


@pytest.mark.parametrize(
    ("metric", "counted"),
    [
        (choice.ERROR, outcome("error", keyed=False)),
        (choice.MISS, outcome("miss", keyed=False)),
        (choice.EMPTY, outcome("miss", keyed=False, status="empty")),
        (choice.REFUSED, outcome("refused", keyed=False)),
        (choice.REFUSED, outcome("miss", keyed=False, scores={"refused": 1.0})),
    ],
)
def test_errors_misses_and_refusals_are_shares_of_all_answers_with_or_without_a_key(
    metric: Metric, counted: Outcome
) -> None:
    assert terms(metric, counted) == [(1, 1)]
    assert terms(metric, outcome("unscored", keyed=False)) == terms(metric, outcome("right")) == [(0, 1)]
    [value] = tally([group(counted)], [metric])
    assert value.judge is None


def test_an_answer_of_which_it_is_undecided_whether_it_refuses_is_left_out_of_refused() -> None:
    assert terms(choice.REFUSED, outcome("miss", scores={"refused_undecided": 1.0})) == []
    assert terms(choice.REFUSED, outcome("refused", scores={"refused_undecided": 1.0})) == [(1, 1)]


def test_the_letters_are_a_distribution_over_all_answers() -> None:
    outcomes = [outcome("unscored", extracted=letter) for letter in "ABBF"] + [
        outcome("miss"),
        outcome("error"),
    ]
    values = tally([group(one) for one in outcomes], choice.ANSWERED)
    assert [value.metric for value in values] == [f"answered_{letter}" for letter in "ABCDEF"]
    assert [value.value for value in values] == pytest.approx([100 / 6, 200 / 6, 0, 0, 0, 100 / 6])
    assert {value.n for value in values} == {6}


@pytest.mark.parametrize(
    ("shown", "hidden", "expected"),
    [
        ("right", "wrong", [(1, 1)]),
        ("wrong", "right", [(-1, 1)]),
        ("right", "right", [(0, 1)]),
        ("error", "right", [(-1, 1)]),
        ("right", "unscored", []),
        ("unscored", "right", []),
    ],
)
def test_image_gain_is_what_the_image_adds(
    shown: VerdictName, hidden: VerdictName, expected: list[tuple[int, int]]
) -> None:
    assert terms(choice.IMAGE_GAIN, outcome(shown), no_image=outcome(hidden)) == expected


def test_image_gain_is_the_difference_of_the_two_accuracies() -> None:
    gained = group(outcome("right"), no_image=outcome("wrong"))
    lost = group(outcome("wrong"), no_image=outcome("right"))
    groups = [gained] * 5 + [lost] * 2
    [gain] = tally(groups, [choice.IMAGE_GAIN])
    assert gain.value == pytest.approx(100 * 5 / 7 - 100 * 2 / 7)


def test_consistent_is_right_under_every_order_of_the_options() -> None:
    right, wrong = outcome("right"), outcome("wrong")
    assert terms(choice.CONSISTENT, right, right, right) == [(1, 1)]
    assert terms(choice.CONSISTENT, right, wrong, right) == [(0, 1)]
    assert terms(choice.CONSISTENT, right, outcome("unscored")) == []


def test_each_subset_of_the_test_split_has_its_denominator(shared: Path) -> None:
    folder = shared / "data/iibench"
    golden = json.loads((folder / "golden_tables.json").read_text())["denominators_test_questions"]
    found = {value.subset: value.n for value in tally(_test_split(folder), [choice.MISS])}
    assert found.pop("all") == golden.pop("overall") == 1399
    assert found == {f"{label}={value}": n for label, own in golden.items() for value, n in own.items()}


def _test_split(folder: Path) -> Iterator[Group]:
    for image in json.loads((folder / "test.json").read_text()):
        about = image["meta_data"]
        labels: Labels = {
            label: value if isinstance(value, str) else tuple(value)
            for label, value in about.items()
            if label != "explanation"
        }
        for question in image["questions"]:
            answer = outcome("unscored", keyed=False, labels=labels)
            yield Group(question["id"], 0, image["local_path"], (answer,))
