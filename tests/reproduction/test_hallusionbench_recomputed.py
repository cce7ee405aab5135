"""HallusionBench's metrics, recomputed from answers whose reading is known, by the rules of its utils.py."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.reproduction.recomputed import Unit, check, judged_by, measure, write_lines

SIDES = ("no", "yes")
FORMS = ("{}", "{}, the figure shows that.", "The answer is {}.", "I looked twice.\n\nAnswer: {}")
NEITHER = ("I cannot tell from this.", "There is not enough information to say.", "")


VERDICTS = (
    ("incorrect", "It is Incorrect, not correct."),
    ("Correct", "It is not wrong: correct"),
    ("unclear", "-"),
)


class Question(NamedTuple):
    """A record of HallusionBench.json; `figure` 0 of category VS is a question without a figure."""

    category: str
    subcategory: str
    number: str
    figure: str
    question: str
    visual: str
    answer: str

    @property
    def set(self) -> str:
        return f"{self.category}/{self.subcategory}/{self.number}"

    @property
    def blind(self) -> bool:
        return self.visual == "0"


class Said(NamedTuple):
    """An answer: the side that it was made to state, if any; code 0, 1, 2: wrong, right, unclear."""

    question: Question
    side: str | None
    failed: bool
    response: str

    @property
    def code(self) -> int:
        return 2 if self.side is None else int(self.side == self.question.answer)

    @property
    def right(self) -> bool:
        """Without a figure, not to know is right."""
        return not self.failed and (self.code == 1 or (self.question.blind and self.code == 2))

    @property
    def line(self) -> dict[str, Any]:
        one = self.question
        given = {"error": "timeout"} if self.failed else {"response": self.response}
        figure = "none" if one.blind else one.figure
        return {"id": one.set, "variant": f"{one.category} {figure} {one.question}", **given}


def questions() -> Iterator[Question]:
    """Sets of both categories with two or three figures; sets of one number in both share a subcategory."""
    for category, subcategory, count in (("VD", "ocr", 9), ("VS", "ocr", 7), ("VS", "chart", 6)):
        for number in range(count):
            for figure in range(3 - number % 2):
                shown = (
                    "0" if figure == 0 and category == "VS" else "1" if figure == (category == "VS") else "2"
                )
                for question in range(2 + number % 3):
                    answer = SIDES[(number + figure * question) % 2]
                    yield Question(
                        category, subcategory, str(number), str(figure), str(question), shown, answer
                    )


def release(folder: Path) -> Path:
    records: list[dict[str, Any]] = []
    for one in questions():
        place = None if one.blind else f"./{one.category}/{one.subcategory}/{one.number}_{one.figure}.png"
        if place:
            file = folder / "hallusion_bench" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (len(records) % 250, 0, 0)).save(file)
        records.append(
            {
                "category": one.category,
                "subcategory": one.subcategory,
                "visual_input": one.visual,
                "set_id": one.number,
                "figure_id": one.figure,
                "sample_note": "lines",
                "question_id": one.question,
                "question": f"Is line {one.question} the longest?",
                "gt_answer_details": f"Line {one.question} is compared.",
                "gt_answer": str(SIDES.index(one.answer)),
                "filename": place,
            }
        )
    (folder / "HallusionBench.json").write_text(json.dumps(records))
    return folder


def said(question: Question, rng: random.Random, failing: bool) -> Said:
    right, wrong = question.answer, SIDES[question.answer == "no"]
    side = rng.choices((right, wrong, None), (62, 28, 10))[0]
    if failing and rng.random() < 0.06:
        return Said(question, None, True, "")
    if side is None:
        return Said(question, None, False, rng.choice(NEITHER))
    text = rng.choice((side, side.capitalize()))
    return Said(question, side, False, rng.choice(FORMS).format(text))


def cause(one: Said, first: Said) -> str | None:
    """Why an answer is wrong, from that about the first figure (get_eval_pair_all); None if one failed."""
    code, before, same = one.code, first.code, one.side == first.side
    if one.right or one.failed or first.failed:
        return None
    if one.question.figure == "0":
        return "visual_illusion" if one.question.category == "VD" else "language_hallucination"
    if one.question.category == "VD":
        return "mixed" if before == 1 and code == 0 and same else "visual_illusion"
    if before == 0:
        return "language_hallucination" if code == 0 and same else "mixed"
    if before == 1 and code == 0 and same and one.question.visual == "2":
        return "language_hallucination"
    return "visual_illusion"


def expected(answers: Sequence[Said]) -> Mapping[str, list[Unit]]:
    def each(holds: Callable[[Said], float], of: Iterable[Said] = answers) -> list[Unit]:
        return [Unit(100 * holds(one), one.question.set) for one in of]

    def parts(key: Callable[[Question], Any], of: Iterable[Said]) -> list[list[Said]]:
        found = defaultdict(list)
        for one in of:
            found[one.question.set, key(one.question)].append(one)
        return list(found.values())

    def share(holds: Callable[[list[bool]], bool], of: list[list[Said]]) -> list[Unit]:
        return [Unit(100 * holds([one.right for one in part]), part[0].question.set) for part in of]

    easy = [one for one in answers if one.question.visual != "2"]
    hard = [one for one in answers if one.question.visual == "2"]
    pairs, figures = (
        parts(lambda one: one.question, answers),
        parts(lambda one: one.figure, (one for one in answers if not one.question.blind)),
    )
    first = {(one.question.set, one.question.question): one for one in answers if one.question.figure == "0"}
    wrong = [one for one in answers if not one.right]
    causes = {one: cause(one, first[one.question.set, one.question.question]) for one in wrong}
    return {
        "a_acc": each(lambda one: one.right),
        "q_acc": share(all, pairs),
        "f_acc": share(all, figures),
        "easy_acc": share(all, parts(lambda one: one.question, easy)),
        "hard_acc": share(all, parts(lambda one: one.question, hard)),
        "figures_inconsistent": share(lambda right: any(right) and not all(right), figures),
        "figures_wrong": share(lambda right: not any(right), figures),
        # yes_ratio_stats: a right answer says what is right, any other one the opposite.
        "yes_difference": each(
            lambda one: (one.right == (one.question.answer == "yes")) - (one.question.answer == "yes")
        ),
        "false_positives": each(lambda one: one.question.answer == "no", wrong),
        **{
            name: [Unit(100 * (found == name), one.question.set) for one, found in causes.items() if found]
            for name in ("language_hallucination", "visual_illusion", "mixed")
        },
        "uncertain": each(
            lambda one: not one.failed and one.side is None, (one for one in answers if one.question.blind)
        ),
    }


@pytest.mark.slow
@pytest.mark.parametrize("failing", [False, True])
def test_metrics_and_intervals_are_those_of_answers_made_right_or_wrong(
    tmp_path: Path, failing: bool
) -> None:
    rng = random.Random(1)
    answers = [said(question, rng, failing) for question in questions()]
    file = write_lines(tmp_path / "answers.jsonl", (one.line for one in answers))
    words = ["run", "hallusionbench", "--model", f"replay/{file}", "--data", str(release(tmp_path / "data"))]
    found = measure(tmp_path / "out", *words, status=int(failing))
    subsets: dict[str, Callable[[Question], bool]] = {
        "all": lambda one: True,
        "category=VD": lambda one: one.category == "VD",
        "category=VS": lambda one: one.category == "VS",
        "subcategory=ocr": lambda one: one.subcategory == "ocr",
    }
    assert {metric for metric, _ in found} == expected(answers).keys()
    for subset, holds in subsets.items():
        for metric, units in expected([one for one in answers if holds(one.question)]).items():
            if units:
                check(found[metric, subset], units, intervals=metric != "yes_difference")


@pytest.mark.slow
def test_a_judge_model_decides_what_is_right_and_which_answers_are_the_same(tmp_path: Path) -> None:
    rng = random.Random(2)
    answers = [said(question, rng, False) for question in questions()]
    first = {(one.question.set, one.question.question): one for one in answers if one.question.figure == "0"}
    numbers = {one: f"id{number}" for number, one in enumerate(answers)}
    replies = {}
    for one, number in numbers.items():
        before = first[one.question.set, one.question.question]
        replies[number] = rng.choice(VERDICTS[one.code])
        same = one.side == before.side
        replies[f"{number} {numbers[before]}"] = rng.choice(
            ("Same.", "same") if same else ("different", "Neither")
        )
    lines = [{**one.line, "response": f"See {number}."} for one, number in numbers.items()]
    file = write_lines(tmp_path / "answers.jsonl", lines)
    words = ["score", "hallusionbench", str(file), "--data", str(release(tmp_path / "data"))]
    found = measure(tmp_path / "out", *words, *judged_by(tmp_path, replies))
    for metric, units in expected(answers).items():
        check(found[metric, "all"], units, intervals=metric != "yes_difference")


@pytest.mark.slow
def test_sets_of_one_number_in_both_categories_are_pooled_as_in_vlmevalkit(tmp_path: Path) -> None:
    rng = random.Random(3)
    answers = [said(one, rng, True) for one in questions() if not one.blind]
    pools = {one: f"{one.question.subcategory}/{one.question.number}" for one in answers}
    file = write_lines(tmp_path / "answers.jsonl", ({**one.line, "id": pool} for one, pool in pools.items()))
    words = ["run", "hallusionbench:with-figure", "--model", f"replay/{file}"]
    found = measure(tmp_path / "out", *words, "--data", str(release(tmp_path / "data")), status=1)
    check(found["a_acc", "all"], [Unit(100 * one.right, pool) for one, pool in pools.items()])
    for metric, place in (("q_acc_pooled", "question"), ("f_acc_pooled", "figure")):
        parts = defaultdict(list)
        for one, pool in pools.items():
            parts[pool, getattr(one.question, place)].append(one.right)
        check(found[metric, "all"], [Unit(100 * all(right), pool) for (pool, _), right in parts.items()])
