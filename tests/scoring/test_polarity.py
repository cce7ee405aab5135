"""Whether an answer says yes or no."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.polarity import NO, YES, asks_yes_or_no, said_yes_or_no
from sightline.scoring.text import OPEN

LEGAL = "Is my brother's behavior legal?"
EAT = "Can I eat the box of meat?"
DANGER = "Is the person in danger?"
TEACHER = "Is the person on the left the teacher?"


@pytest.mark.parametrize(
    ("question", "answer", "reading"),
    [
        (LEGAL, "Yes.", YES),
        (LEGAL, "The answer: no", NO),
        (LEGAL, "No, it is not legal.", NO),
        (LEGAL, "The behavior is legal.", YES),
        (LEGAL, "His behavior is likely illegal.", NO),
        (LEGAL, "It is not illegal.", YES),
        (LEGAL, "Illegal in the US.", NO),
        (LEGAL, "If he is in the UK, his behavior is legal.", YES),
        (LEGAL, "In the US it is not legal for him to be in a casino.", NO),
        (EAT, "You can't.", NO),
        (EAT, "It is past its date; therefore, it is not recommended to eat it.", NO),
        (DANGER, "No danger evident.", NO),
        (DANGER, "The baby looks happy. So the baby is not in danger.", NO),
        (DANGER, "There is no danger.", NO),
        ("Has the athlete hit the ball?", "Not yet.", NO),
        ("Has the athlete hit the ball?", "He is about to hit the ball.", NO),
        ("Is it appropriate for him to make this gesture?", "It is inappropriate in Greece.", NO),
        ("Is the scene unusual?", "It is a usual scene.", NO),
        (TEACHER, "The person on the left is the teacher.", YES),
        ("Am I driving in the correct lane?", "You are driving in the wrong lane.", NO),
        (LEGAL, "It is against the law.", NO),
        (LEGAL, "It is forbidden.", NO),
        (LEGAL, "It is permitted.", YES),
        (DANGER, "The person is safe.", NO),
        (LEGAL, "I don't think so.", NO),
        (LEGAL, "Of course.", YES),
    ],
)
def test_yes_and_no_are_read_from_words_and_from_sentences(question: str, answer: str, reading: str) -> None:
    assert said_yes_or_no(question, answer) == reading


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (LEGAL, "It is important to check the local laws to determine whether the behavior is legal."),
        (LEGAL, "It may be legal or illegal."),
        (LEGAL, "Yes or no."),
        (LEGAL, "Sometimes yes, sometimes no."),
        (LEGAL, "No one knows."),
        (LEGAL, "No, I don't know."),
        (EAT, "It is not clear whether the box of meat is safe to eat."),
        (DANGER, "It depends on the water."),
    ],
)
def test_an_answer_that_puts_it_off_leaves_the_question_open(question: str, answer: str) -> None:
    assert said_yes_or_no(question, answer) == OPEN


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (LEGAL, "No, it is legal."),
        (LEGAL, "The age is 18."),
        (LEGAL, "The answer provided is not appropriate to the"),
        (EAT, "It is dangerous to eat the box of meat."),
        (DANGER, "The person is a baby."),
        (TEACHER, "The person on the right is the teacher."),
        (
            "Would this door number make me feel uncomfortable?",
            "The door number is a number that is not used",
        ),
    ],
)
def test_what_contradicts_itself_or_speaks_of_something_else_says_neither(question: str, answer: str) -> None:
    assert said_yes_or_no(question, answer) is None


def test_a_question_with_options_or_a_question_word_asks_neither() -> None:
    assert asks_yes_or_no(LEGAL)
    assert not asks_yes_or_no("Is it up or down?")
    assert not asks_yes_or_no("What is it?")


QUESTIONS = (
    LEGAL,
    EAT,
    DANGER,
    "Did I do well in the quiz?",
    "Is it open?",
    "Will he jump?",
    "Are there two?",
)
FORMS = (
    "{}",
    "{}.",
    "{}!",
    "**{}**",
    '"{}"',
    "({})",
    "\\boxed{{{}}}",
    "Answer: {}",
    "The answer is {}.",
    "Well, {}.",
    "I would say {}.",
    "So the answer is {}.",
    "Based on the context, {}.",
    "Final answer: **{}**",
    "It is a {}.",
    "Therefore {}.",
    "Short answer: {}.",
    "A: {}",
    "Is it? {}.",
    "Hmm, {}.",
    "{}, of course.",
    "{}, definitely.",
    "{}, because of the context.",
    "{} - the context says so.",
    "{}; the context says so.",
    "{} {}.",
)
VERBS = [
    "is",
    "was",
    "are",
    "were",
    "does",
    "do",
    "did",
    "has",
    "have",
    "can",
    "could",
    "will",
    "would",
    "should",
]
SUBJECTS = ["it", "he", "she", "they", "that", "this", "there", "you", "I", "we"]


@given(
    question=st.sampled_from(QUESTIONS),
    form=st.sampled_from(FORMS),
    change=st.sampled_from((str.lower, str.upper, str.capitalize)),
    words=st.sampled_from((("yes", "no"), ("yep", "nope"), ("yeah", "nah"))),
)
def test_a_yes_and_a_no_in_one_form_are_opposite_answers(
    question: str, form: str, change: Callable[[str], str], words: tuple[str, str]
) -> None:
    yes, no = (said_yes_or_no(question, form.format(*[change(word)] * 2)) for word in words)
    assert (yes, no) == (YES, NO)


@given(
    question=st.sampled_from((LEGAL, EAT, DANGER)),
    subject=st.sampled_from(SUBJECTS),
    verb=st.sampled_from(VERBS),
    short=st.booleans(),
    joint=st.sampled_from((", ", ". ", "; ", " - ", " ")),
)
def test_a_no_is_confirmed_by_its_sentence_as_a_yes_is(
    question: str, subject: str, verb: str, short: bool, joint: str
) -> None:
    negated = {"can": "can't", "will": "won't"}.get(verb, verb + "n't") if short else f"{verb} not"
    assert said_yes_or_no(question, f"Yes{joint}{subject} {verb}.") == YES
    assert said_yes_or_no(question, f"No{joint}{subject} {negated}.") == NO
