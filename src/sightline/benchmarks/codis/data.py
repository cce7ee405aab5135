"""CODIS' released records: pairs of queries, each with its two contexts and answers."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.captions import read_captions
from sightline.benchmarks.records import data_folder, read_records, refuse_doubles
from sightline.errors import UserError
from sightline.types import ImageRef, Sample


class Pair(Struct, frozen=True):
    """Two of anything, one for each context."""

    context_1: str
    context_2: str


class Answers(Struct, frozen=True):
    """The answer under each context."""

    answer_1: str
    answer_2: str


class Record(Struct, frozen=True):
    """One released record: a pair of queries about one image."""

    id: str
    image_id: str
    question: str
    context: Pair
    answer: Answers
    category: str


def read_samples(folder: Path | None, captioned: bool, captions: str | None) -> list[Sample]:
    """The pairs of data.json, of which `captioned` takes those whose image has a caption (section 5.1).

    A sample's `record` is the released record and the caption.
    """
    place = data_folder(folder, "codis", "data.json")
    path = place / "data.json"
    records = read_records(path, Record, name="id")
    refuse_doubles(path, [record.id for record in records])
    if not records:
        raise UserError("holds no records", file=path, expected="the released data.json")
    caption_of = read_captions(captions, captioned)
    samples = [
        Sample(
            id=record.id,
            question=record.question,
            images=(ImageRef(str(place / "images" / record.image_id), str(place)),),
            references=(record.answer.answer_1, record.answer.answer_2),
            labels={"category": record.category},
            record=(record, caption_of.get(record.image_id, "")),
        )
        for record in records
        if not captioned or record.image_id in caption_of
    ]
    if not samples:
        raise UserError("no pair is left", file=captions or path, expected="captions for its image_ids")
    return samples
