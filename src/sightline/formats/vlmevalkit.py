"""VLMEvalKit's result tables: xlsx (its default), tsv, csv or json.

The layout is that of open-compass/VLMEvalKit vlmeval/inference.py (infer_data_job): the rows of the data
set's TSV (docs/en/Development.md: `index`, `question`, options `A`, `B`, ..., `answer`, `image_path`, ...)
without the image, with `prediction`; vlmeval/smp/file.py (dump) writes them. A failed call is a
prediction that starts with 'Failed to obtain answer' (vlmeval/api/base.py, and inference.py under SKIP_ERR).
"""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from sightline.benchmarks.iibench.formats import question_id
from sightline.formats.files import Records
from sightline.formats.prediction import Place, Prediction, Source, identifier, optional_text, variant_of
from sightline.scoring.multiple_choice import LETTERS

LAYOUT = "VLMEvalKit's tables (index, prediction)"

FAILED = "Failed to obtain answer"

IDS = ("id", "sample", "index")
IMAGES = ("local_path", "image_path")


def recognises(record: dict[str, Any], benchmark: str) -> bool:
    """Whether a record is a row of a result table."""
    return "index" in record and "prediction" in record


def read(rows: Records, source: Source) -> list[Prediction]:
    """One answer a row.

    `index` only counts rows, so for II-Bench the id is taken from the column `id`, `sample`, `index`,
    `local_path` or `image_path`, whichever first says 'test-N' or 'dev-N', as such or as the image's
    name. Elsewhere it is `id`, else `sample`, else `index`; a benchmark with several probes a sample needs
    the column `variant`.
    """
    return [_prediction(record, where, source) for where, record in rows]


def _prediction(record: dict[str, Any], where: str, source: Source) -> Prediction:
    sample = _sample(record, source.at(where), source.benchmark)
    place = source.at(sample)
    prediction = record.get("prediction")
    if not isinstance(prediction, str):
        raise place.error("is no answer", field="prediction", found=prediction, expected="a text")
    failed = prediction.startswith(FAILED)
    variant = record.get("variant")
    return Prediction(
        sample=sample,
        variant=source.setting if source.benchmark == "iibench" else variant_of(variant, source, place),
        response="" if failed else prediction,
        question=optional_text(record.get("question"), "question", place),
        options=tuple(takewhile(bool, (_text(record, letter) for letter in LETTERS))),
        image=_text(record, "local_path") or _text(record, "image_path"),
        error=prediction if failed else None,
    )


def _sample(record: dict[str, Any], place: Place, benchmark: str) -> str:
    if benchmark != "iibench":
        named = next((name for name in IDS if name in record), "index")
        return identifier(record.get(named), named, place)
    sample = question_id(record.get(column) for column in IDS + IMAGES)
    if sample is None:
        raise place.error(
            "does not say which question it answers",
            field="id",
            found=f"only index {record.get('index')}, a row of an unnamed split",
            expected=f"'test-N' or 'dev-N' in one of the columns {', '.join(IDS + IMAGES)}",
        )
    return sample


def _text(record: dict[str, Any], column: str) -> str:
    cell = record.get(column)
    return cell if isinstance(cell, str) else ""
