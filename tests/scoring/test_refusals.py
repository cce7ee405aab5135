"""Which responses refuse: they state an inability and give no answer."""

from __future__ import annotations

import pytest

from sightline.scoring.refusals import is_refusal

INABILITIES = (
    "Unable to tell",
    "As an AI model I am unable to see",
    "I'm sorry, but I can't assist with that.",
    "I don't know.",
    "No idea.",
    "Cannot be determined.",
    "It is impossible to tell what is hidden.",
    "The answer cannot be determined from the image.",
    "There is not enough information in the image.",
    "I have no way of knowing that.",
    "I’m unable to see it.",
    "I am not able to identify people in photos.",
    "It is unclear what the object is.",
    "I must decline to answer.",
)


@pytest.mark.parametrize("inability", INABILITIES)
def test_a_stated_inability_is_a_refusal_with_whatever_it_apologises_or_offers(inability: str) -> None:
    assert is_refusal(inability)
    assert is_refusal(f"I'm sorry. {inability}")
    assert is_refusal(f"{inability} If you describe the image, I can help.")
    assert is_refusal(f"The image shows a kitchen. {inability}")


@pytest.mark.parametrize("inability", INABILITIES)
@pytest.mark.parametrize("answer", ["The answer is (B).", "It looks like a bus.", "My best guess is a bus."])
def test_an_answer_that_mentions_an_inability_is_no_refusal(inability: str, answer: str) -> None:
    assert not is_refusal(f"{inability} {answer}")
    assert not is_refusal(f"{answer} {inability}")


@pytest.mark.parametrize(
    "answer",
    [
        "The man cannot see the road.",
        "A woman who is unable to reach the shelf.",
        "You cannot turn left here.",
        'The sign says "I can\'t stop".',
        "The boy is saying sorry to the girl.",
        "(D) The man is unable to find a job",
        "I can't believe how many birds there are.",
        "It is impossible for the elephant to fit in the car.",
        "Do not enter",
        "",
    ],
)
def test_an_inability_of_somebody_else_is_no_refusal(answer: str) -> None:
    assert not is_refusal(answer)
