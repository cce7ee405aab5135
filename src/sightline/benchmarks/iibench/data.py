"""II-Bench's samples, from the released records or from a predictions file that holds what the model saw."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from sightline.benchmarks.iibench.formats import ANSWER_FILES, SPLITS
from sightline.benchmarks.released import data_folder, read_records, refuse_repeated_ids
from sightline.errors import UserError
from sightline.formats.files import read_bytes
from sightline.formats.other_tools import read_predictions
from sightline.formats.prediction import Prediction
from sightline.text import json_records
from sightline.types import LETTERS, ImageRef, Labels, Sample


class ShownQuestion(NamedTuple):
    """How the model saw a question: the option order, and key words if a predictions file has them."""

    options: tuple[str, ...]
    keywords: str | None


def read_samples(
    folder: Path | None,
    split: str,
    predictions: str | None,
    answers: str | None,
    left_out: Collection[str],
    benchmark: str = "iibench",
) -> list[Sample]:
    """Read the questions of a split.

    `predictions`: a predictions file with the question texts and option orders that the model saw, or None.
    Without a folder, the samples come from this file alone.
    """
    collected = _predictions_by_id(predictions)
    if folder is None and collected:
        return _samples_of_predictions(collected.values(), answers)
    path = records_file(folder, split, benchmark)
    folder = path.parent
    records = read_records(path, IIBenchRecord, name="local_path")
    released = [(record, question) for record in records for question in record.questions]
    refuse_repeated_ids(path, [question.id for _, question in released])
    key = read_answer_key(answers, [question for _, question in released])
    root = str(folder)
    return [
        Sample(
            id=question.id,
            question=_as_collected(question, collected).question or question.question,
            images=(ImageRef(os.path.join(root, record.local_path), root),),
            references=(key[question.id],) if question.id in key else (),
            options=question.options,
            labels=record.meta_data.labels,
            record=ShownQuestion(
                _as_collected(question, collected).options, _keywords(collected.get(question.id))
            ),
        )
        for record, question in released
        if question.id not in left_out
    ]


def records_file(folder: Path | None, split: str, benchmark: str = "iibench") -> Path:
    """Find the released records of a split."""
    name = f"{split}.json"
    return data_folder(folder, benchmark, name) / name


def read_released(folder: Path, split: str) -> dict[str, Any]:
    """Read what was released of each question: its text, its options and its labels.

    The answers of test were not released, so that its records count without them.
    """
    path = records_file(folder, split)
    return {
        question.id: [
            question.question,
            question.options,
            question.answer if split != "test" else None,
            record.meta_data.labels,
        ]
        for record in read_records(path, IIBenchRecord, name="local_path")
        for question in record.questions
    }


def read_explanations(folder: Path, split: str) -> dict[str, list[str]]:
    records = read_records(folder / f"{split}.json", IIBenchRecord, name="local_path")
    explanations = [record.meta_data.explanation for record in records for _ in record.questions]
    return {"explanation": [text for text in explanations if isinstance(text, str)]}


def images_by_path(folder: Path) -> dict[str, ImageRef] | None:
    """The images of every split in a folder, by `local_path`; None if it holds no split."""
    splits = [split for split in SPLITS if (folder / f"{split}.json").is_file()]
    if not splits:
        return None
    images = [sample.images[0] for split in splits for sample in read_samples(folder, split, None, None, ())]
    return {Path(os.path.relpath(image.path, image.root)).as_posix(): image for image in images}


def _as_collected(
    question: IIBenchQuestion, collected: Mapping[str, Prediction]
) -> IIBenchQuestion | Prediction:
    return collected.get(question.id, question)


def _keywords(prediction: Prediction | None) -> str | None:
    """The key words in a released prompt; 21 questions have domains that were renamed later."""
    found = re.search(r"^Key words: (.*)$", prediction.prompt, re.MULTILINE) if prediction else None
    return found[1] if found else None


def _samples_of_predictions(predictions: Iterable[Prediction], answers: str | None) -> list[Sample]:
    """The samples of a predictions file alone, without a data folder; images are names only."""
    if answers is not None:
        raise UserError(
            "letters in an answers file follow the released order, which a predictions file does not hold",
            file=answers,
            expected="--data DIR with the released test.json",
        )
    return [
        Sample(
            id=one.sample,
            question=one.question,
            options=one.options,
            labels={name: one.labels[name] for name in LABELS if name in one.labels},
            cluster=one.image or one.sample,
            record=ShownQuestion(one.options, _keywords(one)),
        )
        for one in predictions
    ]


def _predictions_by_id(file: str | None) -> dict[str, Prediction]:
    if file is None:
        return {}
    return {one.sample: one for one in read_predictions(Path(file), ANSWER_FILES, setting="")}


# -- II-Bench's released records: images with their labels and questions

VALUES: Mapping[str, tuple[str, ...]] = {
    "domain": ("Life", "Art", "Society", "Psychology", "Environment", "Others"),
    "emotion": ("Positive", "Neutral", "Negative"),
    "image_type": (
        "Illustration",
        "Meme",
        "Poster",
        "Multi-panel Comic",
        "Single-panel Comic",
        "Logo",
        "Painting",
    ),
    "difficulty": ("Easy", "Middle", "Hard"),
    "rhetoric": (
        "Metaphor",
        "Exaggerate",
        "Symbolism",
        "Contrast",
        "Visual Dislocation",
        "Antithesis",
        "Analogy",
        "Personification",
        "Others",
    ),
}
"""The labels of an image in the order of the reports, and their values (Appendix B.3) as the released files
spell them."""

LABELS = tuple(VALUES)


class IIBenchQuestion(Struct, frozen=True):
    """One question about an image; the released test split has no answers."""

    id: str
    question: str
    options: tuple[str, ...]
    answer: str | None = None
    correct_option: str | None = None


class Choices(Struct, frozen=True, forbid_unknown_fields=True):
    """Several values of a label as CII-Bench's files hold them."""

    choices: tuple[str, ...]


