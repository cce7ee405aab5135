"""Reads answers that any tool collected: looks into the file, picks the layout, refuses what is doubtful."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sightline.benchmarks.codis import formats as codis
from sightline.benchmarks.contextual import formats as contextual
from sightline.benchmarks.iibench import formats as iibench
from sightline.errors import UserError, did_you_mean
from sightline.formats import jsonl, lmms_eval, vlmevalkit
from sightline.formats.files import Records, json_records, read_bytes
from sightline.formats.prediction import Prediction, Source
from sightline.formats.tables import read_table, table_rows


class Layout(Protocol):
    """What the module of a layout offers."""

    LAYOUT: str
    """The fields that give the layout away, in words."""

    def recognises(self, record: dict[str, Any], benchmark: str) -> bool:
        """Whether a record has this layout."""

    def read(self, rows: Records, source: Source) -> list[Prediction]:
        """The answers in the records; UserError where one is wrong."""


LAYOUTS: tuple[Layout, ...] = (contextual, iibench, lmms_eval, vlmevalkit, codis, jsonl)
"""The layouts, those with the most telling fields first."""


def read_predictions(
    path: Path, *, benchmark: str, setting: str, allow_missing: bool = False
) -> list[Prediction]:
    """The answers in a file, in its order, whatever tool wrote it.

    Reads our answers.jsonl and plain JSON (Lines), the released layouts of CODIS, II-Bench and ConTextual,
    lmms-eval's sample logs and VLMEvalKit's tables (xlsx, tsv, csv, json); text may be gzipped. A half of a
    CODIS pair or the answer of a question that the file names but does not hold is an error, unless
    `allow_missing` leaves it to be counted. Where a file holds the answers of several models, all of them
    are given: `of_model` takes those of one.

    UserError names the file, the record and the field, what was found and what would be right.
    """
    source = Source(path, benchmark, setting, allow_missing)
    content = read_bytes(path)
    if content.lstrip()[:1] in (b"{", b"["):
        rows = json_records(content, path)
        layout = _layout([record for _, record in rows], source)
    else:
        table = read_table(content, path)
        layout = _layout([dict.fromkeys(table.header)], source)
        rows = table_rows(table, path)
    predictions = layout.read(rows, source)
    _refuse_doubles(predictions, path)
    return predictions


def of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    """The answers of one model, where a file holds those of several; else all of them.

    UserError where the file has several models, and none of that name.
    """
    if len({prediction.model for prediction in predictions}) < 2:
        return list(predictions)
    return only_of_model(predictions, model, path)


def only_of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    """The answers of the model that the file calls so; UserError where it calls none so."""
    models = dict.fromkeys(prediction.model for prediction in predictions)
    if model not in models:
        named = [name for name in models if name]
        none = f", none of them '{model}'{did_you_mean(model, named)}" if model else ""
        raise UserError(
            f"holds the answers of {len(models)} model{'s' * (len(models) > 1)}{none}",
            file=path,
            expected=f"--model with one of {', '.join(named)}" if named else "no --model: it names none",
        )
    return [prediction for prediction in predictions if prediction.model == model]


def _layout(records: Sequence[dict[str, Any]], source: Source) -> Layout:
    for record in records:
        for layout in LAYOUTS:
            if layout.recognises(record, source.benchmark):
                return layout
    fields = ", ".join(records[0]) if records else ""
    raise UserError(
        "the layout is unknown",
        file=source.file,
        found=f"the fields {fields}" if fields else "no record",
        expected="one of: " + "; ".join(layout.LAYOUT for layout in LAYOUTS),
    )


def _refuse_doubles(predictions: Sequence[Prediction], path: Path) -> None:
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
