"""The share of accepted answers, the errors that humans name, and the quality of their ratings."""

from __future__ import annotations

import numpy as np
import pytest

from sightline.evaluation.judge_data import JudgedAnswer
from sightline.evaluation.judge_report import (
    NO_MAJORITY,
    error_shares,
    named_errors,
    rating_quality,
)
from sightline.metrics.label_quality import TOO_FEW_ANNOTATORS
from sightline.metrics.statistics import Floats
from sightline.reporting.judges import rating_tables
from sightline.reporting.table import Value
from sightline.types import MetricValue, Verdict


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


def test_an_answer_has_an_error_if_most_humans_who_name_errors_name_it() -> None:
    items = [item(key, "a") for key in "1234"]
    verdicts = [
        *(said("1", "ann", "x"), said("1", "ben", "x", "y"), said("1", "cleo", "z"), said("1", "dan")),
        *(said("2", "ann", "x"), said("2", "ben", "y")),
        said("3", "ann", "y", variant=""),
        said("4", "ann"),
        said("5", "ann", "w"),
    ]
    found = error_shares(items, named_errors(verdicts))
    assert [one.metric for one in found] == ["x", NO_MAJORITY, "y"]
    third = 100 / 3
    assert {name: round(value or 0, 9) for (_, name), (value, _) in shares(found).items()} == {
        "x": round(third, 9),
        NO_MAJORITY: round(third, 9),
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
    assert [one.metric for one in error_shares([item("1", "a")], named_errors(verdicts))] == ["y"]


def test_the_first_errors_that_a_human_names_of_an_answer_count_as_the_first_verdict_does() -> None:
    verdicts = [said("1", "ann", "x"), said("1", "ann", "z")]
    assert [one.metric for one in error_shares([item("1", "a")], named_errors(verdicts))] == ["x"]


def test_without_named_errors_there_is_no_row() -> None:
    assert error_shares([item("1", "a")], named_errors([said("1", "ann")])) == []


def rated(
    random: np.random.Generator, accuracies: dict[str, float]
) -> tuple[list[JudgedAnswer], dict[str, Floats]]:
    """400 answers of 100 images, half of them right, and the ratings of raters of known accuracy."""
    answers = [JudgedAnswer(f"{n}", "v", f"image {n // 4}", ("a",), sample=f"s{n}") for n in range(400)]
    truth = random.random(400) < 0.5
    ratings = {
        name: np.where(random.random(400) < accuracy, truth, ~truth).astype(np.float64)
        for name, accuracy in accuracies.items()
    }
    return answers, ratings


def test_the_accuracy_of_each_rater_is_found_without_the_truth() -> None:
    known = {"ann": 0.95, "ben": 0.85, "cleo": 0.6}
    answers, ratings = rated(np.random.default_rng(1), known)
    ratings["ben"][:40] = np.nan  # not rated
    found = rating_quality(answers, ratings)
    assert not isinstance(found, str)
    assert [one.rater for one in found.raters] == list(known)
    for one in found.raters:
        assert one.accuracy.value == pytest.approx(100 * known[one.rater], abs=8)
    assert [one.accuracy.n for one in found.raters] == [400, 360, 400]
    assert {one.accuracy.clusters for one in found.raters} == {100, 90}
    first = found.answers[0]
    assert first.loss == max(one.loss for one in found.answers)
    assert (first.raters, first.responders) == (3, ("a",))
    assert first.sample.startswith("s")


def test_two_raters_have_no_accuracy() -> None:
    answers, ratings = rated(np.random.default_rng(2), {"ann": 0.9, "ben": 0.9})
    assert rating_quality(answers, ratings) == TOO_FEW_ANNOTATORS


def test_doubtful_answers_are_listed_by_their_loss() -> None:
    answers, ratings = rated(np.random.default_rng(3), {"ann": 0.9, "ben": 0.8, "cleo": 0.7})
    accuracy, doubtful = rating_tables(rating_quality(answers, ratings))
    assert [row[0] for row in accuracy.rows] == ["ann", "ben", "cleo"]
    losses = [cell.value or 0 for row in doubtful.rows if isinstance(cell := row[-1], Value)]
    assert losses == sorted(losses, reverse=True)
    assert len(losses) == 10
    assert rating_tables("no quality") == []
