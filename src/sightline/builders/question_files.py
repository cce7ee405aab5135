"""Questions about images, with their known answers: OKVQA's files, InfographicVQA's, and plain tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.builders.sources import SourceItem, confined, refuse_twins, table_sources
from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes

LONG = 11
"""Words from which a question is long enough to be rephrased: 'more than 10 words' (MM-R3, section 3.2)."""

TOO_SHORT = "the question is too short"
NO_ANSWER = "no known answer"
NO_QUESTION = "no question"

T = TypeVar("T")


class QuestionSet(Struct, frozen=True):
    """The questions that can be rephrased, and how many were passed over, by the reason.

    A source's `references` are its distinct known answers, the first of them first; its label `source` says
    where it is from.
    """

    sources: tuple[SourceItem, ...]
    passed_over: Mapping[str, int] = field(default_factory=dict)


def read_questions(
    files: Sequence[Path],
    images: Sequence[Path] = (),
    *,
    annotations: Path | None = None,
    min_words: int = LONG,
) -> QuestionSet:
    """The questions of all `files`, in their order, that have at least `min_words` words and an answer.

    Each file is recognised by its content: the VQA format (OKVQA: `questions`, its answers in `annotations`
    or in the file beside it that the release has), InfographicVQA's (`data`), else JSON Lines, a JSON list or
    CSV with the columns image, question and answer or answers. `images` are the folders in which images
    are looked for, and that they may not leave; where there are none, the file's own. An image that is in
    none keeps its place in the first one.

    Raises UserError, with file, record and field, for a file that is none of these, a record that lacks a
    field or leads out of the folder of images, an id that occurs twice, and where no question is left.
    """
    read = [source for file in files for source in _read(file, list(images) or [file.parent], annotations)]
    refuse_twins(read)
    kept, passed_over = [], Counter[str]()
    for source in read:
        if reason := _unfit(source, min_words):
            passed_over[reason] += 1
        else:
            kept.append(source)
    if not kept:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in passed_over.items()) or "it holds none"
        raise UserError(
            f"no question is left ({why})",
            file=files[0] if files else None,
            expected=f"questions of at least {min_words} words with an answer",
        )
    return QuestionSet(tuple(kept), dict(passed_over))


def word_count(question: str) -> int:
    """How many words a question has: what stands between blanks and is not signs alone.

    >>> word_count("What is it - a bus ?")
    5
    """
    return sum(any(map(str.isalnum, word)) for word in question.split())


def _unfit(source: SourceItem, min_words: int) -> str:
    if not source.question:
        return NO_QUESTION
    if word_count(source.question) < min_words:
        return TOO_SHORT
    return "" if source.references else NO_ANSWER


class _VqaQuestion(Struct, frozen=True):
    """A record of OpenEnded_mscoco_val2014_questions.json."""

    question_id: int | str
    image_id: int
    question: str


class _VqaAnswer(Struct, frozen=True):
    """One person's answer; `answer` is the one that the benchmark counts."""

    answer: str


class _VqaAnnotation(Struct, frozen=True):
    """A record of mscoco_val2014_annotations.json."""

    question_id: int | str
    answers: tuple[_VqaAnswer, ...]


class _Infographic(Struct, frozen=True, rename={"id": "questionId", "image": "image_local_name"}):
    """A record of InfographicVQA's JSON; the test split has no answers."""

    id: int | str
    question: str
    image: str
    answers: tuple[str, ...] = ()


def _read(file: Path, images: Sequence[Path], annotations: Path | None) -> Sequence[SourceItem]:
    content = read_bytes(file)
    if content.lstrip().startswith(b"{"):
        rows = json_records(content, file)
        whole = rows[0][1]
        if len(rows) == 1 and isinstance(whole.get("questions"), list):
            return _vqa(whole, file, images, annotations)
        if len(rows) == 1 and isinstance(whole.get("data"), list):
            return _infographics(whole["data"], file, images)
        if len(rows) == 1 and isinstance(whole.get("annotations"), list):
            raise UserError(
                "holds annotations, no questions",
                file=file,
                expected="OpenEnded_mscoco_val2014_questions.json or the like, this file in --annotations",
            )
    return _table(file, images)


