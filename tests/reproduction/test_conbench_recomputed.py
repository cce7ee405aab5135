"""ConBench's metrics, recomputed from answers whose reading is known, by the rules of its Score.py."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.reproduction.recomputed import Unit, check, judged_by, measure, write_lines

ABILITIES = {
    "Sensation": "count color scene poster attribute_recognition ocr position",
    "Cognition": "calculation code translation math cross_instance_reason attribute_reason",
    "Knowledge": "celebrity chemistry physics biology landmark artwork",
}
TASKS = {task: ability for ability, tasks in ABILITIES.items() for task in tasks.split()}
OPTIONS = {"A": "golden retriever", "B": "grey parrot", "C": "black horse", "D": "none of them"}
NY = ("{}", "{}, it is shown.", "The answer is {}.", "I see it, so {}.")
CHOICE = ("{letter}", "{letter}. {text}", "({letter})", "The answer is {letter}", "{text}")
QA = ("golden retriever", "A Golden Retriever", "retriever", "golden", "a", "b", "cat", "a grey parrot", "D")
REPLIES = {"Yes": True, "yes.": True, "No": False, "No, yes would be wrong": False, "It is yes": False}
FORMS = ("ny", "choice", "qa")


@dataclass(frozen=True, eq=False)
class Shown:
    """An image with its right answers, and what was said: responses (None: failed) and what they state."""

    id: str
    number: int
    task: str
    cluster: str
    right: Mapping[str, str]
    said: dict[str, str | None] = field(default_factory=dict)
    stated: dict[str, str | None] = field(default_factory=dict)


def asked_as(number: int, form: str) -> str:
    return f"id{3 * number + FORMS.index(form)}"


def release(folder: Path, rng: random.Random) -> list[Shown]:
    """Three images in each folder of a task; the first of every other folder is that of the one before."""
    found: list[Shown] = []
    for place, task in enumerate(TASKS):
        (folder / task / "images").mkdir(parents=True)
        records = []
        for number in range(3):
            colour = (place - (place % 2 and number == 0)) * 10, number * 80, 0
            Image.new("RGB", (8, 8), colour).save(folder / task / "images" / f"{number}.png")
            right = {"ny": rng.choice(("Yes", "No")), "choice": rng.choice("ABCD"), "qa": "golden retriever"}
            listed = "; ".join(f"{letter}:{text}" for letter, text in OPTIONS.items())
            ny, choice, qa = (asked_as(len(found), form) for form in FORMS)
            asked = {
                ("N/Y", "ny"): f"Is animal {ny} shown?Please answer Yes or No.",
                ("Choices", "choice"): f"Which animal is {choice}?\nOption: {listed}",
                ("Q/A", "qa"): f"What is {qa}?",
                ("Caption", ""): "Describe the image.",
            }
            for (kind, form), question in asked.items():
                image = {"image": f"images/{number}.png", "question_field": kind}
                records.append({**image, "question": question, "answer": right.get(form, "")})
            found.append(Shown(f"{task}/{number + 1}", len(found), task, str(colour), right))
        (folder / task / f"output_w_caption_{task}.json").write_text(json.dumps(records))
    return found


def answer(one: Shown, rng: random.Random) -> None:
    """Fill in what is said about an image: right or wrong, in some form, empty, or not at all."""
    easy = 0.9 if one.number % 3 else 0.4
    side = one.right["ny"] if rng.random() < easy else {"Yes": "No", "No": "Yes"}[one.right["ny"]]
    letter = one.right["choice"] if rng.random() < easy else rng.choice("ABCD")
    texts = {
        "ny": rng.choice(NY).format(rng.choice((side, side.lower()))),
        "choice": rng.choice(CHOICE).format(letter=letter, text=OPTIONS[letter]),
        "qa": rng.choice(QA[:3] if rng.random() < easy else QA),
        "caption": f"An animal stands on grass. id{1000 + one.number}",
    }
    states = {"ny": side, "choice": letter, "qa": texts["qa"]}
    for form, text in texts.items():
        kind = rng.choices(("said", "empty", "failed"), (92, 4, 4))[0]
        if form == "caption" and kind == "empty":
            kind = "said"
        one.said[form] = {"said": text, "empty": "", "failed": None}[kind]
        if form in states:
            one.stated[form] = states[form] if kind == "said" else None


def anls(said: str, reference: str) -> float:
    """1 - the edit distance over the length of the longer text, in lower case; 0 from a distance of 0.95."""
    a, b = (" ".join(text.lower().split()) for text in (said, reference))
    row = np.arange(len(b) + 1)
    for letter in a:
        last, row = row, row + 1
        for place, other in enumerate(b, start=1):
            row[place] = min(last[place] + 1, row[place - 1] + 1, last[place - 1] + (letter != other))
    distance = row[-1] / max(len(a), len(b), 1)
    return float(1 - distance) if distance < 0.95 else 0.0


def strict(one: Shown) -> Mapping[str, str | None]:
    return {form: text and text.lower() for form, text in one.stated.items()}


def released(one: Shown) -> Mapping[str, str | None]:
    """What Score.py reads: a side in the first four characters, the first character, the whole text."""
    said = {form: text.lower() if text else None for form, text in one.said.items()}
    start = (said["ny"] or "")[:4]
    letter = said["choice"] and said["choice"].replace(" ", "")[0]
    side = "yes" if "yes" in start else "no" if "no" in start else None
    return {"ny": side, "choice": letter, "qa": said["qa"]}


Reader = Callable[[Shown], Mapping[str, str | None]]


def expected(images: Sequence[Shown], read: Reader) -> dict[str, list[Unit]]:
    right: dict[str, list[bool]] = {form: [] for form in FORMS}
    alike = []
    for one in images:
        found = read(one)
        right["ny"].append(found["ny"] == one.right["ny"].lower())
        right["choice"].append(found["choice"] == one.right["choice"].lower())
        right["qa"].append(bool(found["qa"]) and anls(found["qa"] or "", one.right["qa"]) >= 0.4)
        both = found["choice"] and found["qa"]
        alike.append(bool(both) and anls(found["choice"] or "", found["qa"] or "") > 0.2)

    def share(holds: Sequence[bool]) -> list[Unit]:
        return [Unit(100 * held, one.cluster) for held, one in zip(holds, images, strict=True)]

    pairs = list(zip(right["choice"], right["qa"], alike, strict=True))
    return {
        "con_score_d": share([all(each) for each in zip(*right.values(), strict=True)]),
        **{f"acc_{form}": share(right[form]) for form in FORMS},
        "con_choice_qa": share([(a and b) or (not a and not b and same) for a, b, same in pairs]),
        "con_choice_qa_wrong": share([not a and not b and same for a, b, same in pairs]),
    }


def asked_about(one: Shown, form: str) -> str:
    """The numbers in the judge's prompt: of the caption, then of the question."""
    return f"id{1000 + one.number} {asked_as(one.number, form)}"


