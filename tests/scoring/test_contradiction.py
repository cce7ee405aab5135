"""Plainly contradictory answers: what MM-R3's similarity takes for consistent, and what must not be called
so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.similarity import Kind, contradiction
from sightline.scoring.text import lexicon

WORDS = lexicon(
    """yes no not red blue and or two 3 left right the on a is small large north bus . , it there one
    unknown orange above below 7:23 cm"""
)
ANSWERS = st.lists(st.sampled_from(sorted(WORDS)), max_size=6).map(" ".join)


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("Yes", "No.", "yes/no"),
        ("Yes, it is red.", "No, it is blue.", "yes/no"),
        ("There is a dog.", "There is no dog.", "yes/no"),
        ("It is red.", "It isn't red.", "yes/no"),
        ("two", "3", "number"),
        ("Two dogs", "three cats", "number"),
        ("1,000", "2,000", "number"),
        ("5 cm", "7 cm", "number"),
        ("7:23", "7:25", "number"),
        ("7 pm", "8 pm", "number"),
        ("red", "blue", "colour"),
        ("a red bus", "There is a blue bus.", "colour"),
        ("No, it is red", "No, it is blue", "colour"),
        ("left", "right", "left/right"),
        ("It is on the left.", "On the right side", "left/right"),
        ("small", "large", "opposite"),
        ("a small dog", "a big dog", "opposite"),
        ("above the table", "under the table", "opposite"),
        ("north", "south", "opposite"),
        ("a man", "a woman", "opposite"),
    ],
)
def test_contrary_answers_and_the_kind_of_their_word(first: str, second: str, kind: Kind) -> None:
    assert contradiction(first, second) == contradiction(second, first) == kind


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("red", "red and blue"),
        ("red", "red or blue"),
        ("red", "not blue"),
        ("anything but red", "red"),
        ("gray", "grey"),
        ("black and white", "red"),
        ("an orange", "a green square"),
        ("2", "two"),
        ("1,000", "1000"),
        ("one hundred", "100"),
        ("60 minutes", "1 hour"),
        ("50%", "0.5"),
        ("5k", "5000"),
        ("7 pm", "7 am"),
        ("7:23", "19:23"),
        ("a red one", "two"),
        ("he left", "right"),
        ("the right answer", "the left answer"),
        ("north east", "south"),
        ("yes", "unknown"),
        ("I don't know", "yes"),
        ("It cannot be determined.", "no"),
        ("yes and no", "yes"),
        ("The bus is red. It is new.", "blue"),
        ("copper", "stainless steel"),
        ("a toilet", "a sink"),
        ("", "no"),
        ("", ""),
    ],
)
def test_answers_that_differ_or_agree_but_are_not_plainly_contrary(first: str, second: str) -> None:
    assert contradiction(first, second) is None
    assert contradiction(second, first) is None


@given(ANSWERS)
def test_no_answer_is_contrary_to_itself(answer: str) -> None:
    assert contradiction(answer, answer) is None


@given(ANSWERS, ANSWERS)
def test_the_order_of_two_answers_does_not_matter(first: str, second: str) -> None:
    assert contradiction(first, second) == contradiction(second, first)
