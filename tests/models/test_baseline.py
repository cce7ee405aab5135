"""What chance takes for the options of a question."""

from __future__ import annotations

import pytest

from sightline.models.offline import _choices


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("Is the hand moving up or down?", ["up", "down"]),
        ("Which way is the car going, uphill or downhill?", ["uphill", "downhill"]),
        (
            "When was this image taken, in the morning or in the evening?",
            ["in the morning", "in the evening"],
        ),
        (
            "What does my brother do, is he giving or receiving the present?",
            ["giving", "receiving the present"],
        ),
        (
            "When was this photo probably taken, the first or second half of the year?",
            ["the first", "second half of the year"],
        ),
        ("From my perspective, is she zipping left or right?", ["left", "right"]),
        ("Was the car facing east, west, south or north?", ["east", "west", "south", "north"]),
        ("Which way is it? North, east, south or west?", ["North", "east", "south", "west"]),
        (
            "Is it the person on the left, in the middle or on the right?",
            ["on the left", "in the middle", "on the right"],
        ),
        ("Who is my sister? The one on the left or on the right?", ["The one on the left", "on the right"]),
        ("Was this shot at day or night, would you say?", ["day", "night"]),
        ("Tell me if it is day or night.", ["day", "night"]),
        ("A red car is in the image: yes or no?", ["yes", "no"]),
        ("Where am I?", ["Yes", "No"]),
        ("For my dog, is this too hot?", ["Yes", "No"]),
    ],
)
def test_chance_guesses_among_what_the_question_offers_and_nothing_else(
    question: str, choices: list[str]
) -> None:
    assert _choices(f"Look at it, up or down.\nQuestion: {question}") == choices
