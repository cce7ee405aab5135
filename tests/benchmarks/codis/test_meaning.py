"""Whether two outputs mean the same, against what the labels of the appendix's outputs imply."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.codis.rules import same_meaning_by_rules
from sightline.scoring.text import lexicon

DOOR = "Am I opening or closing the door?"
LEGAL = "Is my brother's behavior legal?"
ANIMAL = "What is the animal in the image?"


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (DOOR, "Opening.", "You are opening the door."),
        (DOOR, "The context says so.\nClosing the door.", "He just left, so: closing"),
        (DOOR, "It cannot be determined.", "Either opening or closing."),
        (LEGAL, "Yes.", "His behavior is legal in the UK."),
        (LEGAL, "No.", "It is illegal."),
        ("What time is it now?", "6:09", "It is 6:09 pm."),
        (ANIMAL, "A rabbit.", "The animal in the image is a rabbit."),
        ("How many cubes can we see?", "Seven.", "We can see 7 cubes."),
        (DOOR, "", " \n"),
    ],
)
def test_two_wordings_of_one_answer_are_the_same(question: str, first: str, second: str) -> None:
    assert same_meaning_by_rules(question, first, second) == "right"


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        (DOOR, "You are opening the door.", "You are closing the door."),
        (DOOR, "Opening.", "It cannot be determined."),
        (DOOR, "Opening.", ""),
        (DOOR, "Opening.", "The man is getting out of a taxi."),
        (LEGAL, "His behavior is legal.", "His behavior is not legal."),
        ("What time is it now?", "6:09", "6:25"),
        (ANIMAL, "A white rabbit.", "A white duck."),
        (ANIMAL, "It is a rabbit.", "It is not a rabbit."),
    ],
)
def test_different_answers_in_like_words_differ(question: str, first: str, second: str) -> None:
    assert same_meaning_by_rules(question, first, second) == "wrong"


LEAD_INS = (
    "Based on the context, ",
    "Based on the image and the context provided, I believe that the answer is ",
    "The answer is: ",
    "From the perspective of the photographer, it is ",
    "Zork blim the frobnicated quux: ",
    "Answer - ",
    "The most likely answer to this question is ",
)


@pytest.mark.parametrize("lead", LEAD_INS)
def test_a_lead_in_that_both_references_share_does_not_make_them_the_same(shared: Path, lead: str) -> None:
    for pair in json.loads((shared / "data/codis/data.json").read_text()):
        truths = [lead + truth for truth in pair["answer"].values()]
        assert same_meaning_by_rules(pair["question"], *truths) == "wrong", pair["id"]


@pytest.mark.parametrize("leads", [LEAD_INS[:2], LEAD_INS[1:3], (LEAD_INS[0], "")])
def test_one_reference_under_two_lead_ins_stays_the_same(shared: Path, leads: tuple[str, str]) -> None:
    for pair in json.loads((shared / "data/codis/data.json").read_text()):
        for truth in pair["answer"].values():
            said = [lead + truth for lead in leads]
            assert same_meaning_by_rules(pair["question"], *said) == "right", (pair["id"], truth)


@given(data=st.data())
def test_any_words_that_two_contrasting_answers_share_do_not_count(data: st.DataObject) -> None:
    first, second = data.draw(st.sampled_from(CONTRASTS), "answers")
    lead = " ".join(data.draw(st.lists(st.sampled_from(sorted(LEAD_WORDS)), max_size=8), "lead-in"))
    assert same_meaning_by_rules("What is it?", f"{lead} {first}", f"{lead} {second}") == "wrong"


CONTRASTS = (
    ("Eight", "Two"),
    ("White.", "Black."),
    ("Unbuckling the seatbelt.", "Fasten the seatbelt."),
    ("North", "Northeast"),
    ("Anna", "Ben"),
    ("the red one", "the blue one"),
    ("a white rabbit", "a white duck"),
    ("7:23", "7:24"),
)
LEAD_WORDS = lexicon(
    "based on the image and context, so: I think it must be clear that we see in this big photo"
)


def test_an_answer_without_content_cannot_be_compared() -> None:
    assert same_meaning_by_rules(ANIMAL, "It is.", "A duck.") == "undecided"


def test_likeness_to_an_answer_that_alone_can_be_read_decides_nothing() -> None:
    hand = "What is the moving direction of my hand? Up or down?"
    assert (
        same_meaning_by_rules(hand, "The moving direction is down.", "The moving direction is") == "undecided"
    )


def test_the_two_ground_truths_of_a_pair_differ(shared: Path) -> None:
    for pair in json.loads((shared / "data/codis/data.json").read_text()):
        truths = pair["answer"].values()
        assert same_meaning_by_rules(pair["question"], *truths) == "wrong", pair["id"]


def test_both_halves_right_means_that_they_differ_in_meaning(shared: Path) -> None:
    folder = shared / "data/codis"
    said: dict[tuple[str, str], list[str]] = {}
    questions: dict[str, str] = {}
    for line in (folder / "appendix_cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        questions[case["data_id"][0]] = case["question"]
        for output in (*case["outputs_1"], *case["outputs_2"]):
            said.setdefault((case["data_id"][0], output["model"]), []).append(output["output"])
    right: dict[tuple[str, str], int] = {}
    for line in (folder / "appendix_labels.jsonl").read_text().splitlines():
        label = json.loads(line)
        key = label["id"], label["model"]
        right[key] = right.get(key, 0) + (label["verdict"] == "right")
    both = [key for key, count in right.items() if count == 2]
    assert len(both) == 10
    for key in both:
        assert same_meaning_by_rules(questions[key[0]], *said[key]) == "wrong", key


@given(question=st.sampled_from((DOOR, LEGAL, ANIMAL)), first=st.text(), second=st.text())
def test_meaning_has_no_order_and_equals_itself(question: str, first: str, second: str) -> None:
    there = same_meaning_by_rules(question, first, second)
    assert there == same_meaning_by_rules(question, second, first)
    assert same_meaning_by_rules(question, first, first) == "right"
