"""CODIS' released output file: a list of {"id", "output": {"output_1", "output_2"}}, one entry a pair.

The layout is that of THUNLP-MT/CODIS README.md ('Evaluation') and data/output_example.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sightline.formats.files import Records, write_atomically
from sightline.formats.prediction import Prediction, Source, identifier, reply
from sightline.types import Outcome

LAYOUT = "CODIS' output list (id, output.output_1, output.output_2)"

HALVES = {"output_1": "context_1", "output_2": "context_2"}
"""The released name of a half -> the variant that it answers."""


def recognises(record: dict[str, Any], benchmark: str) -> bool:
    """Whether a record is a pair; of CODIS, also one whose output is broken."""
    output = record.get("output")
    if isinstance(output, dict):
        return not output.keys().isdisjoint(HALVES) or benchmark == "codis"
    return benchmark == "codis" and "output" in record and "variant" not in record


def read(rows: Records, source: Source) -> list[Prediction]:
    """Two answers a pair: variants context_1 and context_2."""
    return [prediction for where, record in rows for prediction in _pair(record, where, source)]


def write_codis(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write the released list, pairs in the order of their first outcome; a failed call is written as ''.

    The layout knows no repeats: draw 0 is written.
    """
    variants = {variant: half for half, variant in HALVES.items()}
    pairs: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        if outcome.draw == 0:
            pair = pairs.setdefault(outcome.sample, dict.fromkeys(HALVES, ""))
            pair[variants[outcome.variant]] = outcome.response if outcome.answered else ""
    entries = [{"id": sample, "output": output} for sample, output in pairs.items()]
    write_atomically(path, [json.dumps(entries, indent=4).encode()])


def _pair(record: dict[str, Any], where: str, source: Source) -> list[Prediction]:
    place = source.at(where)
    sample = identifier(record.get("id"), "id", place)
    place = source.at(sample)
    output = record.get("output")
    if not isinstance(output, dict):
        expected = "an object with output_1 and output_2"
        raise place.error("is no pair of answers", field="output", found=output, expected=expected)
    for name in output.keys() - HALVES.keys():
        raise place.error("is no half of a pair", field=f"output.{name}", expected="output_1 and output_2")
    predictions = []
    for half, variant in HALVES.items():
        if half in output:
            response, error = reply(output[half], f"output.{half}", place)
            predictions.append(Prediction(sample, variant, response, error=error))
        elif not source.allow_missing:
            raise place.error(
                f"the pair lacks the half that answers {variant}",
                field=f"output.{half}",
                expected="both halves, or --allow-missing, which counts the missing one as wrong",
            )
    return predictions
