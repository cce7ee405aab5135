"""Rephrasings in every shape in which models give them, and what speaks against a reply."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.builders.replies import EQUAL, GIVEN_AWAY, TOO_FEW, given_away, read_rephrasings, rephrasings

# The three of Figure 7, and their original as OKVQA might ask it.
A = "What material was utilized to create the vessels shown in the image?"
B = "What substance was used in the production of the vessels featured in the image?"
C = "Can you identify the material from which the vessels in the image were made?"
ORIGINAL = "What is the material that was used to make the vessels in this image?"

SHAPES = {
    "numbered": f"1. {A}\n2. {B}\n3. {C}",
    "numbered, with blank lines and prose": f"Sure! Here are three:\n\n1. {A}\n\n2. {B}\n\n3. {C}\n\nMore?",
    "brackets": f"1) {A}\n2) {B}\n3) {C}",
    "two brackets": f"(1) {A}\n(2) {B}\n(3) {C}",
    "no blank behind the number": f"1.{A}\n2.{B}\n3.{C}",
    "bold numbers": f"**1.** {A}\n**2.** {B}\n**3.** {C}",
    "bold items": f"1. **{A}**\n2. **{B}**\n3. **{C}**",
    "bold labels": f'1. **Formal:** {A}\n2. **Casual**: {B}\n3. **Direct:** "{C}"',
    "letters": f"a) {A}\nb) {B}\nc) {C}",
    "keycaps": f"1️⃣ {A}\n2️⃣ {B}\n3️⃣ {C}",
    "hyphens": f"- {A}\n- {B}\n- {C}",
    "stars": f"* {A}\n* {B}\n* {C}",
    "dots": f"• {A}\n• {B}\n• {C}",
    "arrows": f"→ {A}\n→ {B}\n→ {C}",
    "quoted items": f'- "{A}"\n- "{B}"\n- "{C}"',
    "headings over items": f"1. Formal\n   - {A}\n2. Casual\n   - {B}\n3. Direct\n   - {C}",
    "JSON list": json.dumps([A, B, C]),
    "JSON object": json.dumps({"rephrasings": [A, B, C]}),
    "JSON by number": json.dumps({"original_question": "Who?", "1": A, "2": B, "3": C}),
    "JSON objects": json.dumps([{"question": q, "answer": "copper", "style": "plain?"} for q in (A, B, C)]),
    "JSON lines": "\n".join(json.dumps({"q": q}) for q in (A, B, C)),
    "fenced JSON": f"Here you go:\n```json\n{json.dumps({'questions': [A, B, C]}, indent=2)}\n```\nBye!",
    "broken JSON": f'[\n "{A}",\n "{B}",\n "{C}",\n]',
    "Python list": repr([A, B, C]),
    "fenced text": f"```\n1. {A}\n2. {B}\n3. {C}\n```",
    "quoted lines": f'"{A}"\n"{B}"\n"{C}"',
    "curly quotes": f"“{A}”\n\n“{B}”\n\n“{C}”",
    "bare lines": f"{A}\n{B}\n{C}",
    "prose before and after": f'Three ways to say "What is it?":\n\n{A}\n\n{B}\n\n{C}\n\nMore?',
    "labelled": f"Rephrased question 1: {A}\nRephrased question 2: {B}\nRephrased question 3: {C}",
    "labels on lines of their own": f"Question 1:\n{A}\n\nQuestion 2:\n{B}\n\nQuestion 3:\n{C}",
    "bold labels with numbers": f"**Question 1:** {A}\n**Question 2:** {B}\n**Question 3:** {C}",
    "ordinals": f"First rephrased question: {A}\nSecond rephrased question: {B}\nThird question: {C}",
    "as the paper prints them": f"R1) {A}\nR2) {B}\nR3) {C}",
    "versions": f"Version A: {A}\nVersion B: {B}\nVersion C: {C}",
    "headings": f"### Question 1\n{A}\n### Question 2\n{B}\n### Question 3\n{C}",
    "all on one line": f"Here are three, all with the answer copper: 1. {A} 2. {B} 3. {C}",
    "labels on one line": f"Rephrased question 1: {A} Rephrased question 2: {B} Rephrased question 3: {C}",
    "bullets on one line": f"- {A} - {B} - {C}",
    "bare on one line": f"Certainly! Here are three rephrased questions: {A} {B} {C}",
    "escaped newlines": f"1. {A}\\n2. {B}\\n3. {C}",
    "carriage returns": f"1. {A}\r\n2. {B}\r\n3. {C}\r\n",
    "wrapped": f"1. {A[:40]}\n   {A[41:]}\n2. {B}\n3. {C}",
    "notes behind": f"1. {A} (formal)\n2. {B} - about its substance\n3. {C} Answer: copper",
    "answers between": f"1. {A}\nAnswer: copper\n2. {B}\nAnswer: copper\n3. {C}\nAnswer: copper",
    "Q and A": f"Q1: {A}\nA1: copper\nQ2: {B}\nA2: copper\nQ3: {C}\nA3: copper",
    "the original repeated": f"Original question: {ORIGINAL}\n\n1. {A}\n2. {B}\n3. {C}",
    "table": f"| # | Question |\n|---|---|\n| 1 | {A} |\n| 2 | {B} |\n| 3 | {C} |",
    "HTML": f"<ol><li>{A}</li><li>{B}</li><li>{C}</li></ol>",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_three_rephrasings_are_read_in_every_format(shape: str) -> None:
    assert rephrasings(SHAPES[shape])[:3] == (A, B, C)
    assert read_rephrasings(SHAPES[shape], ORIGINAL, ["copper"]).rephrasings == (A, B, C)


WORDS = st.lists(st.text("bcdfghjklmnprstvwz", min_size=3, max_size=8), min_size=4, max_size=12, unique=True)
QUESTIONS = st.lists(
    WORDS.map(lambda words: " ".join(words).capitalize() + "?"), min_size=3, max_size=3, unique=True
)


@given(QUESTIONS, st.sampled_from(["{n}. {q}\n", "{n}) {q} ", "- {q}\n", '"{q}"\n', "Question {n}: {q}\n\n"]))
def test_marks_never_become_part_of_a_question(questions: list[str], form: str) -> None:
    reply = "".join(form.format(n=n, q=q) for n, q in enumerate(questions, 1))
    assert rephrasings(reply) == tuple(questions)


@given(QUESTIONS)
def test_json_replies_are_decoded(questions: list[str]) -> None:
    assert rephrasings(f"Here: {json.dumps(questions)} Enjoy!") == tuple(questions)


@given(st.text(max_size=300))
def test_any_reply_can_be_read(reply: str) -> None:
    reading = read_rephrasings(reply, ORIGINAL, ["copper"])
    assert len(reading.rephrasings) in (0, 3)
    assert bool(reading.rephrasings) != bool(reading.objection)


@pytest.mark.parametrize(
    "reply", ["[" * 5000, "{" * 5000, "1. " * 5000, '"' * 5000, "", "I'm sorry, I can't."]
)
def test_a_reply_without_questions_is_too_few(reply: str) -> None:
    assert read_rephrasings(reply, ORIGINAL, ["copper"]).objection.startswith(TOO_FEW)


def test_fewer_than_three_rephrasings_are_refused() -> None:
    assert (
        read_rephrasings(f"1. {A}\n2. {B}\nShall I give you another one?", ORIGINAL, ["x"]).objection
        == f"{TOO_FEW} (2)"
    )
    assert (
        read_rephrasings(f"{A} Would you like more? Do you have others?", ORIGINAL, ["x"]).objection
        == f"{TOO_FEW} (1)"
    )


def test_rephrasings_that_differ_only_in_case_and_punctuation_count_once() -> None:
    assert read_rephrasings(f"1. {A}\n2. {A.upper()}!\n3. {B}", ORIGINAL, ["x"]).objection == f"{TOO_FEW} (2)"


def test_a_rephrasing_that_equals_the_question_is_refused() -> None:
    assert read_rephrasings(f"1. {A}\n2. {ORIGINAL.lower()[:-1]}\n3. {B}", ORIGINAL, ["x"]).objection == EQUAL


def test_three_usable_rephrasings_of_more_are_enough() -> None:
    reply = f"1. {ORIGINAL}\n2. {A}\n3. Is it copper that they are made of?\n4. {B}\n5. {C}"
    assert read_rephrasings(reply, ORIGINAL, ["copper"]).rephrasings == (A, B, C)


def test_a_rephrasing_that_reveals_the_answer_is_refused_with_the_answer() -> None:
    reply = f"1. {A}\n2. Are the vessels made of copper?\n3. {B}"
    assert read_rephrasings(reply, ORIGINAL, ["steel", "copper"]).objection == f"{GIVEN_AWAY} ('copper')"


@pytest.mark.parametrize(
    ("text", "question", "answers", "told"),
    [
        ("Is it red?", "Which colour is it?", ["red"], "red"),
        ("Is it coloured?", "Which hue is it?", ["red", "colour"], ""),  # words, not parts of words
        ("Is the bus red or blue?", "Is it a red or a blue bus?", ["red"], ""),  # the question says it too
        ("Is it in New York, the city?", "Which city is it?", ["new york city"], "new york city"),
        ("Is it in York?", "Which city is it?", ["new york"], ""),
        ("Is it 1.5 liters?", "How much is it?", ["1.5"], "1.5"),
        ("Is it the best?", "Is it?", ["👍"], ""),  # an answer without words
    ],
)
def test_answers_are_matched_by_whole_words(text: str, question: str, answers: list[str], told: str) -> None:
    assert given_away(text, question, answers) == told


def test_a_truncated_sentence_is_not_a_rephrasing() -> None:
    reply = f"1. {A}\n2. {B}\n3. Which material is it that the ves"
    assert read_rephrasings(reply, ORIGINAL, ["x"]).rephrasings
    assert read_rephrasings(reply, ORIGINAL, ["x"], cut=True).objection == f"{TOO_FEW} (2)"


def test_numbered_requests_need_no_question_mark() -> None:
    reply = f"1. {A}\n2. Name the material of the vessels.\n3. Tell me of what the vessels are made."
    assert read_rephrasings(reply, ORIGINAL, ["copper"]).rephrasings[1:] == (
        "Name the material of the vessels.",
        "Tell me of what the vessels are made.",
    )
