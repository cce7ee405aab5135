"""Free answers to questions without options: what a reader of the response would say it gives."""

from __future__ import annotations

import pytest

from sightline.scoring.free_answers import read_free_answer


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("No.", "no"),
        ("No, it is not a dog.", "No"),
        ("Nein, das ist kein Hund.", "nein"),
        ("是的", "是"),
        ("The sign says STOP.", "stop"),
        ("Two buses wait there.", "bus"),
        ("There are two dogs.", "2"),
        ("2", "two"),
        ("1,000 people", "1000"),
        ("The letter A", "A"),
        ("The result is negative.", "negative"),
        ("The object is not present.", "not present"),
        ("It's not red, it is blue.", "blue"),
        ("I can't read all of it, but it is a bus.", "bus"),
        ("图中是一只猫。", "猫"),
        ("猫が見えます。", "猫"),
        ("Das ist eine Straße.", "Straße"),
        ("eine STRASSE", "Straße"),
        ("a bus and a car", "bus"),
    ],
)
def test_what_a_response_gives(response: str, reference: str) -> None:
    assert read_free_answer(response, ["something else", reference]).reference == reference


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("I do not know.", "no"),
        ("I can see nothing.", "no"),
        ("Yes", "no"),
        ("Yes or no", "no"),
        ("No.", "yes"),
        ("不是", "是"),
        ("It is not a bus.", "bus"),
        ("It's a cat, not a dog.", "dog"),
        ("Is it a bus?", "bus"),
        ("a minibus", "bus"),
        ("There are 10 dogs.", "1"),
        ("1.5", "5"),
        ("twenty", "two"),
        ("a catalog", "cat"),
        ("不是猫", "猫"),
        ("猫ではありません。", "猫"),
        ("2 or 3", "2"),
        ("2-3", "2"),
        ("1/2", "2"),
        ("at least 2", "2"),
        ("2 million", "2"),
        ("Either a bus or a tram", "bus"),
        ("red or blue, I can't tell", "red"),
        ("", "bus"),
    ],
)
def test_what_a_response_does_not_give(response: str, reference: str) -> None:
    assert read_free_answer(response, [reference]).reference is None


def test_a_question_tells_what_a_denial_means() -> None:
    assert read_free_answer("There are no dogs.", ["no"], "Are there dogs?").reference == "no"
    assert (
        read_free_answer("There are dogs in the yard.", ["yes"], "Are there dogs in the yard?").reference
        == "yes"
    )
