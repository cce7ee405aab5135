"""The rules on outputs that were written and labelled by hand before anyone measured a rule on them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.base import Benchmark, defaults
from sightline.benchmarks.codis.rules import judge_answer_part, same_meaning_by_rules
from sightline.benchmarks.groups.mask_words import names_lines
from sightline.benchmarks.registry import benchmark
from sightline.scoring.chosen import read_choice
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.reasoning import cut_reasoning
from sightline.scoring.scorer import ModelScorer, same_or_different
from sightline.scoring.text import answer_part
from sightline.types import Case

Line = Mapping[str, Any]
HERE = Path(__file__).parent
MOST_WRONG, MOST_UNDECIDED = 0.01, 0.10
MORE_MISSED = 0.02
"""Share of a file that may be missed beyond what is missed today."""


@pytest.fixture
def pairs(shared: Path) -> dict[str, Any]:
    return {pair["id"]: pair for pair in json.loads((shared / "data/codis/data.json").read_text())}


def test_the_rules_judge_of_codis_agrees_with_the_labels(pairs: Mapping[str, Any]) -> None:
    def verdict(line: Line) -> str:
        pair = pairs[line["pair"]]
        reference = pair["answer"][line["context"].replace("context", "answer")]
        return judge_answer_part(pair["question"], reference, answer_part(line["output"]))[0]

    _check("codis_correct.jsonl", verdict)


def test_same_meaning_by_rules_agrees_with_the_labels(pairs: Mapping[str, Any]) -> None:
    def verdict(line: Line) -> str:
        question = pairs[line["pair"]]["question"]
        decided = same_meaning_by_rules(question, line["output_1"], line["output_2"])
        return {"right": "same", "wrong": "different"}.get(decided, decided)

    _check("codis_same_meaning.jsonl", verdict)


def test_the_reader_of_judge_replies_agrees_with_the_labels() -> None:
    """Replies to CODIS's released prompt are read like those to Table 12."""
    codis = _judge_model(benchmark("codis"))
    scorers = {
        "codis/judge": codis,
        "codis/judge_released": codis,
        "contextual/judge": _judge_model(benchmark("contextual")),
        "scoring/same_meaning": same_or_different("prompt"),
        "builders/equivalent": same_or_different("prompt"),
    }

    def verdict(line: Line) -> str:
        case = Case((), "correct", "", ())  # these judges read the reply alone
        decided = scorers[line["prompt"]].read(case, line["reply"]).verdict
        return {"right": "yes", "wrong": "no"}.get(decided, decided)

    _check("judge_replies.jsonl", verdict)


def test_refusals_and_lines_agree_with_the_labels() -> None:
    _check("refusals.jsonl", lambda line: is_refusal(line["output"]))
    _check("mask_lines.jsonl", lambda line: names_lines(line["output"], "3"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "wrong_today", "missed_today"),
    [
        ("choices_first.jsonl", 3, 109),
        ("choices_second.jsonl", 8, 118),
        ("choices_third.jsonl", 4, 57),
        ("choices_fourth.jsonl", 9, 196),
        ("choices_fifth.jsonl", 0, 61),
        ("choices_sixth.jsonl", 1, 41),
        ("choices_seventh.jsonl", 0, 125),
        ("choices_eighth.jsonl", 2, 12),
        ("choices_ninth.jsonl", 5, 28),
    ],
)
def test_the_reader_of_options_agrees_with_the_labels(file: str, wrong_today: int, missed_today: int) -> None:
    lines = _lines(file)
    read = [
        (line, read_choice(cut_reasoning(line["response"]).answer, line["options"], line["question"]))
        for line in lines
    ]
    wrong = [(line["id"], choice) for line, choice in read if choice.position not in (None, line["label"])]
    missed = sum(choice.position is None and line["label"] is not None for line, choice in read)
    assert len(wrong) <= wrong_today, wrong
    assert missed <= missed_today + MORE_MISSED * len(lines)


def _judge_model(task: Benchmark) -> ModelScorer:
    options = {**defaults(task, next(iter(task.settings.values()))), "seed": 0}
    return next(
        scorer
        for scorer in task.scorers(options)
        if isinstance(scorer, ModelScorer) and scorer.question == "correct"
    )


def _lines(file: str) -> list[Line]:
    return [json.loads(line) for line in (HERE / file).read_text(encoding="utf-8").splitlines()]


def _check(file: str, decide: Callable[[Line], object]) -> None:
    lines = _lines(file)
    decided = [(line["label"], decide(line)) for line in lines]
    undecided = sum(verdict in ("undecided", None) and label != verdict for label, verdict in decided)
    wrong = [pair for pair in decided if pair[1] not in (pair[0], "undecided", None)]
    assert len(wrong) <= MOST_WRONG * len(lines), wrong
    assert undecided <= MOST_UNDECIDED * len(lines)