def _vqa(
    whole: dict[str, Any], file: Path, images: Sequence[Path], annotations: Path | None
) -> list[SourceItem]:
    part = str(whole.get("data_subtype") or "val2014")
    path = annotations or file.with_name(f"mscoco_{part}_annotations.json")
    given = _annotations(path, file)
    answers = {
        str(record.question_id): _distinct([one.answer for one in record.answers])
        for record in _records(given["annotations"], _VqaAnnotation, path, "annotations", "question_id")
    }
    # OK-VQA calls itself so in its `info`; without that it is another set in VQA's format.
    name = "okvqa" if any("OK-VQA" in str(one.get("info")) for one in (whole, given)) else "vqa"
    part = confined(part, file, None, "data_subtype")
    return [
        _placed(
            SourceItem(
                id=f"{name}-{question.question_id}",
                image=f"COCO_{part}_{question.image_id:012d}.jpg",
                references=answers.get(str(question.question_id), ()),
                question=_one_line(question.question),
                labels={"source": name},
            ),
            images,
            part,
        )
        for question in _records(whole["questions"], _VqaQuestion, file, "questions", "question_id")
    ]


def _annotations(path: Path, questions: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(
            "the answers to the questions are missing",
            file=path,
            expected=f"--annotations FILE, the annotations that belong to {questions.name}",
        )
    whole = json_records(read_bytes(path), path)[0][1]
    if not isinstance(whole.get("annotations"), list):
        raise UserError("holds no annotations", file=path, field="annotations", expected="a list of records")
    return whole


def _infographics(listed: list[Any], file: Path, images: Sequence[Path]) -> list[SourceItem]:
    records = _records(listed, _Infographic, file, "data", "questionId")
    return [
        _placed(
            SourceItem(
                id=f"infographicvqa-{record.id}",
                image=confined(record.image, file, record.id, "image_local_name", images[0]),
                references=_distinct(record.answers),
                question=_one_line(record.question),
                labels={"source": "infographicvqa"},
            ),
            images,
            "images",
        )
        for record in records
    ]


def _table(file: Path, images: Sequence[Path]) -> list[SourceItem]:
    root = images[0]
    return [
        _placed(
            replace(
                source,
                image=str(Path(source.image).relative_to(root)),
                question=_one_line(source.question),
                references=_distinct(source.references),
            ),
            images,
            "",
        )
        for source in table_sources(file, root)
    ]


def _records(listed: list[Any], kind: type[T], file: Path, name: str, identity: str) -> list[T]:
    """The entries of a list as structs; UserError that names the record and the field of one that is none."""
    try:
        return msgspec.convert(listed, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        for number, entry in enumerate(listed, 1):
            try:
                msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                text, _, place = str(error).partition(" - at `$")
                known = entry.get(identity) if isinstance(entry, dict) else None
                raise UserError(
                    text[0].lower() + text[1:],
                    file=file,
                    record=f"{name} {number}" if known is None else known,
                    field=place.strip("`.") or None,
                    found=None if isinstance(entry, dict) else entry,
                    expected=f"a record with {', '.join(_names(kind))}",
                ) from None
        raise


def _names(kind: type[Any]) -> Sequence[str]:
    return [found.encode_name for found in msgspec.structs.fields(kind)]


def _placed(source: SourceItem, images: Sequence[Path], folder: str) -> SourceItem:
    """The source with its image where it lies: in one of the folders, or in its subfolder of that name."""
    places = [(place / source.image, root) for root in images for place in (root, root / folder)]
    path, root = next((place for place in places if place[0].is_file()), places[0])
    return replace(source, image=str(path), root=str(root))


def _distinct(answers: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for answer in answers if (one := _one_line(answer))))


def _one_line(text: str) -> str:
    return " ".join(text.split())
