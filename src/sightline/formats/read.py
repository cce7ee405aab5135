"""Reads answers that any tool collected: detects the layout of the file and refuses what is ambiguous."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.decoding import json_records
from sightline.errors import UserError, did_you_mean
from sightline.formats import jsonl, lmms_eval, vlmevalkit
from sightline.formats.content import read_bytes
from sightline.formats.inspect_log import is_inspect_log, read_inspect_log
from sightline.formats.prediction import AnswerFiles, Layout, Prediction, PredictionFile
from sightline.formats.tables import read_table, table_rows

LAYOUTS = (lmms_eval.LAYOUT, vlmevalkit.LAYOUT, jsonl.LAYOUT)
"""The layouts for answers to any benchmark, those with the most specific fields first."""


def read_predictions(
    path: Path, conventions: AnswerFiles, *, setting: str, allow_missing: bool = False
) -> list[Prediction]:
    """Read the answers in a file, whatever tool wrote it.

    Reads our answers.jsonl and plain JSON (Lines), the benchmark's released layouts, lmms-eval's sample logs,
    VLMEvalKit's tables (xlsx, tsv, csv, json) and logs of inspect_ai; text may be gzipped. A file may hold
    the answers of several models: `of_model` selects one.

    Args:
        setting: The variant of answers that name none, where a sample has one probe.
    """
    source = PredictionFile(path, conventions, setting, allow_missing)
    content = read_bytes(path)
    predictions = read_inspect_log(source) if is_inspect_log(path, content) else _of_layout(content, source)
    _refuse_repeated(predictions, path)
    return predictions


def _of_layout(content: bytes, source: PredictionFile) -> list[Prediction]:
    """Read records or a table in the layout that its fields show."""
    if content.lstrip()[:1] in (b"{", b"["):
        rows = json_records(content, source.path)
        return _layout([record for _, record in rows], source).read(rows, source)
    table = read_table(content, source.path)
    layout = _layout([dict.fromkeys(table.header)], source)
    return layout.read(table_rows(table, source.path), source)


def of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    """Select the answers of one model from a file that holds those of several."""
    if len({prediction.model for prediction in predictions}) < 2:
        return list(predictions)
    return only_of_model(predictions, model, path)


def only_of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    """Select the answers of the model that the file names so."""
    models = dict.fromkeys(prediction.model for prediction in predictions)
    if model not in models:
        named = [name for name in models if name]
        none = f", none of them '{model}'{did_you_mean(model, named)}" if model else ""
        raise UserError(
            f"holds the answers of {len(models)} model{'s' * (len(models) > 1)}{none}",
            file=path,
            expected=f"--model with one of {', '.join(named)}"
            if named
            else "no --model, because the file names no model",
        )
    return [prediction for prediction in predictions if prediction.model == model]


def _layout(records: Sequence[dict[str, Any]], source: PredictionFile) -> Layout:
    layouts: tuple[Layout, ...] = (*source.conventions.layouts, *LAYOUTS)
    for record in records:
        for layout in layouts:
            if layout.recognises(record):
                return layout
    fields = ", ".join(records[0]) if records else ""
    raise UserError(
        "the format is unknown",
        file=source.path,
        found=f"the fields {fields}" if fields else "no record",
        expected="one of: " + "; ".join(layout.fields for layout in layouts),
    )


def _refuse_repeated(predictions: Sequence[Prediction], path: Path) -> None:
    seen: set[tuple[str, str, str, int]] = set()
    for prediction in predictions:
        key = (prediction.model, prediction.sample, prediction.variant, prediction.draw)
        if key in seen:
            raise UserError(
                "is answered twice",
                file=path,
                record=prediction.sample,
                field="id",
                found=f"a second answer for variant {prediction.variant}, draw {prediction.draw}",
                expected="one answer each; repeats carry their own 'draw'",
            )
        seen.add(key)
