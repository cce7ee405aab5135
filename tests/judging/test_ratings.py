"""The share of accepted answers, and the errors that humans name."""

from __future__ import annotations

import numpy as np

from sightline.judging.judge_data import JudgedAnswer
from sightline.judging.ratings import accepted_shares, error_shares
from sightline.metric_types import MetricValue
from sightline.metrics.statistics import TOO_FEW
from sightline.types import Verdict


def item(key: str, *responders: str) -> JudgedAnswer:
    return JudgedAnswer(key, "v", f"image {key}", responders)


def said(key: str, judge: str, *labels: str, variant: str = "v") -> Verdict:
    return Verdict(
        targets=(key,),
        question="correct",
        scorer="human",
        judge=judge,
        kind="human",
        verdict="wrong",
        variant=variant,
        labels=labels,
    )


def shares(found: list[MetricValue]) -> dict[tuple[str, str], tuple[float | None, float]]:
    return {(one.subset, one.metric): (one.value, one.n) for one in found}


def test_each_responder_has_its_own_accepted_share() -> None:
    items = [item("1", "a"), item("2", "a", "b"), item("3", "b")]
    found = accepted_shares(items, np.array([1.0, 0.0, 0.0]))
    assert shares(found) == {
        ("responder=a", "accepted"): (50, 2),
        ("responder=b", "accepted"): (0, 2),
    }
    assert {one.reason for one in found} == {TOO_FEW}


def test_an_answer_has_an_error_if_most_humans_who_name_errors_name_it() -> None:
    items = [item(key, "a") for key in "1234"]
    verdicts = [
        *(said("1", "ann", "x"), said("1", "ben", "x", "y"), said("1", "cleo", "z"), said("1", "dan")),
        *(said("2", "ann", "x"), said("2", "ben", "y")),
        said("3", "ann", "y", variant=""),
        said("4", "ann"),
        said("5", "ann", "w"),
    ]
    found = error_shares(items, verdicts)
    assert [one.metric for one in found] == ["x", "y"]
    third = 100 / 3
    assert {name: round(value or 0, 9) for (_, name), (value, _) in shares(found).items()} == {
        "x": round(third, 9),
        "y": round(third, 9),
    }
    assert {one.n for one in found} == {3}


def test_a_verdict_without_a_variant_counts_with_those_that_name_it() -> None:
    verdicts = [
        said("1", "ann", "x"),
        said("1", "ben", "y", variant=""),
        said("1", "cleo", "y", variant=""),
        said("1", "ann", "z", variant=""),
    ]
    assert [one.metric for one in error_shares([item("1", "a")], verdicts)] == ["y"]


def test_without_named_errors_there_is_no_row() -> None:
    assert error_shares([item("1", "a")], [said("1", "ann")]) == []
