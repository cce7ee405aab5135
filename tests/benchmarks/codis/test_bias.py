"""Which of two words outputs name (CODIS Table 6)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from sightline.benchmarks.codis.rules import BIAS_SETS, WordSet, bias_metrics, bias_scores, named_side, offers
from sightline.types import Group, Outcome, Term, Usage

UP_DOWN, TIMES, APPROPRIATE = BIAS_SETS
HAND = "What is the moving direction of my hand? Up or down?"
GESTURE = "Is my gesture appropriate?"


def group(question: str, *responses: str | None) -> Group:
    """The outcomes of a question; None is a failed call."""
    outcomes = (
        Outcome(
            sample="000",
            variant=f"context_{i}",
            draw=0,
            key=str(i),
            labels={"category": "Attributes"},
            response=response or "",
            status="error" if response is None else "ok",
            finish_reason="stop",
            usage=Usage(),
            verdict="undecided",
            question=question,
        )
        for i, response in enumerate(responses, start=1)
    )
    return Group("000", 0, "cluster", tuple(outcomes))


def terms(pair: Group, sets: tuple[WordSet, ...] = BIAS_SETS) -> dict[str, list[Term]]:
    scores = (bias_scores(outcome, sets) if outcome.answered else {} for outcome in pair)
    scored = (replace(outcome, scores=own) for outcome, own in zip(pair, scores, strict=True))
    pair = replace(pair, outcomes=tuple(scored))
    return {metric.name: list(metric.terms(pair)) for metric in bias_metrics(sets)}


def test_the_ground_truths_of_the_released_pairs_name_both_words_equally_often(shared: Path) -> None:
    pairs = json.loads((shared / "data/codis/data.json").read_text())
    for words, each in ((UP_DOWN, 15), (APPROPRIATE, 13), (TIMES, 6)):
        asked = [pair for pair in pairs if offers(pair["question"], words)]
        named = Counter(
            named_side(pair["question"], truth, words) for pair in asked for truth in pair["answer"].values()
        )
        assert len(asked) == each
        assert named == {"first": each, "second": each}


def test_a_term_counts_the_outputs_of_a_group_under_its_words() -> None:
    label = {"words": "up:down"}
    assert terms(group(HAND, "Up.", "It is moving upwards.")) == {
        "bias_first": [Term(2, 2, label)],
        "bias_second": [Term(0, 2, label)],
        "bias_neither": [Term(0, 2, label)],
    }


def test_an_output_counts_once_however_often_it_names_a_word() -> None:
    assert terms(group(HAND, "Down, down, and down again."))["bias_second"][0].sum == 1


def test_a_failed_call_names_nothing_and_is_left_out() -> None:
    assert terms(group(HAND, "Up.", None))["bias_first"] == [Term(1, 1, {"words": "up:down"})]
    assert terms(group(HAND, None, None))["bias_first"] == []


def test_a_question_that_does_not_offer_the_words_yields_no_term() -> None:
    assert terms(group("Is it up, down, left or right?", "Up."))["bias_first"] == []
    assert terms(group("Am I picking up or putting down the pot?", "Up."))["bias_first"] == []
    assert terms(group("Is my gesture rude?", "It is appropriate."))["bias_first"] == []


@pytest.mark.parametrize(
    ("output", "side"),
    [
        ("Up.", "first"),
        ("It goes upward", "first"),
        ("downwards", "second"),
        ("Up or down.", "neither"),
        ("Up, then down.", "neither"),
        ("To the left.", "neither"),
        ("An update on the supper", "neither"),
        ("It was down.\nUp", "first"),
        ("", "neither"),
    ],
)
def test_outputs_are_counted_by_whole_words_of_their_answer_part(output: str, side: str) -> None:
    assert named_side(HAND, output, UP_DOWN) == side


@pytest.mark.parametrize(
    ("output", "side"),
    [
        ("Yes.", "first"),
        ("No.", "second"),
        ("It is appropriate.", "first"),
        ("It is not appropriate.", "second"),
        ("Inappropriate", "second"),
        ("Your gesture is inappropriate in Iran.", "second"),
        ("No, it is not appropriate.", "second"),
        ("Yes, it is inappropriate.", "neither"),
        ("It depends on the culture.", "neither"),
    ],
)
def test_not_appropriate_is_never_also_appropriate(output: str, side: str) -> None:
    assert named_side(GESTURE, output, APPROPRIATE) == side


def test_the_sets_of_words_can_be_chosen() -> None:
    sides = (WordSet("left", "right"),)
    pair = group("Is the bike moving left or right?", "Left.", "Right.")
    assert terms(pair, sides)["bias_first"] == [Term(1, 2, {"words": "left:right"})]
    assert terms(pair)["bias_first"] == []


def test_the_metrics_read_the_answers_themselves_and_say_where_they_are_defined() -> None:
    assert {(metric.judged, metric.source) for metric in bias_metrics()} == {(None, "CODIS 5.2, Table 6")}
