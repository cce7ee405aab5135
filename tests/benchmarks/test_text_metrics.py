"""The options of the text metrics, and what their means are made of."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.benchmarks.base import NAMES, TEXT_METRICS, requested_metrics, text_metrics
from sightline.errors import UserError
from sightline.metrics.tally import tally
from sightline.types import Group, Outcome, Usage


def outcome(sample: str, category: str, **scores: float) -> Outcome:
    return Outcome(
        sample=sample,
        variant="0-shot",
        draw=0,
        key=sample,
        labels={"category": category},
        response="an octopus",
        status="ok",
        finish_reason="",
        usage=Usage(),
        verdict="undecided",
        references=("An octopus.",),
        scores=scores,
    )


def test_by_default_nothing_is_measured() -> None:
    defaults = {name: option.default for name, option in TEXT_METRICS.items()}
    assert requested_metrics(defaults) == ()
    assert text_metrics(defaults) == []
    assert requested_metrics({}) == (), "a benchmark that carries no such options"


@pytest.mark.parametrize(
    ("said", "names"),
    [("rouge_l", ("rouge_l",)), (" bleurt, rouge_l,bleurt", ("bleurt", "rouge_l")), (",".join(NAMES), NAMES)],
)
def test_names_are_taken_once_in_the_order_given(said: str, names: tuple[str, ...]) -> None:
    assert requested_metrics({"text_metrics": said}) == names
    assert tuple(metric.name for metric in text_metrics({"text_metrics": said})) == names


@pytest.mark.parametrize("said", ["rougel", "rouge_l,none", "rouge_l;bleurt"])
def test_a_metric_that_does_not_exist_is_refused(said: str) -> None:
    with pytest.raises(UserError, match=r"unknown text metric.*rouge_l"):
        requested_metrics({"text_metrics": said})


def test_a_layer_is_a_whole_number() -> None:
    layer: Any = TEXT_METRICS["bertscore_layer"]
    assert (layer.allows(17), layer.allows(None), layer.allows(0), layer.allows("17")) == (
        True,
        True,
        False,
        False,
    )


def test_a_mean_is_over_the_answers_that_have_a_number_and_is_not_clipped() -> None:
    outcomes = [
        outcome("1", "time", bleurt=-20.0),
        outcome("2", "time", bleurt=130.0),
        outcome("3", "web", bleurt=40.0),
        outcome("4", "web"),
        *(outcome(f"5{number}", "new", bleurt=50.0) for number in range(9)),
    ]
    groups = [Group(one.sample, 0, one.sample, (one,)) for one in outcomes]
    found = {value.subset: value for value in tally(groups, text_metrics({"text_metrics": "bleurt"}))}
    assert found["all"].value == pytest.approx(50)
    assert (found["all"].n, found["all"].unit, found["all"].interval) == (12, "percent", "t")
    assert found["category=time"].value == pytest.approx(55)
    assert found["category=web"].n == 1


def test_without_references_there_is_no_value_and_a_reason() -> None:
    (found,) = tally(
        [Group("1", 0, "1", (outcome("1", "time"),))], text_metrics({"text_metrics": "rouge_l"})
    )[:1]
    assert (found.value, found.n) == (None, 0)
    assert found.reason is not None
    assert "reference" in found.reason
