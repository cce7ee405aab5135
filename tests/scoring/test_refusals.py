"""Which responses refuse: they state an inability and give no answer."""

from __future__ import annotations

import pytest

from sightline.scoring.non_answers import is_refusal

INABILITIES = (
    "Unable to tell",
    "As an AI model I am unable to see",
    "I'm sorry, but I can't assist with that.",
    "I don't know what it is.",
    "Cannot be determined.",
    "It is impossible to tell what is hidden.",
    "The answer cannot be determined from the image.",
    "There is not enough information in the image.",
    "I have no way of knowing that.",
    "I’m unable to see it.",
    "I am not able to identify people in photos.",
    "It is unclear what the object is.",
    "I must decline to answer.",
    "Not enough information.",
    "The text is too blurred for me to read.",
    "The infographic does not say which year it was.",
    "The object is not identifiable.",
    "None of the visible parts tells me what it is.",
    "No image was attached.",
    "I need more context.",
)


@pytest.mark.parametrize("inability", INABILITIES)
def test_a_stated_inability_is_a_refusal_with_whatever_it_apologises_or_offers(inability: str) -> None:
    assert is_refusal(inability)
    assert is_refusal(f"I'm sorry. {inability}")
    assert is_refusal(f"{inability} If you describe the image, I can help.")
    assert is_refusal(f"The image shows a kitchen. {inability}")


@pytest.mark.parametrize(
    "reason", ["because it may be private", "since it is a rectangle", "as it is hidden"]
)
def test_a_reason_for_an_inability_is_no_answer(reason: str) -> None:
    assert is_refusal(f"I must decline to answer, {reason}.")
    assert is_refusal(f"I can't tell what it is {reason}.")


@pytest.mark.parametrize("inability", ["I can't see it well", "it is hard to tell", "I'm not sure"])
@pytest.mark.parametrize("conjunction", ["although", "though", "even though"])
def test_an_inability_in_a_subordinate_clause_is_no_refusal(inability: str, conjunction: str) -> None:
    assert is_refusal(f"A toaster, {conjunction} {inability}.") is False
    assert is_refusal(f"{conjunction.capitalize()} {inability}, it is a toaster.") is False


@pytest.mark.parametrize("notice", ["out of order", "we are closed", "no dogs", "sold out"])
def test_an_apology_that_only_gives_a_notice_is_the_text_of_a_sign(notice: str) -> None:
    assert is_refusal(f"Sorry, {notice}") is False
    assert is_refusal(f"Sorry, I can't say whether it is {notice}.")


@pytest.mark.parametrize("said", ["I don't know", "I do not know.", "Not sure.", "No idea"])
def test_a_bare_i_do_not_know_is_an_answer(said: str) -> None:
    assert is_refusal(said) is False
    assert is_refusal(f"Sorry, {said}") is False


@pytest.mark.parametrize("inability", ["I can't read the sign.", "The sign cannot be read."])
def test_an_inability_beside_a_statement_that_may_answer_is_undecided(inability: str) -> None:
    assert is_refusal(f"{inability} The shop sells bread.") is None
    assert is_refusal(f"The shop on the left sells fresh bread. {inability}") is None
    assert is_refusal(f"{inability.rstrip('.')}, but the shop sells bread.") is False


@pytest.mark.parametrize("sign", ["Sorry.", "Without seeing it, no.", "The name is not visible."])
def test_a_weak_sign_of_an_inability_without_an_answer_is_undecided(sign: str) -> None:
    assert is_refusal(sign) is None


@pytest.mark.parametrize("inability", INABILITIES)
@pytest.mark.parametrize("answer", ["The answer is (B).", "It looks like a bus.", "My best guess is a bus."])
def test_an_answer_that_mentions_an_inability_is_no_refusal(inability: str, answer: str) -> None:
    assert is_refusal(f"{inability.rstrip('.')}. {answer}") is False
    assert is_refusal(f"{answer} {inability}") is False


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
    assert is_refusal(answer) is False
