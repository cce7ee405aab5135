"""CODIS' released records (pairs of queries with their contexts and answers), and its output file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.benchmarks.released import data_folder, read_captions, read_records, refuse_repeated_ids
from sightline.errors import UserError, did_you_mean
from sightline.formats.files import json_list, write_atomically
from sightline.formats.jsonl import AnswersToExport, ExportFormat, counted_notes, repeats_note
from sightline.formats.prediction import AnswerFiles, Layout, Prediction, PredictionFile, identifier, reply
from sightline.text import Records
from sightline.types import ImageRef, Outcome, Sample

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


class CodisRecord(Struct, frozen=True, omit_defaults=True):
    """One released record, a pair of queries about one image; our own have the `scenario` of Figure 3."""

    id: str
    image_id: str
    question: str
    context: Contexts
    answer: ContextAnswers
    category: str
    scenario: str = ""


def read_samples(folder: Path | None, captioned: bool, captions: str | None) -> list[Sample]:
    """Read the pairs of data.json. The `record` of a sample is the released record and the caption.

    `captioned`: whether only pairs with a caption are kept, of their own or of their image (section 5.1).
    """
    folder = data_folder(folder, "codis", RECORDS)
    path = folder / RECORDS
    records = read_records(path, CodisRecord, name="id")
    refuse_repeated_ids(path, [record.id for record in records])
    if not records:
        raise UserError("has no records", file=path, expected="the released data.json")
    caption_of = read_captions(captions, captioned)
    if captioned:
        own = [record.id for record in records if record.id in caption_of]
        names = [*(record.image_id for record in records), *own]
        _check_names(caption_of, captions, names, path)
    return [
        Sample(
            id=record.id,
            question=record.question,
            images=(ImageRef(str(folder / "images" / record.image_id), str(folder)),),
            references=(record.answer.answer_1, record.answer.answer_2),
            labels={"category": record.category} | ({"scenario": record.scenario} if record.scenario else {}),
            record=(record, caption_of.get(record.id, caption_of.get(record.image_id, ""))),
        )
        for record in records
        if not captioned or {record.id, record.image_id} & caption_of.keys()
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


# -- CODIS' released output file: a list of {"id", "output": {"output_1", "output_2"}}, one entry a pair

HALVES = {"output_1": "context_1", "output_2": "context_2"}
"""The released name of a half -> the variant that it answers."""


def write_codis(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write the released list, which has no repeats: draw 0; a failed call is written as ''."""
    entries = ({"id": sample, "output": output} for sample, output in _pairs(outcomes))
    write_atomically(path, json_list(entries))


def _pairs(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, dict[str, str]]]:
    """The pairs in the order of their first answer.

    A pair is kept until both halves are there, and until the pairs before it are.
    """
    variants = {variant: half for half, variant in HALVES.items()}
    pairs: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        if outcome.draw == 0:
            pair = pairs.setdefault(outcome.sample, {})
            pair[variants[outcome.variant]] = outcome.response if outcome.answered else ""
            while pairs and len(pairs[first := next(iter(pairs))]) == len(HALVES):
                yield first, _in_order(pairs.pop(first))
    for sample, pair in pairs.items():
        yield sample, _in_order(pair)


def _in_order(pair: Mapping[str, str]) -> dict[str, str]:
    return {half: pair.get(half, "") for half in HALVES}


def _recognises(record: dict[str, Any]) -> bool:
    """Whether a record is a pair of answers, possibly with a broken output."""
    return isinstance(record.get("output"), dict) or ("output" in record and "variant" not in record)


def _read(rows: Records, source: PredictionFile) -> list[Prediction]:
    return [prediction for where, record in rows for prediction in _pair(record, where, source)]


def _pair(record: dict[str, Any], where: str, source: PredictionFile) -> list[Prediction]:
    sample = identifier(record.get("id"), "id", source.at(where))
    location = source.at(sample)
    output = record.get("output")
    if not isinstance(output, dict):
        expected = "an object with output_1 and output_2"
        raise location.error("is not a pair of answers", field="output", found=output, expected=expected)
    for name in output.keys() - HALVES.keys():
        raise location.error(
            "is not a half of a pair", field=f"output.{name}", expected="output_1 and output_2"
        )
    predictions = []
    for half, variant in HALVES.items():
        if half in output:
            response = reply(output[half], f"output.{half}", location)
            predictions.append(Prediction(sample, variant, **response._asdict()))
        elif not source.allow_missing:
            raise location.error(
                f"the pair lacks the half that answers {variant}",
                field=f"output.{half}",
                expected="both halves, or --allow-missing, which counts the missing one as wrong",
            )
    return predictions


def _refuse_other_variants(answers: AnswersToExport) -> None:
    for outcome in answers.outcomes:
        if outcome.variant not in HALVES.values():
            raise answers.error(
                "is not an answer to a pair of CODIS",
                outcome,
                field="variant",
                found=outcome.variant,
                expected=" or ".join(f"'{variant}'" for variant in HALVES.values()),
            )


def _write(answers: AnswersToExport, path: Path) -> list[str]:
    write_codis(answers.outcomes, path)
    halves = len(HALVES) * len({outcome.sample for outcome in answers.first_draws})
    answered = sum(outcome.answered for outcome in answers.first_draws)
    return counted_notes(
        repeats_note(answers),
        (
            halves - answered,
            "failed or missing halves are written as '', which reads as an empty answer",
        ),
    )


ANSWER_FILES = AnswerFiles(
    layouts=(Layout("CODIS' output list (id, output.output_1, output.output_2)", _recognises, _read),),
    variants="'context_1' or 'context_2'",
)

EXPORT_FORMATS = {
    "codis": ExportFormat(
        "the list that CODIS' eval.py reads", _write, _refuse_other_variants, "predictions.json"
    )
}
