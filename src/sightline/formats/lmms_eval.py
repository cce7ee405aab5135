"""lmms-eval's sample logs (`*_samples_<task>.jsonl`, written with --log_samples).

The layout is that of EvolvingLMMs-Lab/lmms-eval lmms_eval/loggers/evaluation_tracker.py
(save_results_samples) and lmms_eval/evaluator.py: `doc_id`, `target`, `filtered_resps`, `resps` where it
differs, `input`, hashes and one field a metric. `doc`, which older versions keep and newer ones drop, is used
where it is there. `filtered_resps` is what lmms-eval itself scores: reasoning is already cut off. Up to
0.6 it is a list of one text; from 0.7 on (docs/releases/lmms-eval-0.7.md, section 12) the single text, or a
list of repeats.

lmms-eval has no mark for a failed call: its clients answer '' then, and '' is read as an empty answer.
"""

from __future__ import annotations

from typing import Any

from sightline.benchmarks.iibench.formats import asked, question_id
from sightline.formats.files import Records
from sightline.formats.prediction import (
    Place,
    Prediction,
    Source,
    identifier,
    texts,
    variant_of,
)

LAYOUT = "lmms-eval's sample logs (doc_id, filtered_resps)"


def recognises(record: dict[str, Any], benchmark: str) -> bool:
    """Whether a record is a line of a sample log."""
    return "doc_id" in record and ("filtered_resps" in record or "resps" in record)


def read(rows: Records, source: Source) -> list[Prediction]:
    """One answer a repeat. The id is that of `doc`, or of the metric that carries one.

    The task ii_bench (lmms_eval/tasks/ii_bench/utils.py) carries it in its metric `submission`; its options,
    as shown, are read from `input`.
    """
    return [prediction for where, record in rows for prediction in _record(record, where, source)]


def _record(record: dict[str, Any], where: str, source: Source) -> list[Prediction]:
    said = [entry for entry in (record.get("doc"), *record.values()) if isinstance(entry, dict)]
    sample = _sample(record, said, source.at(where), source.benchmark)
    place = source.at(sample)
    prompt = record.get("input")
    question, options = asked(prompt) if isinstance(prompt, str) else ("", ())
    variant = next((entry["variant"] for entry in said if "variant" in entry), None)
    return [
        Prediction(
            sample=sample,
            variant=source.setting if source.benchmark == "iibench" else variant_of(variant, source, place),
            response=response,
            draw=draw,
            question=question,
            options=options,
            image=next((e["local_path"] for e in said if isinstance(e.get("local_path"), str)), ""),
        )
        for draw, response in enumerate(_responses(record, place))
    ]


def _sample(record: dict[str, Any], said: list[dict[str, Any]], place: Place, benchmark: str) -> str:
    ids = [entry["id"] for entry in said if "id" in entry]
    if benchmark != "iibench":
        if not ids:
            expected = "an id in 'doc' or in a metric"
            raise place.error("does not say which sample it answers", field="doc.id", expected=expected)
        return identifier(ids[0], "doc.id", place)
    sample = question_id([*ids, *(entry.get("local_path") for entry in said)])
    if sample is None:
        raise place.error(
            "does not say which question it answers",
            field="submission.id",
            found=ids[0] if ids else f"only doc_id {record['doc_id']}, a row of an unnamed split",
            expected="'test-N' or 'dev-N' in submission.id, doc.id or doc.local_path"
            " (the task ii_bench logs the first, unless --predict_only is given)",
        )
    return sample


def _responses(record: dict[str, Any], place: Place) -> tuple[str, ...]:
    named = "filtered_resps" if "filtered_resps" in record else "resps"
    value = record[named]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if isinstance(value, str):
        return (value,)
    responses = texts(value, named, place)
    if not responses:
        raise place.error("holds no answer", field=named, found=value, expected="a text or a list of texts")
    return responses
