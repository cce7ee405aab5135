"""Which option an answer chooses."""

from __future__ import annotations

import pytest

from sightline.scoring.polarity import NEITHER, chosen_option
from sightline.scoring.text import OPEN

TRAIN = "Is the train arriving or leaving the platform?"
ROUTE = "Am I going from left to right or from right to left?"
FRIEND = "Is my friend on the left or on the right in the perspective of the photographer?"
COMPASS = "In which direction is the airplane in this image flying? East, west, south or north?"


@pytest.mark.parametrize(
    ("question", "answer", "option"),
    [
        (TRAIN, "The train has left the platform.", "leaving"),
        (TRAIN, "It is arriving, since the people on the left wave.", "arriving"),
        (TRAIN, "It arrives rather than leaves.", "arriving"),
        (TRAIN, "It is not leaving but arriving.", "arriving"),
        (TRAIN, "The train is coming towards me so it is", "arriving"),
        (TRAIN, "It is departing.", "leaving"),
        ("What were they doing? Greeting or saying goodbye to each other?", "Saying hello.", "greeting"),
        (COMPASS, "Flying westward, away from the sun.", "west"),
        (COMPASS, "The sun is in the east, so it is flying west.", "west"),
        (COMPASS, "It flies west because the sun rises in the east.", "west"),
        ("Is the bike moving left or right?", "From the left to the right.", "right"),
        ("Does the light come from the left or from the right?", "From the right.", "from the right"),
        (ROUTE, "Right to left.", "from right to left"),
        (ROUTE, "I go from the left side to the right.", "from left to right"),
        ("Will the box be in the car or out of the car?", "It will be in the car.", "in the car"),
        ("Will the box be in the car or out of the car?", "In.", "in the car"),
        (
            "Is his left hand moving to the left or to the right?",
            "His left hand moves right.",
            "to the right",
        ),
        (
            FRIEND,
            "The woman on the left is my daughter. The woman on the right is my friend.",
            "on the right",
        ),
        ("Am I putting on or taking off my hat?", "Based on the context, taking it off.", "taking off"),
    ],
)
def test_an_option_is_chosen_by_its_words_and_their_inflections(
    question: str, answer: str, option: str
) -> None:
    assert chosen_option(question, answer) == option


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (TRAIN, "It is either arriving or leaving."),
        (TRAIN, "Arriving or leaving."),
        (COMPASS, "It could be flying in any direction, including east, west, south, or north."),
        (FRIEND, "The friend is on both the left and the"),
        (FRIEND, "We cannot determine whether the friend is on the left."),
    ],
)
def test_naming_several_options_or_declining_leaves_the_question_open(question: str, answer: str) -> None:
    assert chosen_option(question, answer) == OPEN


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (TRAIN, "The train is on the left."),
        (FRIEND, "The photographer is on the left."),
        (ROUTE, "To the left."),
        ("Is it going up or down?", "It is not going up."),
        ("What colour is it?", "Red."),
    ],
)
def test_what_names_no_option_chooses_none(question: str, answer: str) -> None:
    assert chosen_option(question, answer) is None


@pytest.mark.parametrize("answer", ["Neither.", "No.", "Yes", "Nobody.", "It is not moving.", "It has both."])
def test_an_answer_that_rejects_the_options_chooses_neither(answer: str) -> None:
    assert chosen_option(TRAIN, answer) == NEITHER


@pytest.mark.parametrize(
    ("question", "answer", "value"),
    [
        (COMPASS, "Southwest.", "southwest"),
        (FRIEND, "In the middle.", "middle"),
        ("Was it taken in the morning or in the afternoon?", "It was taken at night.", "night"),
        ("Which dot is at the front? The blue one or the red one?", "The green dot.", "green"),
    ],
)
def test_another_value_of_the_kind_is_a_choice_too(question: str, answer: str, value: str) -> None:
    assert chosen_option(question, answer) == value
