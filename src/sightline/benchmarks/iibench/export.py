"""Writing II-Bench's released prediction file, and the submission of its public challenge.

Submission: one {"id", "answer"} a line for EvalAI challenge 2334, as a thread of II-Bench/II-Bench gives it
('What to input when unable to extract an answer'); its maintainers say there that '' counts as wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from sightline.benchmarks.iibench.formats import SPLITS
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.export import AnswersToExport, ExportFormat, counted
from sightline.formats.files import write_atomically
from sightline.scoring.letters import carry_letter
from sightline.types import Outcome


def write_iibench(outcomes: Iterable[Outcome], records: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Write the released layout: the released records with the responses added, as eval.py reads them.

    Question and options are those that the model saw, and an `answer` letter is carried to that order. A
    failed call is {"error": ...}. Records without an answer are left out. The layout holds one answer a
    question: the first variant of draw 0.
    """
    answered = _first(outcomes)

    def lines() -> Iterator[bytes]:
        for record in records:
            questions = [
                _answered(question, answered[question["id"]])
                for question in record["questions"]
                if question["id"] in answered
            ]
            if questions:
                yield json.dumps({**record, "questions": questions}).encode() + b"\n"

    write_atomically(path, lines())


def write_iibench_submission(
    outcomes: Iterable[Outcome], path: Path, released: Mapping[str, Sequence[str]]
) -> list[str]:
    """Write the challenge's submission: for every question a letter in the released order of its options.

    Where no letter was extracted the answer is ''. An outcome without options saw the released order. One
    answer a question is written: the first variant of draw 0.
    """
    lines, without_counterpart = [], []
    for sample, outcome in _first(outcomes).items():
        order = released[sample]
        letter = carry_letter(outcome.extracted, outcome.options or order, order)
        if outcome.extracted and letter is None:
            without_counterpart.append(sample)
        lines.append(json.dumps({"id": sample, "answer": letter or ""}).encode() + b"\n")
    write_atomically(path, lines)
    return without_counterpart


def _first(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    first: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.draw == 0:
            first.setdefault(outcome.sample, outcome)
    return first


def _answered(question: Mapping[str, Any], outcome: Outcome) -> dict[str, Any]:
    options = list(outcome.options) or question["options"]
    entry = {**question, "question": outcome.question or question["question"], "options": options}
    if question.get("answer"):
        entry["answer"] = carry_letter(question["answer"], question["options"], options)
    if outcome.prompt:
        entry["prompt"] = outcome.prompt
    entry["response"] = outcome.response if outcome.answered else {"error": outcome.error or "no answer"}
    return entry


def _split_records(data: Path, split: str) -> list[dict[str, Any]]:
    """The records of a split as released; `data` is their folder, or the one above it."""
    folder = data if (data / f"{split}.json").is_file() else data / "iibench"
    path = folder / f"{split}.json"
    return [record for _, record in json_records(read_bytes(path), path)]


def _options_by_id(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The options of each question in the released order."""
    return {question["id"]: question["options"] for record in records for question in record["questions"]}


class _Matched(NamedTuple):
    """The released records of the split that was answered, the options of its questions in their released
    order, the first answer to each question, and the number of all answers."""

    records: list[dict[str, Any]]
    options: dict[str, list[str]]
    first: dict[str, Outcome]
    total: int


def _matched(answers: AnswersToExport) -> _Matched:
    """Match answers with the released records, in one pass over the answers."""
    outcomes = answers.outcomes
    start = next(outcomes)
    split, records, options = _answered_split(answers, start)
    first: dict[str, Outcome] = {}
    total = 0
    for outcome in chain((start,), outcomes):
        if outcome.sample not in options:
            raise answers.error(f"is not a question of {split}.json", outcome, expected="its ids")
        total += 1
        if outcome.draw == 0:
            first.setdefault(outcome.sample, outcome)
    return _Matched(records, options, first, total)


def _answered_split(
    answers: AnswersToExport, outcome: Outcome
) -> tuple[str, list[dict[str, Any]], dict[str, list[str]]]:
    """The split that an answer belongs to, its released records, and the options of its questions."""
    data = answers.data
    if data is None:
        raise UserError(
            "II-Bench's layouts repeat the released records",
            expected="--data DIR or SIGHTLINE_DATA with test.json or dev.json",
        )
    folders = (data, data / "iibench")
    there = [split for split in SPLITS if any((folder / f"{split}.json").is_file() for folder in folders)]
    for split in there or SPLITS[:1]:
        records = _split_records(data, split)
        options = _options_by_id(records)
        if outcome.sample in options:
            return split, records, options
    raise answers.error(f"is not a question of {data}", outcome, expected="the data that was answered")


def _has_data(answers: AnswersToExport) -> bool:
    return answers.data is not None and any(True for _ in answers.outcomes)


def _refuse_unextracted(answers: AnswersToExport) -> None:
    answers.once(_matched)
    if not any(outcome.extracted for outcome in answers.outcomes):
        raise UserError(
            "no answer has an extracted letter",
            file=answers.file,
            field="extracted",
            expected="an answers.jsonl that `sightline run` or `sightline score` wrote",
        )


def _write_predictions(answers: AnswersToExport, path: Path) -> list[str]:
    matched = answers.once(_matched)
    write_iibench(matched.first.values(), matched.records, path)
    return _left_out(matched)


def _write_submission(answers: AnswersToExport, path: Path) -> list[str]:
    matched = answers.once(_matched)
    unmatched = write_iibench_submission(matched.first.values(), path, matched.options)
    note = f"letters have no counterpart in the released order and are written as '': {unmatched[:5]}"
    return _left_out(matched) + counted((len(unmatched), note))


def _left_out(matched: _Matched) -> list[str]:
    questions, written = len(matched.options), len(matched.first)
    return counted(
        (matched.total - written, "answers are left out: the layout holds one a question, the first"),
        (questions - written, f"of {questions:,} questions have no answer and are left out"),
    )


EXPORT_FORMATS = {
    "iibench": ExportFormat(
        "the lines that II-Bench's eval.py reads",
        _write_predictions,
        file="predictions.jsonl",
        applies=_has_data,
    ),
    "submission": ExportFormat(
        "the lines of II-Bench's challenge",
        _write_submission,
        _refuse_unextracted,
        "submission.jsonl",
        _has_data,
    ),
}
