"""The verdict in the reply of a judge model, in the vocabulary of every judge prompt."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from sightline.scoring.scorer import (
    CORRECT,
    SAME,
    ModelScorer,
    VerdictWords,
    accepted,
    read_verdict,
    right_or_wrong,
    same_or_different,
)
from sightline.types import Answer, Case

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
    read = [(one, SCORERS[one.prompt].read(CASE, one.reply).verdict) for one in REPLIES]
    assert [one.reply for one, verdict in read if verdict not in (one.verdict, "undecided")] == []
    lost = [one.reply for one, verdict in read if verdict != one.verdict]
    assert len(lost) <= 0.02 * len(REPLIES), lost


@pytest.mark.parametrize(("prompt", "decoration"), [*itertools.product(WORDS, DECORATIONS)])
def test_every_judge_prompt_reads_its_verdict_in_every_form(prompt: str, decoration: str) -> None:
    right, wrong = WORDS[prompt]
    for word, other, expected in ((right, wrong, "right"), (wrong, right, "wrong")):
        reply = decoration.format(word, other=other, right=right, wrong=wrong)
        assert SCORERS[prompt].read(CASE, reply).verdict == expected, reply


@pytest.mark.parametrize("prompt", WORDS)
def test_both_verdicts_or_none_are_undecided(prompt: str) -> None:
    right, wrong = WORDS[prompt]
    both = [f"{right}{between}{wrong}" for between in (" or ", "/", " and ", "\n")]
    for reply in (*both, "", "Hm."):
        assert SCORERS[prompt].read(CASE, reply).verdict == "undecided", reply


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


RESERVED = (
    "{}, but the year is missing.",
    "{}. However, it misses the year.",
    "Partially {}.",
    "{} (partially)",
    "Mostly {}.",
    "Verdict: mostly {}",
    "Almost {}.",
    "{}, except for the date.",
    "{} in part",
    "{}, with reservations",
    "{} to some extent",
    "Verdict: {}, though it is incomplete",
    "Verdict: {}, only the date is off",
    "Maybe {}.",
    "It might be {}.",
    "{} if one rounds",
    "{}, or perhaps not",
    "Technically {}.",
)


@pytest.mark.parametrize("form", RESERVED)
@pytest.mark.parametrize(
    ("vocabulary", "word"), [(CORRECT, "correct"), (CORRECT, "right"), (SAME, "the same")]
)
def test_a_reservation_leaves_a_verdict_undecided(vocabulary: VerdictWords, word: str, form: str) -> None:
    reply = form.format(word.capitalize() if form.startswith("{") else word)
    assert read_verdict(reply, vocabulary) == "undecided"


def test_an_alternative_after_a_verdict_withdraws_it() -> None:
    assert read_verdict("the same, or different", SAME) == "undecided"
    assert read_verdict("right, or wrong", CORRECT) == "undecided"


KEYS = ("verdict", "Judgement", "correct", "is_correct", "isCorrect", "accepted", "result", "final_verdict")
MEANT: dict[str, tuple[object, ...]] = {
    "right": (True, 1, 1.0, "1", "true", "True", "yes", "right", "Correct.", "not wrong"),
    "wrong": (
        False,
        0,
        0.0,
        "0",
        "false",
        "FALSE",
        "no",
        "wrong",
        "Incorrect.",
        "not right",
        "isn't correct",
    ),
    "undecided": (None, 2, 0.5, -1, "", "partially correct", "Correct, but incomplete", "unclear", [], {}),
}
FENCES = ("{}", "```json\n{}\n```", "Here it is:\n\n```\n{}\n```\n", "[{}]", '{{"judge": {}}}')


@given(
    key=st.sampled_from(KEYS),
    said=st.sampled_from([(verdict, value) for verdict, values in MEANT.items() for value in values]),
    reason=st.sampled_from((None, "The right answer is wrong.", "No error.", "Yes")),
    fence=st.sampled_from(FENCES),
    as_python=st.booleans(),
)
def test_json_is_read_by_meaning(
    key: str, said: tuple[str, object], reason: str | None, fence: str, as_python: bool
) -> None:
    verdict, value = said
    body = {"reason": reason, key: value} if reason else {key: value}
    written = repr(body) if as_python else msgspec.json.encode(body).decode()
    assert read_verdict(fence.format(written), CORRECT) == verdict


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"incorrect": true}', "wrong"),
        ('{"wrong": "false"}', "right"),
        ('{"verdict": true, "correct": false}', "right"),
        ('{"correct": true, "accepted": false}', "undecided"),
        ('{"correct_answer": "right"}', "undecided"),
        ('{"verdict": "wrong", "correct_answer": "right"}', "wrong"),
        ('The output {"answer": "Yes"} is wrong.', "undecided"),
        ('[{"verdict": "right"}, {"verdict": "wrong"}]', "undecided"),
        ("{}", "undecided"),
    ],
)
def test_of_an_object_only_the_fields_of_verdicts_count(reply: str, expected: str) -> None:
    assert read_verdict(reply, CORRECT) == expected


@given(st.text() | st.text("{}[]\":,'\\ right wrong no 01.\n"))
def test_no_reply_is_an_error(reply: str) -> None:
    for vocabulary in (CORRECT, SAME):
        assert read_verdict(reply, vocabulary) in ("right", "wrong", "undecided")


CASE = Case(("key",), "correct", "Which?", ("A drum.",), ("a drum",))


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_a_truncated_reply_holds_no_verdict(scorer: ModelScorer) -> None:
    cut = Answer("Judgement: yes, because", finish_reason="length")
    assert scorer.reading(cut, CASE).verdict == "undecided"
    assert scorer.reading(replace(cut, finish_reason="stop"), CASE).verdict == "right"


def test_a_released_reader_reads_what_it_got() -> None:
    cut = Answer("Judgement: Yes, right", finish_reason="length")
    for scorer in (right_or_wrong("", released=True), accepted("", released=True)):
        assert scorer.reading(cut, CASE).verdict == "right"


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Verdict: right\nVerdict: wrong", "undecided"),
        ("Verdict: wrong\nVerdict: right", "undecided"),
        ("Judgement: correct\nVerdict: incorrect", "undecided"),
        ("Final verdict: correct\nVerdict: incorrect", "undecided"),
        ("Verdict: correct. Verdict: incorrect. Verdict: correct", "undecided"),
        ("Conclusion: The response is correct.\nConclusion: The response is incorrect.", "undecided"),
        ("Verdict: right\nVerdict: right", "right"),
        ("Verdict: right\nFinal verdict: wrong", "wrong"),
        ("Verdict: wrong\nVerdict (final): correct", "right"),
        ("Verdict: wrong. Wait, I misread it. Verdict: right", "right"),
        ("Assessment: The year is right. The city is wrong.\nVerdict: wrong", "wrong"),
    ],
)
def test_labels_that_differ_are_undecided_unless_the_last_one_is_final(reply: str, expected: str) -> None:
    assert read_verdict(reply, CORRECT) == expected
