"""II-Bench's released prediction file, and the submission of its public challenge.

Predictions: one {"local_path", "questions": [{"id", "question", "options", "prompt", "response"}],
"meta_data"} a line (or a list of them), as II-Bench/II-Bench infer/infer.py writes them: the data's
records with `prompt` and `response` added. A failed call is a response that is an object ({"error": "..."}),
and eval.py of the same repository counts every object as an error; null, which eval.py cannot read and
infer.py asks again, is read as a failed call too.

Submission: one {"id", "answer"} a line for EvalAI challenge 2334, as a thread of II-Bench/II-Bench gives it
('What to input when unable to extract an answer'); its keepers say there that '' counts as wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from sightline.formats.files import Records, write_atomically
from sightline.formats.prediction import (
    Place,
    Prediction,
    Source,
    identifier,
    labels_of,
    optional_text,
    reply,
    texts,
)
from sightline.scoring.multiple_choice import LETTERS, carry_letter
from sightline.types import Labels, Outcome

LAYOUT = "II-Bench's records (local_path, questions[].id, questions[].response)"

NAME = re.compile(r"(test|dev)-[0-9]+")
"""An id of II-Bench, and the name of its image."""

PROMPT = re.compile(
    r"Question: (.*?)\n"
    + r"\n".join(rf"\({letter}\) (.*?)" for letter in LETTERS)
    + r"\n(?:Answer|Explanation):",
    re.DOTALL,
)
"""Question and options in the prompts of II-Bench/II-Bench config/*.yaml, and of lmms-eval's ii_bench."""


def recognises(record: dict[str, Any], benchmark: str) -> bool:
    """Whether a record holds questions about an image."""
    return "questions" in record


def read(rows: Records, source: Source) -> list[Prediction]:
    """One answer a question; its variant is the setting's name."""
    return [prediction for where, record in rows for prediction in _record(record, where, source)]


def question_id(said: Iterable[object]) -> str | None:
    """The id 'test-N' or 'dev-N' that a foreign record says: as such, or as the name of its image.

    Each question of II-Bench has an image of its own name (images/test/test-7.jpg is asked test-7). Row
    numbers say neither the split nor where counting starts, and are no id.

    >>> question_id([16, "images/test/test-17.jpg"])
    'test-17'
    """
    for value in said:
        if isinstance(value, str):
            for name in (value, PurePosixPath(value.replace("\\", "/")).stem):
                if NAME.fullmatch(name):
                    return name
    return None


def asked(prompt: str) -> tuple[str, tuple[str, ...]]:
    """The question and the six options that a prompt shows, ('', ()) where it has not the known form."""
    found = PROMPT.search(prompt)
    return (found[1], tuple(found.groups()[1:])) if found else ("", ())


def write_iibench(
    outcomes: Iterable[Outcome],
    records: Iterable[Mapping[str, Any]],
    path: Path,
    *,
    prompts: Mapping[str, str] | None = None,
) -> None:
    """Write the released layout: the data's `records` (of test.json or dev.json) with what was answered.

    Question and options are those shown, and an `answer` letter is carried to that order, so that eval.py
    reads it; a failed call is {"error": ...}. `prompts` maps a question's id to the prompt sent. Records
    without an outcome are left out. The layout holds one answer a question: the first variant of draw 0.
    """
    answered = _first(outcomes)
    lines = []
    for record in records:
        questions = [
            _answered(question, answered[question["id"]], (prompts or {}).get(question["id"]))
            for question in record["questions"]
            if question["id"] in answered
        ]
        if questions:
            lines.append(json.dumps({**record, "questions": questions}).encode() + b"\n")
    write_atomically(path, lines)


def write_iibench_submission(
    outcomes: Iterable[Outcome], path: Path, released: Mapping[str, Sequence[str]]
) -> list[str]:
    """Write the challenge's submission: for every question a letter in the order of the released file.

    `released` maps a question's id to its options as test.json orders them; an outcome that names no
    options was shown that order. Where no letter was extracted the answer is ''. Returns the ids whose letter
    could not be carried to the released order; theirs is '' too. One answer a question: the first variant
    of draw 0.
    """
    lines, lost = [], []
    for sample, outcome in _first(outcomes).items():
        order = released[sample]
        letter = carry_letter(outcome.extracted, outcome.options or order, order)
        if outcome.extracted and letter is None:
            lost.append(sample)
        lines.append(json.dumps({"id": sample, "answer": letter or ""}).encode() + b"\n")
    write_atomically(path, lines)
    return lost


def _record(record: dict[str, Any], where: str, source: Source) -> list[Prediction]:
    place = source.at(where)
    questions = record.get("questions")
    if not isinstance(questions, list) or not questions:
        expected = "a list of questions with id, options and response"
        raise place.error("holds no questions", field="questions", found=questions, expected=expected)
    image = optional_text(record.get("local_path"), "local_path", place)
    labels = _labels(record.get("meta_data"), place)
    predictions = []
    for question in questions:
        if not isinstance(question, dict):
            raise place.error("is no question", field="questions", found=question, expected="an object")
        sample = identifier(question.get("id"), "questions.id", place)
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
    question: dict[str, Any], sample: str, image: str, labels: Labels, source: Source
) -> Prediction:
    place = source.at(sample)
    response, error = reply(question["response"], "questions.response", place)
    return Prediction(
        sample=sample,
        variant=source.setting,
        response=response,
        question=optional_text(question.get("question"), "questions.question", place),
        options=texts(question.get("options"), "questions.options", place),
        labels=labels,
        image=image,
        prompt=optional_text(question.get("prompt"), "questions.prompt", place),
        error=error,
    )


def _labels(meta_data: object, place: Place) -> Labels:
    if isinstance(meta_data, dict):
        # An explanation is prose, no label (and for test-908 an object).
        meta_data = {name: label for name, label in meta_data.items() if name != "explanation"}
    return labels_of(meta_data, "meta_data", place)


def _first(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    first: dict[str, Outcome] = {}
    for outcome in outcomes:
        if outcome.draw == 0:
            first.setdefault(outcome.sample, outcome)
    return first


def _answered(question: Mapping[str, Any], outcome: Outcome, prompt: str | None) -> dict[str, Any]:
    shown = list(outcome.options) or question["options"]
    entry = {**question, "question": outcome.question or question["question"], "options": shown}
    if question.get("answer"):
        entry["answer"] = carry_letter(question["answer"], question["options"], shown)
    if prompt is not None:
        entry["prompt"] = prompt
    entry["response"] = outcome.response if outcome.answered else {"error": outcome.error or "no answer"}
    return entry
