"""The verdict in the reply of a judge model, in the vocabulary of every judge prompt."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

from sightline.scoring.judge_replies import (
    CORRECT,
    SAME,
    VerdictWords,
    accepted,
    read_verdict,
    right_or_wrong,
    same_or_different,
)

SCORERS = {scorer.name: scorer for scorer in (right_or_wrong(""), same_or_different(""), accepted(""))}
WORDS = {
    "right_or_wrong": ("right", "wrong"),
    "same_or_different": ("same", "different"),
    "accepted": ("Yes", "No"),
}
DECORATIONS = (
    "{}",
    "{}.",
    "**{}**",
    '"{}"',
    "\\boxed{{{}}}",
    '{{"judgement": "{}"}}',
    "Judgement: {}",
    "Judgement：{}。",
    "My judgement is: {}",
    "<judgement>{}</judgement>",
    "{}.\n\nThe wording, the format and the grammar play no role.",
    "Both name the number 16.\n\n{}",
    "<think>It could be {other}.</think>\n{}",
    "The task is to reply {right} or {wrong}.\n\n{}",
    "Judgement: {other}\nWait, I missed a word.\nJudgement: {}",
)


class LabelledReply(Struct):
    """A reply to a judge prompt, and the verdict that a reader sees in it."""

    prompt: str
    reply: str
    verdict: str


REPLIES = [
    msgspec.json.decode(line, type=LabelledReply)
    for line in Path(__file__).with_name("judge_replies.jsonl").read_text().splitlines()
]


def test_no_labelled_reply_is_misread_and_few_are_undecided() -> None:
    read = [(one, SCORERS[one.prompt].read(one.reply).verdict) for one in REPLIES]
    assert [one.reply for one, verdict in read if verdict not in (one.verdict, "undecided")] == []
    lost = [one.reply for one, verdict in read if verdict != one.verdict]
    assert len(lost) <= 0.02 * len(REPLIES), lost


@pytest.mark.parametrize(("prompt", "decoration"), [*itertools.product(WORDS, DECORATIONS)])
def test_every_judge_prompt_reads_its_verdict_in_every_form(prompt: str, decoration: str) -> None:
    right, wrong = WORDS[prompt]
    for word, other, expected in ((right, wrong, "right"), (wrong, right, "wrong")):
        reply = decoration.format(word, other=other, right=right, wrong=wrong)
        assert SCORERS[prompt].read(reply).verdict == expected, reply


@pytest.mark.parametrize("prompt", WORDS)
def test_both_verdicts_or_none_are_undecided(prompt: str) -> None:
    right, wrong = WORDS[prompt]
    both = [f"{right}{between}{wrong}" for between in (" or ", "/", " and ", "\n")]
    for reply in (*both, "", "Hm."):
        assert SCORERS[prompt].read(reply).verdict == "undecided", reply


@pytest.mark.parametrize(
    ("vocabulary", "reply", "expected"),
    [
        (CORRECT, "not correct", "wrong"),
        (CORRECT, "incorrect", "wrong"),
        (CORRECT, "not incorrect", "right"),
        (CORRECT, "no discrepancy", "right"),
        (SAME, "no difference", "right"),
        (SAME, "not different", "right"),
        (SAME, "they don't mean the same", "wrong"),
    ],
)
def test_negations_are_read_in_their_sense(vocabulary: VerdictWords, reply: str, expected: str) -> None:
    assert read_verdict(reply, vocabulary) == expected


CORRECTIONS = (
    "Wait,",
    "Actually,",
    "Actually",
    "Wait, actually",
    "Hmm, actually",
    "But actually",
    "But wait,",
    "No, wait.",
    "Hold on,",
    "On second thought,",
    "On reflection,",
    "Scratch that.",
    "Correction:",
    "Sorry, I meant",
    "My mistake:",
    "Let me reconsider.",
    "I take that back:",
    "Looking again,",
    "After re-reading,",
    "Oops,",
    "Never mind,",
    "Or rather,",
)
VERDICTS = {
    CORRECT: {"right": "right", "correct": "right", "yes": "right", "wrong": "wrong", "no": "wrong"},
    SAME: {"same": "right", "equivalent": "right", "yes": "right", "different": "wrong", "no": "wrong"},
}


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("form", ["{}.", "Judgement: {}.", "{}\n\n"])
def test_after_a_correction_only_the_later_verdict_counts(form: str, correction: str) -> None:
    for vocabulary, verdicts in VERDICTS.items():
        for (first, withdrawn), (later, meant) in itertools.product(verdicts.items(), verdicts.items()):
            reply = f"{form.format(first.capitalize())} {correction} {later}."
            takes_back_a_no = later == "no" and withdrawn == "wrong"
            expected = ("wrong", "undecided") if takes_back_a_no else (meant,)
            assert read_verdict(reply, vocabulary) in expected, reply


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_correction_without_a_verdict_withdraws_the_earlier_one(correction: str) -> None:
    for vocabulary, verdicts in VERDICTS.items():
        for first in verdicts:
            reply = f"Judgement: {first}. {correction} I am no longer sure."
            assert read_verdict(reply, vocabulary) == "undecided", reply


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("It is actually wrong.", "wrong"),
        ("Actually, yes.", "right"),
        ("Judgement: Yes, actually.", "right"),
        ("No, sorry.", "wrong"),
        ("Judgement: No. The sign actually says 3.", "wrong"),
        ("The sign says that you must wait. The output is right.", "right"),
    ],
)
def test_what_takes_nothing_back_is_no_correction(reply: str, expected: str) -> None:
    assert read_verdict(reply, CORRECT) == expected
