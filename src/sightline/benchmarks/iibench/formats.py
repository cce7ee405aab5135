"""Reading and writing II-Bench's released prediction file, and its challenge's submission.

Predictions: one {"local_path", "questions": [{"id", "question", "options", "prompt", "response"}],
"meta_data"} a line (or a list of them), as II-Bench/II-Bench infer/infer.py writes them: the data's
records with `prompt` and `response` added. A failed call is a response that is an object ({"error": "..."});
eval.py of the same repository counts every object as an error. Null is read as a failed call too: eval.py
cannot read it, and infer.py asks such a question again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from sightline.errors import UserError
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.jsonl import AnswersToExport, ExportFormat, counted_notes
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    identifier,
    labels_of,
    optional_text,
    reply,
    texts,
)
from sightline.scoring.letters import carry_letter
from sightline.scoring.options import SIX_LETTERS
from sightline.text import Records, json_records
from sightline.types import Labels, Outcome

SPLITS = ("test", "dev")

NAME = re.compile(r"(test|dev)-[0-9]+")
"""The form of an id of II-Bench, and of its image's name."""

PROMPT = re.compile(
    r"Question: (.*?)\n"
    + r"\n".join(rf"\({letter}\) (.*?)" for letter in SIX_LETTERS)
    + r"\n(?:Answer|Explanation):",
    re.DOTALL,
)
"""Question and options in the prompts of II-Bench/II-Bench config/*.yaml, and of lmms-eval's ii_bench."""


def question_id(values: Iterable[object]) -> str | None:
    """Find the id 'test-N' or 'dev-N' among the values of a foreign record, as such or as an image's name.

    Each question of II-Bench has an image of its own name (images/test/test-7.jpg belongs to test-7). Row
    numbers are not ids: they name no split, and it is not known where they start.

    >>> question_id([16, "images/test/test-17.jpg"])
    'test-17'

    Returns:
        The id, or None if no value holds one.
    """
    for value in values:
        if isinstance(value, str):
            for name in (value, PurePosixPath(value.replace("\\", "/")).stem):
                if NAME.fullmatch(name):
                    return name
    return None


def question_in(prompt: str) -> tuple[str, tuple[str, ...]]:
    found = PROMPT.search(prompt)
    return (found[1], tuple(found.groups()[1:])) if found else ("", ())


def _recognises(record: dict[str, Any]) -> bool:
    """Whether a record holds questions about an image."""
    return "questions" in record


def _read(rows: Records, source: PredictionFile) -> list[Prediction]:
    """One answer a question; its variant is the setting's name."""
    return [prediction for where, record in rows for prediction in _record(record, where, source)]


def _record(record: dict[str, Any], where: str, source: PredictionFile) -> list[Prediction]:
    location = source.at(where)
    questions = record.get("questions")
    if not isinstance(questions, list) or not questions:
        expected = "a list of questions with id, options and response"
        raise location.error("has no questions", field="questions", found=questions, expected=expected)
    image = optional_text(record.get("local_path"), "local_path", location)
    labels = _labels(record.get("meta_data"), location)
    predictions = []
    for question in questions:
        if not isinstance(question, dict):
            raise location.error("is not a question", field="questions", found=question, expected="an object")
        sample = identifier(question.get("id"), "questions.id", location)
        if "response" in question:
            predictions.append(_question(question, sample, image, labels, source))
        elif not source.allow_missing:
            raise source.at(sample).error(
                "the question has no answer",
                field="questions.response",
                expected="a response, or --allow-missing, which counts the missing one as wrong",
            )
    return predictions


def _question(
    question: dict[str, Any], sample: str, image: str, labels: Labels, source: PredictionFile
) -> Prediction:
    location = source.at(sample)
    return Prediction(
        sample=sample,
        variant=source.setting,
        **reply(question["response"], "questions.response", location)._asdict(),
        question=optional_text(question.get("question"), "questions.question", location),
        options=texts(question.get("options"), "questions.options", location),
        labels=labels,
        image=image,
        prompt=optional_text(question.get("prompt"), "questions.prompt", location),
    )


def _labels(meta_data: object, location: RecordLocation) -> Labels:
    if isinstance(meta_data, dict):
        # An explanation is prose, no label (and for test-908 an object).
        meta_data = {name: label for name, label in meta_data.items() if name != "explanation"}
    return labels_of(meta_data, "meta_data", location)


ANSWER_FILES = AnswerFiles(
    layouts=(
        Layout("II-Bench's records (local_path, questions[].id, questions[].response)", _recognises, _read),
    ),
    sample_id=question_id,
    sample_ids="'test-N' or 'dev-N'",
    question_in=question_in,
)


# -- Writing II-Bench's released prediction file, and the submission of its public challenge


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
    return _left_out(matched) + counted_notes((len(unmatched), note))


def _left_out(matched: _Matched) -> list[str]:
    questions, written = len(matched.options), len(matched.first)
    return counted_notes(
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