class ImageMetadata(Struct, frozen=True):
    """The labels of an image, and the explanation of its meaning.

    `image_type` is a list in II-Bench's test and a string in dev; the `explanation` of test-908 is an object.
    """

    domain: str
    emotion: str
    image_type: str | tuple[str, ...] | Choices
    difficulty: str
    rhetoric: str | tuple[str, ...] | Choices
    explanation: Any = None

    @property
    def labels(self) -> Labels:
        found = {name: getattr(self, name) for name in LABELS}
        return {name: one.choices if isinstance(one, Choices) else one for name, one in found.items()}


class IIBenchRecord(Struct, frozen=True):
    """One released record: an image and its questions."""

    local_path: str
    questions: tuple[IIBenchQuestion, ...]
    meta_data: ImageMetadata


# -- Reads II-Bench's answer key from the released split or from a file of the user's


def read_answer_key(file: str | None, questions: Sequence[IIBenchQuestion]) -> dict[str, str]:
    """Read the answer key.

    An answers file is a JSON object {id: answer} or JSONL {"id", "answer"}; an answer is a letter A-F or an
    option's text.
    """
    key = {question.id: question.answer for question in questions if question.answer}
    if file is None:
        return key
    path = Path(file)
    by_id = {question.id: question for question in questions}
    seen: set[str] = set()
    for name, answer in _entries(path):
        if name in seen:
            raise UserError("this id occurs twice", file=path, record=name, expected="one answer a question")
        seen.add(name)
        if name not in by_id:
            raise UserError(
                "this question is not in the split", file=path, record=name, expected="ids of the split"
            )
        key[name] = _letter(path, name, answer, by_id[name].options)
    return key


def _entries(path: Path) -> list[tuple[str, Any]]:
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and not {"id", "answer"} <= rows[0][1].keys():
        return list(rows[0][1].items())
    return [(_id(path, where, row), row.get("answer")) for where, row in rows]


def _id(path: Path, where: str, row: Mapping[str, Any]) -> str:
    name = row.get("id")
    if not isinstance(name, str):
        raise UserError("lacks an id", file=path, record=where, field="id", expected="the question's id")
    return name


def _letter(path: Path, name: str, answer: Any, options: Sequence[str]) -> str:
    if isinstance(answer, str):
        if answer in tuple(LETTERS[: len(options)]):
            return answer
        if answer in options:
            return LETTERS[options.index(answer)]
    raise UserError(
        "is not an answer to this question",
        file=path,
        record=name,
        field="answer",
        found=answer,
        expected="a letter in the released order, or an option's text",
    )
