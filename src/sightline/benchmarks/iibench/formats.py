"""Reading II-Bench's released prediction file.

Predictions: one {"local_path", "questions": [{"id", "question", "options", "prompt", "response"}],
"meta_data"} a line (or a list of them), as II-Bench/II-Bench infer/infer.py writes them: the data's
records with `prompt` and `response` added. A failed call is a response that is an object ({"error": "..."});
eval.py of the same repository counts every object as an error. Null is read as a failed call too: eval.py
cannot read it, and infer.py asks such a question again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

from sightline.decoding import Records
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
from sightline.scoring.multiple_choice import SIX_LETTERS
from sightline.types import Labels

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
    """Read the question and the six options from a prompt."""
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
    response, error = reply(question["response"], "questions.response", location)
    return Prediction(
        sample=sample,
        variant=source.setting,
        response=response,
        question=optional_text(question.get("question"), "questions.question", location),
        options=texts(question.get("options"), "questions.options", location),
        labels=labels,
        image=image,
        prompt=optional_text(question.get("prompt"), "questions.prompt", location),
        error=error,
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
