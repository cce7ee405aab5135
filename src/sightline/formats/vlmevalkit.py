"""VLMEvalKit's result tables: xlsx (its default), tsv, csv or json.

The layout is that of open-compass/VLMEvalKit vlmeval/inference.py (infer_data_job): the rows of the data
set's TSV (docs/en/Development.md: `index`, `question`, options `A`, `B`, ..., `answer`, `image_path`, ...)
without the image, with `prediction`; vlmeval/smp/file.py (dump) writes them. A failed call is a
prediction that starts with 'Failed to obtain answer' (vlmeval/api/base.py, and inference.py under SKIP_ERR).
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from sightline.decoding import Records
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    identifier,
    optional_text,
    variant_of,
)
from sightline.scoring.letters import LETTERS

FAILED = "Failed to obtain answer"

IDS = ("id", "sample", "index")
IMAGES = ("local_path", "image_path")


def recognises(record: dict[str, Any]) -> bool:
    """Check whether a record is a row of a result table."""
    return "index" in record and "prediction" in record


def read(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a row.

    `index` only counts rows. Where the benchmark knows its own ids (`AnswerFiles.sample_id`), the id is the
    first of the columns `id`, `sample`, `index`, `local_path` and `image_path` that holds one. Elsewhere it
    is `id`, else `sample`, else `index`. A benchmark with several probes a sample needs the column `variant`.
    """
    return [_prediction(record, where, source) for where, record in rows]


def _prediction(record: dict[str, Any], where: str, source: PredictionFile) -> Prediction:
    sample = _sample(record, source.at(where), source.conventions)
    location = source.at(sample)
    prediction = record.get("prediction")
    if not isinstance(prediction, str):
        raise location.error("is not an answer", field="prediction", found=prediction, expected="a text")
    failed = prediction.startswith(FAILED)
    return Prediction(
        sample=sample,
        variant=variant_of(record.get("variant"), source, location),
        response="" if failed else prediction,
        question=optional_text(record.get("question"), "question", location),
        options=tuple(takewhile(bool, (_text(record, letter) for letter in LETTERS))),
        image=_text(record, "local_path") or _text(record, "image_path"),
        error=prediction if failed else None,
    )


def _sample(record: dict[str, Any], location: RecordLocation, conventions: AnswerFiles) -> str:
    if conventions.sample_id is None:
        column = next((name for name in IDS if name in record), "index")
        return identifier(record.get(column), column, location)
    sample = conventions.sample_id(record.get(column) for column in IDS + IMAGES)
    if sample is None:
        raise location.error(
            "does not say which question it answers",
            field="id",
            found=f"only index {record.get('index')}, a row of an unnamed split",
            expected=f"{conventions.sample_ids} in one of the columns {', '.join(IDS + IMAGES)}",
        )
    return sample


def _text(record: dict[str, Any], column: str) -> str:
    cell = record.get(column)
    return cell if isinstance(cell, str) else ""


LAYOUT = Layout(
    "VLMEvalKit's tables (index, prediction)",
    recognises,
    read,
)
