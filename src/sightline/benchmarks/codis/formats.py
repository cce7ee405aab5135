"""CODIS' released output file: a list of {"id", "output": {"output_1", "output_2"}}, one entry a pair.

The layout is that of THUNLP-MT/CODIS README.md ('Evaluation') and data/output_example.json.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sightline.decoding import Records
from sightline.formats.export import AnswersToExport, ExportFormat, counted, repeats_note
from sightline.formats.files import json_list, write_atomically
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    identifier,
    reply,
)
from sightline.types import Outcome

HALVES = {"output_1": "context_1", "output_2": "context_2"}
"""The released name of a half -> the variant that it answers."""


def write_codis(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write the released list; a failed call is written as ''. The layout has no repeats: draw 0 is written."""
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
            response, error = reply(output[half], f"output.{half}", location)
            predictions.append(Prediction(sample, variant, response, error=error))
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
    return counted(
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
