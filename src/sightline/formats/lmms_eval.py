"""lmms-eval's sample logs (`*_samples_<task>.jsonl`, written with --log_samples).

The layout is that of EvolvingLMMs-Lab/lmms-eval lmms_eval/loggers/evaluation_tracker.py
(save_results_samples) and lmms_eval/evaluator.py: `doc_id`, `target`, `filtered_resps`, `resps` where it
differs, `input`, hashes and one field a metric. `doc`, which older versions keep and newer ones drop, is used
where it is there. `filtered_resps` is what lmms-eval itself scores: reasoning is already cut off. Up to
0.6 it is a list of one text; from 0.7 on (docs/releases/lmms-eval-0.7.md, section 12) the single text, or a
list of repeats.

lmms-eval does not mark failed calls: its clients return '' for them, which is read as an empty answer.
"""

from __future__ import annotations

from typing import Any

from sightline.decoding import Records
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    identifier,
    texts,
    variant_of,
)


def recognises(record: dict[str, Any]) -> bool:
    """Check whether a record is a line of a sample log."""
    return "doc_id" in record and ("filtered_resps" in record or "resps" in record)


def read(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a repeat. The id is that of `doc`, or of the metric that carries one.

    The task ii_bench (lmms_eval/tasks/ii_bench/utils.py) carries it in its metric `submission`; the options
    that the model saw are read from `input`.
    """
    return [prediction for where, record in rows for prediction in _record(record, where, source)]


def _record(record: dict[str, Any], where: str, source: PredictionFile) -> list[Prediction]:
    objects = [entry for entry in (record.get("doc"), *record.values()) if isinstance(entry, dict)]
    sample = _sample(record, objects, source.at(where), source.conventions)
    location = source.at(sample)
    prompt, question_in = record.get("input"), source.conventions.question_in
    question, options = question_in(prompt) if question_in and isinstance(prompt, str) else ("", ())
    variant = next((entry["variant"] for entry in objects if "variant" in entry), None)
    return [
        Prediction(
            sample=sample,
            variant=variant_of(variant, source, location),
            response=response,
            draw=draw,
            question=question,
            options=options,
            image=next((e["local_path"] for e in objects if isinstance(e.get("local_path"), str)), ""),
        )
        for draw, response in enumerate(_responses(record, location))
    ]


def _sample(
    record: dict[str, Any],
    objects: list[dict[str, Any]],
    location: RecordLocation,
    conventions: AnswerFiles,
) -> str:
    ids = [entry["id"] for entry in objects if "id" in entry]
    if conventions.sample_id is None:
        if not ids:
            expected = "an id in 'doc' or in a metric"
            raise location.error("does not say which sample it answers", field="doc.id", expected=expected)
        return identifier(ids[0], "doc.id", location)
    sample = conventions.sample_id([*ids, *(entry.get("local_path") for entry in objects)])
    if sample is None:
        raise location.error(
            "does not say which question it answers",
            field="submission.id",
            found=ids[0] if ids else f"only doc_id {record['doc_id']}, a row of an unnamed split",
            expected=f"{conventions.sample_ids} in submission.id, doc.id or doc.local_path"
            " (lmms-eval logs the first unless --predict_only is given)",
        )
    return sample


def _responses(record: dict[str, Any], location: RecordLocation) -> tuple[str, ...]:
    named = "filtered_resps" if "filtered_resps" in record else "resps"
    value = record[named]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, str):
        return (value,)
    responses = texts(value, named, location)
    if not responses:
        raise location.error("has no answer", field=named, found=value, expected="a text or a list of texts")
    return responses


LAYOUT = Layout(
    "lmms-eval's sample logs (doc_id, filtered_resps)",
    recognises,
    read,
)
