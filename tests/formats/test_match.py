"""No answer is for an unknown probe, and none is missing unseen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.errors import UserError
from sightline.formats.prediction import Prediction, match

FILE = Path("answers.jsonl")
PAIR = [("000", "context_1"), ("000", "context_2")]


def test_every_answer_is_found_by_its_probe() -> None:
    predictions = [Prediction("000", "context_2", "No."), Prediction("000", "context_1", "Yes.")]
    matched = match(predictions, PAIR, file=FILE, allow_missing=False)
    assert matched["000", "context_1", 0].response == "Yes."
    assert matched["000", "context_2", 0].response == "No."


def test_unknown_ids_are_named_with_the_nearest_known_one() -> None:
    expected = [(f"test-{n}", "none") for n in range(1, 1400)]
    predictions = [Prediction(f"tset-{n}", "none", "A") for n in (17, 18, 19, 20, 21, 22, 23)]
    with pytest.raises(UserError) as caught:
        match(predictions, expected, file=FILE, allow_missing=True)
    message = str(caught.value)
    assert "answers.jsonl, field id: 7 of 7 answers" in message
    assert "tset-17, tset-18, tset-19, tset-20, tset-21 and 2 more" in message
    assert "nearest to 'tset-17' is 'test-17'" in message


def test_an_unknown_variant_is_named_with_those_asked() -> None:
    with pytest.raises(
        UserError, match=r"record 000, field variant.*'context_3'.*'context_1' or 'context_2'"
    ):
        match([Prediction("000", "context_3", "Yes.")], PAIR, file=FILE, allow_missing=True)


def test_missing_answers_are_counted_and_named_with_the_remedy() -> None:
    with pytest.raises(UserError) as caught:
        match([Prediction("000", "context_1", "Yes.")], PAIR, file=FILE, allow_missing=False)
    assert "answers.jsonl: 1 of 2 answers are missing: 000 (context_2)" in str(caught.value)
    assert "--allow-missing" in str(caught.value)


def test_allowed_missing_answers_are_left_out() -> None:
    assert match([], PAIR, file=FILE, allow_missing=True) == {}


def test_a_repeat_that_lacks_a_probe_is_missing_too() -> None:
    draws = [Prediction(*probe, "Yes.", draw) for probe, draw in ((PAIR[0], 0), (PAIR[1], 0), (PAIR[0], 1))]
    with pytest.raises(UserError, match=r"1 of 4 answers are missing: 000 \(context_2, draw 1\)"):
        match(draws, PAIR, file=FILE, allow_missing=False)
    assert len(match(draws, PAIR, file=FILE, allow_missing=True)) == 3
