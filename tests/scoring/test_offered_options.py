"""The options that a question offers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.scoring.offered import offer_of


def options(question: str) -> list[str]:
    offer = offer_of(question)
    return [" ".join(option.words) for option in offer.options] if offer else []


@pytest.mark.parametrize(
    ("question", "offered"),
    [
        ("Is the capsule going up or down?", ["up", "down"]),
        ("Am I going north, or south?", ["north", "south"]),
        ("What is the moving direction of my hand? Up or down?", ["up", "down"]),
        ("Is the ship going east, west, south or north?", ["east", "west", "south", "north"]),
        ("Which way? East, west, south or north?", ["east", "west", "south", "north"]),
        ("Which side of it is the north, left or right?", ["left", "right"]),
        ("When was it taken, the first or second half of the year?", ["first", "second"]),
        ("Who is my sister? The person on the left or on the right?", ["on the left", "on the right"]),
        ("Who is Lucy, the lady at the front or the back?", ["the front", "the back"]),
        ("Is the train arriving or leaving the platform?", ["arriving", "leaving"]),
        ("Is he greeting or saying goodbye to her?", ["greeting", "saying goodbye"]),
        ("Will he lift up or place down his hands?", ["lift up", "place down"]),
        ("Is it going closer or further away from me?", ["closer", "further away"]),
        ("Will it be in the car or out of the car?", ["in the car", "out of the"]),
        ("Is edge A or edge B closer to me?", ["edge a", "edge b"]),
    ],
)
def test_options_end_where_the_question_goes_on_for_both(question: str, offered: list[str]) -> None:
    assert options(question) == offered


def test_a_question_without_or_offers_nothing() -> None:
    assert offer_of("Is my gesture appropriate?") is None
    assert offer_of("What color is the door?") is None


def test_words_that_options_share_name_none_of_them() -> None:
    offer = offer_of("Is the man putting the box into the car or taking the box out of the car?")
    assert offer is not None
    assert not offer.options[0].keys & offer.options[1].keys
    assert "box" not in offer.options[0].keys | offer.options[1].keys


def test_every_released_question_with_or_offers_options_that_differ(shared: Path) -> None:
    questions = {pair["question"] for pair in json.loads((shared / "data/codis/data.json").read_text())}
    offers = {question: offer_of(question) for question in questions if " or " in question}
    assert len(offers) > 150
    for question, offer in offers.items():
        assert offer is not None, question
        named = [(option.keys, option.apart, option.phrase) for option in offer.options]
        assert len(set(named)) == len(named) >= 2, question
