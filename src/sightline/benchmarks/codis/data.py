"""CODIS' released records: pairs of queries, each with its two contexts and answers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.captions import read_captions
from sightline.benchmarks.records import data_folder, read_records, refuse_repeated_ids
from sightline.errors import UserError, did_you_mean
from sightline.types import ImageRef, Sample

RECORDS = "data.json"
"""The file of records in a data folder."""


class Contexts(Struct, frozen=True):
    """The two contexts of a pair."""

    context_1: str
    context_2: str


class ContextAnswers(Struct, frozen=True):
    """The answer under each context."""

    answer_1: str
    answer_2: str


class CodisRecord(Struct, frozen=True):
    """One released record: a pair of queries about one image."""

    id: str
    image_id: str
    question: str
    context: Contexts
    answer: ContextAnswers
    category: str


def read_samples(folder: Path | None, captioned: bool, captions: str | None) -> list[Sample]:
    """Read the pairs of data.json. The `record` of a sample is the released record and the caption.

    Args:
        folder: The data folder, or None.
        captioned: Whether only pairs whose image has a caption are kept (section 5.1).
        captions: The file of captions, or None.
    """
    folder = data_folder(folder, "codis", RECORDS)
    path = folder / RECORDS
    records = read_records(path, CodisRecord, name="id")
    refuse_repeated_ids(path, [record.id for record in records])
    if not records:
        raise UserError("has no records", file=path, expected="the released data.json")
    caption_of = read_captions(captions, captioned)
    if captioned:
        _check_names(caption_of, captions, [record.image_id for record in records], path)
    return [
        Sample(
            id=record.id,
            question=record.question,
            images=(ImageRef(str(folder / "images" / record.image_id), str(folder)),),
            references=(record.answer.answer_1, record.answer.answer_2),
            labels={"category": record.category},
            record=(record, caption_of.get(record.image_id, "")),
        )
        for record in records
        if not captioned or record.image_id in caption_of
    ]


def _check_names(captions: Collection[str], file: str | None, images: Sequence[str], records: Path) -> None:
    """Raise UserError if images lack a caption while captions have names that are not images.

    A file may caption some images only (section 5.1), or more than a part of the data has.
    """
    wrong = [name for name in captions if name not in images]
    missing = [name for name in dict.fromkeys(images) if name not in captions]
    if missing and (wrong or not captions):
        nearest = did_you_mean(wrong[0], missing) if wrong else ""
        raise UserError(
            f"{len(wrong):,} of {len(captions):,} captions are for no image of {records}{nearest}",
            file=file,
            record=wrong[0] if wrong else None,
            field="image_id",
            expected=f"an image_id of {records.name}, such as {missing[0]}",
        )
