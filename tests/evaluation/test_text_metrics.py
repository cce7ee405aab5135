"""Text metrics of answers: each distinct pair once, remembered, the nearest reference, failing aloud."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.measures import TextMeasures
from sightline.models.text_metrics import ResponsePair
from sightline.store.store import Store
from sightline.types import Group, Outcome, Usage


class Lengths:
    """The length of the response minus that of the reference; records the pairs."""

    name = "lengths"
    identity = "lengths 1"

    def __init__(self, value: float | None = None) -> None:
        self.asked: list[ResponsePair] = []
        self._value = value

    def score(self, pairs: Sequence[ResponsePair]) -> list[float]:
        self.asked += pairs
        if self._value is not None:
            return [self._value for _ in pairs]
        return [len(said) - len(reference) + 0.1 for said, reference in pairs]


def outcome(
    name: str, said: str, *references: str, status: Literal["ok", "empty", "error"] = "ok"
) -> Outcome:
    return Outcome(
        sample=name,
        variant="0-shot",
        draw=0,
        key=name,
        labels={},
        response=said,
        status=status,
        finish_reason="",
        usage=Usage(),
        verdict="unscored",
        references=references,
        scores={"refused": 1.0},
    )


def groups(*outcomes: Outcome) -> list[Group]:
    return [Group(one.sample, 0, one.sample, (one,)) for one in outcomes]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(str(tmp_path / "store.db"))


def made(store: Store, metric: Lengths, identity: str = Lengths.identity) -> TextMeasures:
    return TextMeasures({"lengths": identity}, lambda name: metric, store)


def scores(measures: TextMeasures, *outcomes: Outcome) -> list[dict[str, float]]:
    return [dict(group.outcomes[0].scores) for group in measures.measured(groups(*outcomes))]


def test_the_most_similar_reference_counts(store: Store) -> None:
    measures = made(store, Lengths())
    assert scores(measures, outcome("1", "four", "long reference", "two", " ")) == [
        {"refused": 1.0, "lengths": pytest.approx(1.1)}
    ]


def test_a_failed_answer_and_one_without_references_have_no_number(store: Store) -> None:
    metric = Lengths()
    measures = made(store, metric)
    failed, alone, empty = (
        outcome("1", "", "ref", status="error"),
        outcome("2", "said"),
        outcome("3", "", "ref", status="empty"),
    )
    assert scores(measures, failed, alone, empty) == [
        {"refused": 1.0},
        {"refused": 1.0},
        {"refused": 1.0, "lengths": pytest.approx(-2.9)},
    ]
    assert metric.asked == [("", "ref")]


def test_each_distinct_pair_is_measured_once_and_cached(store: Store) -> None:
    metric = Lengths()
    answers = [outcome(str(number), "same", "reference") for number in range(3)]
    made(store, metric).prepare(groups(*answers))
    assert metric.asked == [("same", "reference")]

    def load(name: str) -> Lengths:
        raise AssertionError("the metric was loaded")

    again = TextMeasures({"lengths": Lengths.identity}, load, store)
    again.prepare(groups(*answers))
    assert [found["lengths"] for found in scores(again, *answers)] == [-4.9, -4.9, -4.9]


def test_numbers_survive_the_store_bit_for_bit(store: Store) -> None:
    value = 100 * math.pi / 7
    made(store, Lengths(value)).prepare(groups(outcome("1", "a", "b")))
    assert scores(made(store, Lengths(0)), outcome("1", "a", "b"))[0]["lengths"] == value


def test_numbers_of_one_model_are_not_those_of_another(store: Store) -> None:
    made(store, Lengths()).prepare(groups(outcome("1", "a", "b")))

    class Other(Lengths):
        identity = "lengths 2"

    other = Other()
    made(store, other, "lengths 2").prepare(groups(outcome("1", "a", "b")))
    assert other.asked == [("a", "b")]


def test_the_boundary_between_response_and_reference_is_part_of_the_key(store: Store) -> None:
    metric = Lengths()
    made(store, metric).prepare(groups(outcome("1", "ab", "c"), outcome("2", "a", "bc")))
    assert len(metric.asked) == 2


def test_a_model_that_changed_since_the_run_is_refused(store: Store) -> None:
    with pytest.raises(UserError, match=r"not the one that measured this run.*expected lengths 0"):
        made(store, Lengths(), "lengths 0").prepare(groups(outcome("1", "a", "b")))


def test_a_value_that_is_not_finite_fails_and_is_not_stored(store: Store) -> None:
    with pytest.raises(EnvironmentFailedError, match=r"'lengths' gives no finite number for 'a'"):
        made(store, Lengths(math.nan)).prepare(groups(outcome("1", "a", "b")))
    metric = Lengths()
    made(store, metric).prepare(groups(outcome("1", "a", "b")))
    assert metric.asked == [("a", "b")]
