"""Which statements leave their question open."""

from __future__ import annotations

import pytest

from sightline.scoring.non_answers import declines


@pytest.mark.parametrize(
    "statement",
    [
        "It is not possible to determine whether the man is opening the door.",
        "We cannot determine the friend's location.",
        "The image and context do not provide enough information to answer the question.",
        "It is unclear.",
        "It could be in either direction.",
        "It depends on the law.",
        "I'm sorry, but I can't help with that.",
        "He may or may not be in danger.",
    ],
)
def test_a_statement_that_puts_the_answer_off_declines(statement: str) -> None:
    assert declines(statement)


@pytest.mark.parametrize(
    "statement",
    ["You cannot turn here.", "It is not legal.", "The boy is saying sorry.", "Both hands move left.", "No."],
)
def test_a_denial_is_no_refusal(statement: str) -> None:
    assert not declines(statement)


@pytest.mark.parametrize(
    ("question", "statement", "left_open"),
    [
        ("Is the person in danger?", "There is no sign of danger.", False),
        ("Is the person in danger?", "There is no sign of the place.", True),
        ("Can we see her ear in the image?", "We cannot see her ear.", False),
        ("Can we see her ear in the image?", "I cannot tell.", True),
        ("Is the gesture rude?", "No gesture is visible.", True),
    ],
)
def test_what_the_question_asks_about_may_be_missing(question: str, statement: str, left_open: bool) -> None:
    assert declines(statement, question) == left_open


@pytest.mark.parametrize("statement", ["Which country are we in?", "Yes or no?", "Up?"])
def test_a_question_is_no_answer(statement: str) -> None:
    assert declines(statement)