def confirmed(images: Sequence[Shown], replies: Mapping[str, str]) -> dict[str, list[Unit]]:
    """ConScore[C] and its parts: what the judge says of each answer that did not fail, beside its caption."""
    found: dict[str, list[Unit]] = {
        f"con_cap_{form}": [
            Unit(100 * REPLIES[replies[asked_about(one, form)]], one.cluster)
            for one in images
            if one.said[form] is not None and one.said["caption"] is not None
        ]
        for form in FORMS
    }
    return {"con_score_c": [unit for units in found.values() for unit in units], **found}


@pytest.mark.slow
@pytest.mark.parametrize(("extraction", "read"), [("strict", strict), ("released", released)])
def test_metrics_and_intervals_are_those_of_answers_made_right_or_wrong(
    tmp_path: Path, extraction: str, read: Reader
) -> None:
    images, lines = answered(tmp_path / "data")
    file = write_lines(tmp_path / "answers.jsonl", lines)
    words = ["run", "conbench", "--model", f"replay/{file}", "--data", str(tmp_path / "data")]
    found = measure(tmp_path / "out", *words, "--set", f"extraction={extraction}", status=1)
    for metric, units in expected(images, read).items():
        check(found[metric, "all"], units)
    for ability in ABILITIES:
        part = [one for one in images if TASKS[one.task] == ability]
        for metric, units in expected(part, read).items():
            check(found[metric, f"ability={ability}"], units)


@pytest.mark.slow
def test_the_caption_confirms_the_answers_of_which_the_judge_begins_with_yes(tmp_path: Path) -> None:
    images, lines = answered(tmp_path / "data")
    rng = random.Random(2)
    replies = {asked_about(one, form): rng.choice(list(REPLIES)) for one in images for form in FORMS}
    file = write_lines(tmp_path / "answers.jsonl", lines)
    words = ["score", "conbench", str(file), "--data", str(tmp_path / "data"), "--judge", "rules"]
    found = measure(tmp_path / "out", *words, *judged_by(tmp_path, replies), status=1)
    for metric, units in (expected(images, strict) | confirmed(images, replies)).items():
        check(found[metric, "all"], units)


def answered(data: Path) -> tuple[list[Shown], list[dict[str, Any]]]:
    """The images of a release with what was said about them, and the lines of a file that says so."""
    rng = random.Random(1)
    images = release(data, rng)
    for one in images:
        answer(one, rng)
    return images, [
        {"id": one.id, "variant": form, **({"error": "timeout"} if text is None else {"response": text})}
        for one in images
        for form, text in one.said.items()
    ]
