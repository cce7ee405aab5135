"""CII-Bench's metrics, recomputed from answers whose reading is known, and as its eval_cii.py reads them."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.reproduction.recomputed import Unit, check, measure, write_lines

LETTERS = "ABCDEF"
THINGS = ("灯塔", "铁门", "钟表", "雨伞", "棋盘", "风筝")
STATED = (
    *(
        "{letter}",
        "({letter})",
        "{text}",
        "答案：{letter}",
        "答案是（{letter}）",
        "他低头看手机。\n答案：{letter}",
    ),
    "他低头看手机。\n答案：{letter}，而不是{other}",
)
MISSES = ("这张图片很有意思。", "两个选项都有道理。")
RHETORIC = ("隐喻", {"choices": ["象征", "夸张"]}, ["对比"])
Reader = Callable[["Said"], str | None]


@dataclass(frozen=True, eq=False)
class Question:
    id: str
    image: str
    options: Sequence[str]
    answer: str
    rhetoric: Any

    @property
    def rhetorics(self) -> Sequence[str]:
        named = self.rhetoric["choices"] if isinstance(self.rhetoric, dict) else self.rhetoric
        return [named] if isinstance(named, str) else named

    def text(self, letter: str) -> str:
        return self.options[LETTERS.index(letter)]


class Said(NamedTuple):
    """An answer: whether it failed, its text, and the letter that it was made to state."""

    question: Question
    failed: bool
    response: str
    letter: str | None

    @property
    def line(self) -> dict[str, Any]:
        return {"id": self.question.id} | (
            {"error": "timeout"} if self.failed else {"response": self.response}
        )


def release(folder: Path, count: int) -> list[Question]:
    """The records of the release; every third image shows what the one before shows."""
    rng, records, found = random.Random(0), [], []
    (folder / "images" / "test").mkdir(parents=True)
    for number in range(count):
        shown = number - (number % 3 == 2)
        place, options = f"images/test/test-{number}.jpg", rng.sample(THINGS, 6)
        Image.new("RGB", (8, 8), (50 * (shown % 6), 50 * (shown // 6 % 6), 80 * (shown // 36))).save(
            folder / place
        )
        options = [f"图中的{thing}比喻第{number}种生活" for thing in options]
        answer, rhetoric = rng.choice(LETTERS), RHETORIC[number % 3]
        meta: dict[str, Any] = {
            "image_type": "海报(Poster)",
            "difficulty": "简单",
            "domain": "生活",
            "emotion": "中性",
        }
        asked = {
            "id": f"test-{number}",
            "question": "这张图片有什么隐喻？",
            "options": options,
            "correct_option": options[LETTERS.index(answer)],
            "answer": answer,
        }
        meta |= {"rhetoric": rhetoric, "metaphorical_meaning": "生活", "explanation": "生活"}
        records.append({"local_path": place, "questions": [asked], "meta_data": meta})
        found.append(Question(f"test-{number}", str(shown), options, answer, rhetoric))
    (folder / "test.json").write_text(json.dumps(records, ensure_ascii=False))
    return found


def said(question: Question, rng: random.Random) -> Said:
    (kind,) = rng.choices(("right", "wrong", "miss", "empty", "failed"), (55, 25, 8, 6, 6))
    if kind not in ("right", "wrong"):
        return Said(question, kind == "failed", rng.choice(MISSES) if kind == "miss" else "", None)
    letter = question.answer if kind == "right" else rng.choice(LETTERS.replace(question.answer, ""))
    other = "A" if letter != "A" else "B"
    response = rng.choice(STATED).format(letter=letter, text=question.text(letter), other=other)
    return Said(question, False, response, letter)


def released(one: Said) -> str | None:
    """The letter as eval_cii.py reads it: it takes letters of the alphabet in order, not as they stand."""
    text = one.response.strip()
    if not text or text in list("ABCDEFGH"):
        return text or None
    for mark in ("\n答案", "\n**答案："):
        if mark in text:
            text = text.rpartition(mark)[2]
            if held := [letter for letter in "ABCDEFGH" if letter in text]:
                return held[0]
    letters: list[str] = re.findall(r"\(([A-F])\)", text) or re.findall(r"\b([A-F])\b", text)
    letters = letters or [
        letter
        for letter, option in zip(LETTERS, one.question.options, strict=True)
        if option.strip() in text or text in option
    ]
    counts: Counter[str] = Counter(letters)
    return next((letter for letter in reversed(counts) if counts[letter] == max(counts.values())), None)


def stated(one: Said) -> str | None:
    return one.letter


def expected(answers: Sequence[Said], read: Reader) -> dict[str, list[Unit]]:
    """Nearly every metric is a share of all questions; an empty response is no miss, as in eval_cii.py."""

    def share(holds: Callable[[Said], bool], of: Sequence[Said] = answers) -> list[Unit]:
        return [Unit(100 * holds(one), one.question.image) for one in of]

    return {
        "accuracy": share(lambda one: read(one) == one.question.answer),
        "accuracy_by_position": share(lambda one: read(one) == one.question.answer),
        "error": share(lambda one: one.failed),
        "miss": share(lambda one: one.response != "" and read(one) is None),
        "empty": share(lambda one: one.response == "" and not one.failed),
        "refused": share(lambda one: False),
        "extractions_differ": share(
            lambda one: stated(one) != released(one), [one for one in answers if one.response]
        ),
        **{
            f"answered_{letter}": [Unit(100 * (read(one) == letter), one.question.image) for one in answers]
            for letter in LETTERS
        },
    }


@pytest.mark.slow
@pytest.mark.parametrize(("extraction", "read"), [("strict", stated), ("released", released)])
def test_metrics_and_intervals_are_those_of_answers_made_right_or_wrong(
    tmp_path: Path, extraction: str, read: Reader
) -> None:
    asked, rng = release(tmp_path / "data", 90), random.Random(1)
    blind, answers = ([said(question, rng) for question in asked] for _ in range(2))
    absent = next(one for one in answers if one.failed)
    file = write_lines(tmp_path / "a.jsonl", (one.line for one in answers if one is not absent))
    other = write_lines(tmp_path / "b.jsonl", (one.line for one in blind))
    words = ["score", "ciibench", str(file), "--with", f"no-image={other}", "--data", str(tmp_path / "data")]
    words += ["--set", f"extraction={extraction}", "--allow-missing"]
    found = measure(tmp_path / "out", *words, status=1)
    units = expected(answers, read)
    pairs = zip(units["accuracy"], expected(blind, read)["accuracy"], strict=True)
    units |= {"image_gain": [Unit(one.value - other.value, one.cluster) for one, other in pairs]}
    assert {metric for metric, _ in found} == units.keys()
    for metric, of in units.items():
        check(found[metric, "all"], of, low=-100 if metric == "image_gain" else 0)
    for letter in LETTERS:
        part = [one for one in answers if one.question.answer == letter]
        check(found["accuracy_by_position", f"position={letter}"], expected(part, read)["accuracy"])
    for name in {name for question in asked for name in question.rhetorics}:
        part = [one for one in answers if name in one.question.rhetorics]
        for metric in ("accuracy", "miss", "answered_A"):
            check(found[metric, f"rhetoric={name}"], expected(part, read)[metric])


@pytest.mark.slow
def test_a_question_is_consistent_if_it_is_right_in_every_order_of_the_options(tmp_path: Path) -> None:
    asked, rng = release(tmp_path / "data", 60), random.Random(2)
    easy = {question for question in asked if rng.random() < 0.4}
    letters = {
        (question, order): question.answer if question in easy else rng.choice(LETTERS)
        for question, order in product(asked, range(3))
    }
    lines = [
        {"id": question.id, "variant": f"order_{order}", "response": f"答案：{question.text(letter)}"}
        for (question, order), letter in letters.items()
    ]
    file = write_lines(tmp_path / "answers.jsonl", lines)
    words = ["run", "ciibench:shuffled", "--model", f"replay/{file}", "--data", str(tmp_path / "data")]
    found = measure(tmp_path / "out", *words)
    right = {(question, order): letter == question.answer for (question, order), letter in letters.items()}
    whole = [Unit(100 * all(right[one, order] for order in range(3)), one.image) for one in asked]
    check(found["consistent", "all"], whole)
    check(found["accuracy", "all"], [Unit(100 * one, question.image) for (question, _), one in right.items()])
    written = (tmp_path / "out" / "answers.jsonl").read_text().splitlines()
    shown = {(line["sample"], line["variant"]): line["options"] for line in map(json.loads, written)}
    assert len({tuple(options) for options in shown.values()}) > len(asked)
    places: dict[str, list[Unit]] = {letter: [] for letter in LETTERS}
    for (question, order), one in right.items():
        place = shown[question.id, f"order_{order}"].index(question.text(question.answer))
        places[LETTERS[place]].append(Unit(100 * one, question.image))
    for letter, units in places.items():
        check(found["accuracy_by_position", f"position={letter}"], units)
