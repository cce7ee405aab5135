"""The rules judge against the released pairs and against what a careful reader says of 140 outputs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.benchmarks.codis.rules import judge_answer_part
from sightline.scoring.offered import offer_of
from sightline.scoring.text import answer_part

Pairs = dict[str, dict[str, Any]]
UP_OR_DOWN = "Is the red capsule going up or down?"
TIME_24 = "Please tell me what time it is on a 24-hour schedule. Precise to minute level."


def judge_by_rules(question: str, reference: str, output: str) -> str:
    """The verdict on an output, of which only the answer part counts."""
    return judge_answer_part(question, reference, answer_part(output))[0]


@pytest.fixture(scope="module")
def pairs(shared: Path) -> Pairs:
    return {pair["id"]: pair for pair in json.loads((shared / "data/codis/data.json").read_text())}


@pytest.fixture(scope="module")
def outputs(shared: Path) -> dict[tuple[str, int, str], str]:
    """What the 14 models said in the appendix, by pair, context and model."""
    return {
        (case["data_id"][0], context, said["model"]): said["output"]
        for case in read_lines(shared / "data/codis/appendix_cases.jsonl")
        for context in (1, 2)
        for said in case[f"outputs_{context}"]
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def judge(pairs: Pairs, pair: str, context: int, output: str) -> str:
    return judge_by_rules(pairs[pair]["question"], pairs[pair]["answer"][f"answer_{context}"], output)


def test_what_it_decides_agrees_with_a_careful_reader(
    shared: Path, pairs: Pairs, outputs: dict[tuple[str, int, str], str]
) -> None:
    counts: Counter[str] = Counter()
    for label in read_lines(shared / "data/codis/appendix_labels.jsonl"):
        verdict = judge(
            pairs, label["id"], label["context"], outputs[label["id"], label["context"], label["model"]]
        )
        counts["undecided" if verdict == "undecided" else "decided"] += 1
        counts["against"] += verdict != "undecided" and label["verdict"] not in (verdict, "unclear")
    assert counts["decided"] + counts["undecided"] == 140
    assert counts["against"] <= 0.02 * counts["decided"]
    assert counts["undecided"] <= 0.15 * 140


def test_every_ground_truth_is_right_for_itself_and_never_for_its_counterpart(
    shared: Path, pairs: Pairs
) -> None:
    example = json.loads((shared / "data/codis/output_example.json").read_text())
    released = {entry["id"]: entry["output"] for entry in example}
    verdicts: Counter[str] = Counter()
    for name in pairs:
        first, second = released[name]["output_1"], released[name]["output_2"]
        assert (judge(pairs, name, 1, first), judge(pairs, name, 2, second)) == ("right", "right"), name
        for context, other in ((1, second), (2, first)):
            verdicts[judge(pairs, name, context, other)] += 1
    assert verdicts["right"] == 0
    assert verdicts["undecided"] == 0


def test_only_the_chosen_option_of_those_offered_is_right(pairs: Pairs) -> None:
    for pair in pairs.values():
        offer = offer_of(pair["question"])
        for reference in pair["answer"].values() if offer else ():
            said = [" ".join(option.words) for option in offer.options] if offer else []
            right = [words for words in said if judge_by_rules(pair["question"], reference, words) == "right"]
            assert len(right) <= 1, pair["id"]


@pytest.mark.parametrize("pair", ["007", "008", "012", "066", "123"])
def test_counterclockwise_is_not_clockwise(pairs: Pairs, pair: str) -> None:
    clockwise = 1 if pairs[pair]["answer"]["answer_1"] == "Clockwise." else 2
    for output in ("Counterclockwise.", "It runs counter-clockwise.", "ANTICLOCKWISE"):
        assert judge(pairs, pair, clockwise, output) == "wrong"
        assert judge(pairs, pair, 3 - clockwise, output) == "right"
    assert judge(pairs, pair, clockwise, "In a clockwise direction") == "right"
    assert judge(pairs, pair, 3 - clockwise, "In a clockwise direction") == "wrong"


@pytest.mark.parametrize(
    ("pair", "right", "wrong"),
    [
        ("126", ["7:22", "07:23", "7:24 am"], ["7:21", "7:25", "19:23", "7:23 pm"]),
        ("127", ["7:23", "It is 07:24 now."], ["19:23"]),
        ("129", ["8:11", "08:13"], ["8:14", "20:12"]),
        ("130", ["8:12 a.m."], ["20:12", "8:12 p.m."]),
        ("131", ["10:18", "10:20"], ["10:17", "10:21", "22:20"]),
        ("132", ["22:18", "10:19 PM"], ["10:20", "22:21"]),
        ("226", ["6:07", "6:10", "18:09"], ["6:06", "6:25"]),
        ("227", ["6:24", "6:25 p.m."], ["6:27", "6:09"]),
        ("229", ["5:50", "05:52"], ["5:49", "6:09"]),
    ],
)
def test_times_are_right_within_the_inclusive_range(
    pairs: Pairs, pair: str, right: list[str], wrong: list[str]
) -> None:
    assert {judge(pairs, pair, 1, output) for output in right} == {"right"}
    assert {judge(pairs, pair, 1, output) for output in wrong} == {"wrong"}


def test_times_within_and_outside_the_range_together_are_undecided() -> None:
    assert judge_by_rules(TIME_24, "8:12", "8:12 or 20:12") == "undecided"


@pytest.mark.parametrize(
    "output", ["", " \n", "...", "Up or down.", "It cannot be determined.", "Either way."]
)
def test_an_answer_that_commits_to_nothing_is_wrong(output: str) -> None:
    assert judge_by_rules(UP_OR_DOWN, "Up.", output) == "wrong"


@pytest.mark.parametrize("output", ["Not down.", "The capsule is red.", "It is going up. It is going down."])
def test_what_chooses_no_option_or_contradicts_itself_is_undecided(output: str) -> None:
    assert judge_by_rules(UP_OR_DOWN, "Up.", output) == "undecided"


NON_ANSWERS = (
    "I have no idea.",
    "No idea",
    "No clue, sorry.",
    "Yes and no.",
    "Yes/No",
    "It is not a yes or no question.",
    "No one knows.",
    "Nobody can say.",
    "Who knows?",
    "There is no clear answer.",
    "No answer.",
    "no comment",
    "No information is given.",
    "There are no clues in the image.",
    "The image does not show that.",
    "No, it cannot be determined.",
    "Hard to say.",
    "It depends.",
    "Perhaps not.",
    "Maybe.",
    "Neither.",
    "In some countries yes, in others no.",
    "I'm sorry, but I can't help with that.",
    "N/A",
    "It might be so, it might not.",
    "No? Or yes?",
    "The image is too blurry to tell.",
    "There is no image attached.",
    "I can't make it out.",
    "Nope, can't say",
)


@pytest.mark.parametrize("output", NON_ANSWERS)
def test_a_non_answer_is_never_right_whatever_the_reference(pairs: Pairs, output: str) -> None:
    for pair in pairs.values():
        for reference in pair["answer"].values():
            verdict = judge_by_rules(pair["question"], reference, output)
            assert verdict == "wrong", (pair["id"], reference)


@pytest.mark.parametrize(
    "lead",
    [
        *(
            f"Based on the {kind}{material}, {claim}"
            for kind in ("", "additional ", "limited ", "further ")
            for material in ("context", "information")
            for claim in ("", "the answer is: ")
        ),
        "With more context, ",
        "Looking at the picture and the additional context, ",
    ],
)
def test_a_reference_is_right_under_any_lead_in(pairs: Pairs, lead: str) -> None:
    for pair in pairs.values():
        for reference in pair["answer"].values():
            assert judge_by_rules(pair["question"], reference, lead + reference) == "right", pair["id"]


SAFE = "Is it safe to cross the road?"


@pytest.mark.parametrize(
    "form",
    [
        "{}?",
        "{}. Or {}.",
        "{}... or {}?",
        "Answer: {}. Or maybe {}.",
        "{} or {}.",
        '"{}" is what some would say; others say {}.',
        "Some people say {}, others {}.",
        "To some, {}; to others, {}.",
        "Maybe {}, maybe {}.",
        "It could be {}, it could be {}.",
        "The answer could be {}.",
        "{}, I can't say.",
        "{}, no idea.",
    ],
)
def test_a_yes_or_no_that_is_asked_reported_or_only_possible_is_never_right(form: str) -> None:
    for said, other in (("Yes", "No"), ("No", "Yes"), ("yes", "no"), ("nope", "yep")):
        output = form.format(said, other)
        for reference in ("Yes.", "No."):
            assert judge_by_rules(SAFE, reference, output) == "wrong", output


@pytest.mark.parametrize("modal", ["may", "might", "could"])
@pytest.mark.parametrize("between", [", it ", " and it ", " or it ", ", or ", " but it "])
def test_what_may_be_and_may_not_be_is_never_right(modal: str, between: str) -> None:
    for first, then in (("be safe", "not be"), ("not be safe", "be")):
        output = f"It {modal} {first}{between}{modal} {then}."
        for reference in ("Yes.", "No."):
            assert judge_by_rules(SAFE, reference, output) != "right", output


def test_no_labelled_output_is_right_for_another_claim_and_few_are_lost() -> None:
    outputs = read_lines(Path(__file__).with_name("labelled_outputs.jsonl"))
    lost = []
    for one in outputs:
        for reference in one["references"]:
            verdict = judge_by_rules(one["question"], reference, one["output"])
            assert verdict != "right" or one["claim"] == reference, one["output"]
            if verdict != ("right" if one["claim"] == reference else "wrong"):
                lost.append(one["output"])
    assert len(set(lost)) <= 0.03 * len(outputs), lost


@pytest.mark.parametrize("lead", ["", "Based on the context, ", "The answer is: ", "I would say ", "So, "])
@pytest.mark.parametrize("ending", ["", ".", "!", ", it is.", " because of the sign.", " (see the sign)"])
def test_yes_and_no_are_read_alike(pairs: Pairs, lead: str, ending: str) -> None:
    if lead == "I would say " and ending.startswith(", it"):
        return
    for said, other in (("Yes", "No"), ("No", "Yes")):
        output = lead + said + (ending.replace("it is", "it is not") if said == "No" else ending)
        question = "Can I turn here?"
        assert judge_by_rules(question, f"{said}.", output) == "right", output
        assert judge_by_rules(question, f"{other}.", output) == "wrong", output


@pytest.mark.parametrize(
    ("output", "reading"),
    [
        ("No turn is possible here.", "No."),
        ("There is no problem with a turn.", None),
        ("No information is visible.", None),
        ("No you can't.", "No."),
        ("No, no one may turn.", "No."),
        ("Yes, no problem.", "Yes."),
        ("Yes, no one would mind.", "Yes."),
    ],
)
def test_no_before_a_noun_denies_the_noun(output: str, reading: str | None) -> None:
    for reference in ("Yes.", "No."):
        verdict = judge_by_rules("Is a turn possible here?", reference, output)
        assert (verdict == "right") == (reading == reference), reference


def test_only_the_answer_part_is_judged() -> None:
    assert judge_by_rules(UP_OR_DOWN, "Up.", "At first it goes down.\nUp.") == "right"


@pytest.mark.parametrize(
    ("question", "reference", "output", "verdict"),
    [
        ("How many cubes can we see?", "Seven.", "There are 7 cubes.", "right"),
        ("How many cubes can we see?", "Seven.", "Six", "wrong"),
        ("How many cubes can we see?", "Seven.", "Six or seven", "wrong"),
        ("What is the color of the background?", "White.", "The background is white.", "right"),
        ("What is the color of the background?", "White.", "Black", "wrong"),
        ("What is the animal?", "A rabbit.", "The animal is a rabbit.", "right"),
        ("What is the animal?", "A rabbit.", "It can be seen as a rabbit or a duck.", "wrong"),
        ("What is the animal?", "A white rabbit.", "A white duck.", "undecided"),
        ("What is the animal?", "A rabbit.", "It is impossible to tell.", "wrong"),
        ("What does it say?", "DO NOT EXIT, ENTER ONLY", "Do not enter, exit only", "wrong"),
        ("What does it say?", "DO NOT EXIT, ENTER ONLY", 'It says "Do not exit, enter only".', "right"),
    ],
)
def test_free_questions_go_by_the_words_of_the_reference(
    question: str, reference: str, output: str, verdict: str
) -> None:
    assert judge_by_rules(question, reference, output) == verdict


@given(data=st.data())
def test_case_and_signs_at_the_end_do_not_change_a_verdict(
    pairs: Pairs, outputs: dict[tuple[str, int, str], str], data: st.DataObject
) -> None:
    pair = data.draw(st.sampled_from(sorted(pairs)), "pair")
    context = data.draw(st.sampled_from((1, 2)))
    truths = list(pairs[pair]["answer"].values())
    output = data.draw(st.sampled_from([*truths, *outputs.values()]), "output").rstrip(" .")
    changed = data.draw(st.sampled_from((str.upper, str.lower, str.title, str.swapcase)))(output)
    if "\\N" in changed or "\\n" in output:
        return
    changed += data.draw(st.sampled_from(("", ".", "!", "..", " .", "\n", ".\n\n")), "end")
    assert judge(pairs, pair, context, changed) == judge(pairs, pair, context, output)


@given(question=st.text(), reference=st.text(), output=st.text())
def test_any_texts_at_all_get_a_verdict(question: str, reference: str, output: str) -> None:
    assert judge_by_rules(question, reference, output) in ("right", "wrong", "undecided")


TELLING = "is it he up or down, left right? not no yes . the a in"


@given(words=st.lists(st.sampled_from(TELLING.split())))
def test_any_order_of_telling_words_gets_a_verdict(words: list[str]) -> None:
    said = " ".join(words)
    assert judge_by_rules(said, "Up.", said) in ("right", "wrong", "undecided")
    assert judge_by_rules(UP_OR_DOWN, "No.", said) in ("right", "wrong", "undecided")


@pytest.mark.parametrize(
    ("question", "reference", "answer"),
    [
        ("On which day is it open?", "Monday.", "Any day except Monday."),
        ("What is the color of the roof?", "Red.", "It is anything but red."),
        ("What is the animal in the image?", "A cat.", "Something other than a cat."),
        ("In which country are we?", "France.", "You are outside France."),
        ("Which holiday is it?", "Christmas.", "The day after Christmas."),
        ("Who is in the image?", "Tom.", "Tom's brother."),
        ("Is it going up or down?", "Up.", "The opposite of up."),
        ("What time is it?", "7:23.", "10 minutes before 7:23."),
    ],
)
def test_what_an_answer_sets_itself_apart_from_is_not_what_it_says(
    question: str, reference: str, answer: str
) -> None:
    assert judge_by_rules(question, reference, answer) == "undecided"


@pytest.mark.parametrize(
    "question",
    [
        "Is the bride the person on the left, in the middle or on the right?",
        "On the left, in the middle or on the right: where is the bride?",
        "Is the bride in the middle or on the right?",
    ],
)
def test_places_that_a_question_lists_are_told_apart(question: str) -> None:
    assert judge_by_rules(question, "On the right.", "On the right.") == "right"
    assert judge_by_rules(question, "On the right.", "The one on the right") == "right"
    assert judge_by_rules(question, "On the right.", "In the middle.") == "wrong"
    assert judge_by_rules(question, "On the right.", "On the left.") != "right"
