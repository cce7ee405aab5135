"""DynaMath's metrics, recomputed from answers whose right reading is known (section 3 of the paper)."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from statistics import variance
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.reproduction.recomputed import Record, Unit, check, measure, report, write_lines

OPTIONS = {"A": "larger", "B": "equal", "C": "smaller"}
SUBJECTS, KINDS = ("algebra", "statistics"), ("float", "multiple choice", "text")
FORMS = (
    '{{"solution": "See the figure.", "short answer": "{}"}}',
    '```json\n{{"solution": "2 + 2 = 4", "short answer": "{}"}}\n```',
    '{{"solution": "It breaks off", "short answer": "{}"',
    "I add both sides.\n\nThe answer is {}.",
    r"So we get \boxed{{{}}}.",
    "{}",
)


class Question(NamedTuple):
    seed: str
    variant: str
    kind: str
    answer: str
    subject: str


def questions(seeds: int, variants: int) -> Iterator[Question]:
    for seed, variant in product(range(1, seeds + 1), range(1, variants + 1)):
        kind = KINDS[seed % 3]
        answers = {
            "float": f"{seed + variant / 8:g}",
            "multiple choice": "ABC"[(seed + variant) % 3],
            "text": f"({seed}, {-variant})",
        }
        yield Question(str(seed), str(variant), kind, answers[kind], SUBJECTS[seed % 2])


def release(folder: Path, asked: list[Question]) -> Path:
    """The questions as the ten trials of the repository hold them."""
    for variant in {question.variant for question in asked}:
        trial = folder / f"trial{variant}"
        (trial / "image").mkdir(parents=True)
        records = {}
        for seed, _, kind, answer, subject in (one for one in asked if one.variant == variant):
            Image.new("RGB", (8, 8), (int(seed), int(variant), 0)).save(trial / f"image/image{seed}.png")
            listed = " Choices: " + " ".join(f"({letter}) {text}" for letter, text in OPTIONS.items())
            records[seed] = {
                "question": f"How is {seed} to {variant}?" + (listed if kind == "multiple choice" else ""),
                "answer": answer,
                "image": f"image/image{seed}.png",
                "answer_type": kind,
                "subject": subject,
                "level": "high school",
            }
        (trial / "dataset.json").write_text(json.dumps(records))
    return folder


def spellings(question: Question) -> tuple[list[list[str]], list[list[str]]]:
    """The right and the wrong answers of which a model is to give one, each in forms that mean the same."""
    if question.kind == "float":
        value = float(question.answer)
        exact = [f"{value:.3f}", f"x = {value:g}", str(Fraction(value)), f"{value:g} cm"]
        return [exact, [f"{value + 0.0009:.4f}"]], [
            [f"{value + 0.0021:.4f}"],
            [f"{-value:g}", f"{-value:.2f}"],
        ]
    if question.kind == "multiple choice":
        each = {letter: [letter, f"({letter})", text] for letter, text in OPTIONS.items()}
        return [each.pop(question.answer)], list(each.values())
    x, y = question.answer.strip("()").split(", ")
    return [[question.answer, f"({x}.0, {y})"]], [[f"({y}, {x})"], [f"({x}, 0)"]]


class Said(NamedTuple):
    """How a question was answered: the verdict, which answer it was, and the line of the file."""

    question: Question
    verdict: str
    answer: str | None
    line: dict[str, Any]


def said(question: Question, rng: random.Random, draw: int = 0) -> Said:
    line: dict[str, Any] = {"id": question.seed, "variant": question.variant, "draw": draw}
    weights = (1, 0, 0, 0, 0) if int(question.seed) % 4 == 0 else (60, 22, 6, 6, 6)
    (verdict,) = rng.choices(("right", "wrong", "miss", "empty", "failed"), weights)
    if verdict == "failed":
        return Said(question, verdict, None, line | {"error": "timeout"})
    if verdict == "empty" or (verdict == "miss" and question.kind == "text"):
        return Said(question, "empty", None, line | {"response": ""})
    if verdict == "miss":
        nothing = rng.choice(["I cannot tell.", '{"solution": "?", "short answer": "unknown"}'])
        # Two answers that choose no option are one; elsewhere, the responses are compared.
        answer = nothing if question.kind == "float" else None
        return Said(question, verdict, answer, line | {"response": nothing})
    forms = rng.choice(spellings(question)[verdict == "wrong"])
    response = rng.choice(FORMS).format(rng.choice(forms))
    return Said(question, verdict, forms[0], line | {"response": response})


def expected(answers: list[Said]) -> Mapping[str, list[Unit]]:
    """A_avg, A_wst and RR = A_wst / A_avg as shares of answers, seeds and right answers; misses."""
    wrong = {one.question.seed for one in answers if one.verdict != "right"}
    clusters = [one.question.seed for one in answers]
    right = [one.question.seed for one in answers if one.verdict == "right"]
    return {
        "average": [Unit(100 * (one.verdict == "right"), one.question.seed) for one in answers],
        "worst_case": [Unit(100 * (seed not in wrong), seed) for seed in set(clusters)],
        "robustness": [Unit(100 * (seed not in wrong), seed) for seed in right],
        "miss": [Unit(100 * (one.verdict == "miss"), one.question.seed) for one in answers],
    }


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "score"])
def test_metrics_and_intervals_are_those_of_answers_made_right_or_wrong(tmp_path: Path, command: str) -> None:
    asked, rng = list(questions(seeds=24, variants=10)), random.Random(1)
    answers = [said(question, rng) for question in asked]
    kept = [one.line for one in answers if one.verdict != "failed" or one.question.seed != "1"]
    file = write_lines(tmp_path / "answers.jsonl", kept)
    words = ["run", "dynamath", "--model", f"replay/{file}"]
    if command == "score":
        words = ["score", "dynamath", str(file), "--allow-missing"]
    found = measure(tmp_path / "out", *words, "--data", str(release(tmp_path / "data", asked)), status=1)
    assert len({one.verdict for one in answers}) == 5
    check_all(found, "all", answers)
    for subject in SUBJECTS:
        check_all(found, f"subject={subject}", [one for one in answers if one.question.subject == subject])
    for kind in KINDS:
        check_all(found, f"answer_type={kind}", [one for one in answers if one.question.kind == kind])
    worst, average, ratio = (found[name, "all"]["value"] for name in ("worst_case", "average", "robustness"))
    assert worst / average == pytest.approx(ratio / 100)


def check_all(found: Mapping[tuple[str, str], Record], subset: str, answers: list[Said]) -> None:
    for metric, units in expected(answers).items():
        check(found[metric, subset], units)


@pytest.mark.slow
def test_every_combination_of_options_given_once_has_the_values_of_chance(
    tmp_path: Path,
) -> None:
    asked = [one for one in questions(seeds=12, variants=2) if one.kind == "multiple choice"]
    chosen = {"1": lambda draw: "ABC"[draw % 3], "2": lambda draw: "ABC"[draw // 3]}
    lines = [
        {"id": one.seed, "variant": one.variant, "draw": draw, "response": chosen[one.variant](draw)}
        for one, draw in product(asked, range(9))
    ]
    file = write_lines(tmp_path / "answers.jsonl", lines)
    words = ["run", "dynamath", "--model", f"replay/{file}", "--repeats", "9"]
    found = measure(tmp_path / "out", *words, "--data", str(release(tmp_path / "data", asked)))
    values = [found[name, "all"]["value"] for name in ("average", "worst_case", "robustness")]
    assert values == pytest.approx([100 / 3, 100 / 9, 100 / 3])


@pytest.mark.slow
def test_repeated_answers_have_the_consistency_variance_and_chances_of_their_draws(tmp_path: Path) -> None:
    asked, rng = list(questions(seeds=12, variants=4)), random.Random(2)
    draws = {one: [said(one, rng, draw) for draw in range(5)] for one in asked}
    file = write_lines(tmp_path / "answers.jsonl", (one.line for each in draws.values() for one in each))
    words = ["run", "dynamath", "--model", f"replay/{file}", "--repeats", "5"]
    measure(tmp_path / "out", *words, "--data", str(release(tmp_path / "data", asked)), status=1)
    found = report(tmp_path / "out", "--repeats")
    whole = {one: each for one, each in draws.items() if all(draw.verdict != "failed" for draw in each)}
    right = {one: [draw.verdict == "right" for draw in each] for one, each in draws.items()}
    units = {
        "expected accuracy": [Unit(100 * one, of.seed) for of, each in right.items() for one in each],
        "consensus accuracy": [Unit(100 * consensus(each), one.seed) for one, each in draws.items()],
        "consistency rate": [
            Unit(100 * (len({draw.answer for draw in each}) == 1), one.seed) for one, each in whole.items()
        ],
        "repetition consistency": [
            Unit(100 * (draw.answer == each[0].answer), one.seed)
            for one, each in whole.items()
            for draw in each[1:]
        ],
        "internal variance": [Unit(100 * variance(map(int, each)), one.seed) for one, each in right.items()],
    }
    for k in (2, 4, 5):
        chosen = {one: list(combinations(each, k)) for one, each in right.items()}
        for name, holds in ((f"pass^{k}", all), (f"pass@{k}", any)):
            units[name] = [
                Unit(100 * sum(map(holds, each)) / len(each), one.seed) for one, each in chosen.items()
            ]
    assert found.keys() == units.keys()
    for metric, of in units.items():
        check(found[metric], of, intervals=False)


def consensus(draws: list[Said]) -> bool:
    """Whether the most frequent answer is right; of equally frequent ones the first counts."""
    given = [draw for draw in draws if draw.verdict != "failed"]
    counts = Counter(draw.answer for draw in given)
    return bool(given) and max(given, key=lambda draw: counts[draw.answer]).verdict == "right"


@pytest.mark.slow
def test_groups_of_which_not_all_questions_were_sent_are_not_counted(tmp_path: Path) -> None:
    asked, rng = list(questions(seeds=12, variants=4)), random.Random(3)
    answers = [said(question, rng) for question in asked]
    file = write_lines(tmp_path / "answers.jsonl", (one.line for one in answers))
    words = ["run", "dynamath", "--model", f"replay/{file}", "--max-requests", "30"]
    found = measure(tmp_path / "out", *words, "--data", str(release(tmp_path / "data", asked)), status=4)
    lines = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    left = {line["sample"] for line in lines if line["status"] == "not_sent"}
    assert left
    check_all(found, "all", [one for one in answers if one.question.seed not in left])
