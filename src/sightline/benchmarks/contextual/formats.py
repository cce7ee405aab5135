"""Reads and writes ConTextual's released files: answers and judgements.

Answers are {model: {image_url: response}}, judgements {model: {image_url: 1 or 0}}: rohan598/ConTextual
models/*/eval_*.py and eval/response_eval_gpt4.py write them as master.json and gpt4_judgments.json. The
leaderboards take the first for test and the second for val (huggingface.co/blog/leaderboard-contextual, 'How
to Submit'). Also read are the same as records, a line an answer, and the cases of the paper's appendix.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.contextual.data import IMAGE, INSTRUCTION
from sightline.errors import UserError
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.jsonl import (
    CONTRADICTED,
    PARTLY,
    AnswersToExport,
    ExportFormat,
    counted_notes,
    id_field,
    model_name,
    repeats_note,
    response_of,
)
from sightline.formats.prediction import (
    AnswerFiles,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    identifier,
    optional_text,
    reply,
)
from sightline.text import Records, json_records
from sightline.types import Outcome, Verdict, VerdictName

JUDGE = "gpt-4"
"""The judge of the released judgements (eval/response_eval_gpt4.py)."""


def add_judgements(predictions: Sequence[Prediction], path: Path) -> list[Prediction]:
    """Add the verdicts of a gpt4_judgments.json to the answers."""
    rows = json_records(read_bytes(path), path)
    if len(rows) != 1:
        expected = "{model: {image_url: 1 or 0}}"
        raise UserError("is not one object", file=path, found=f"{len(rows)} of them", expected=expected)
    ((_, by_model),) = rows
    judgements = {
        (model, url): _verdict(value, RecordLocation(path, url))
        for model, of in by_model.items()
        for url, value in _of_model(of, RecordLocation(path, model)).items()
    }
    answered = {(one.model, one.sample) for one in predictions}
    for model, url in judgements:
        if (model, url) not in answered:
            raise UserError(
                f"a judgement of an answer by '{model}' that is not there",
                file=path,
                record=url,
                expected="the answers that were judged, in a file of the same models",
            )
    return [
        replace(one, verdicts=(*one.verdicts, *judgements.get((one.model, one.sample), ())))
        for one in predictions
    ]


def write_predictions(outcomes: Iterable[Outcome], model: str, path: Path) -> None:
    """Write {model: {image_url: response}}, for the test leaderboard; a failed call is written as ''."""
    _write({one.sample: one.response if one.answered else "" for one in _first(outcomes)}, model, path)


def write_judgements(outcomes: Iterable[Outcome], model: str, path: Path) -> int:
    """Write {model: {image_url: 1 or 0}}, for the val leaderboard.

    Answers that are not accepted are 0, including errors and undecided answers. Answers without a reference
    are left out.
    """
    judged = {one.sample: int(one.right) for one in _first(outcomes) if one.scored}
    _write(judged, model, path)
    return len(judged)


def _recognises(record: dict[str, Any]) -> bool:
    """Whether a record holds answers by model, or one by its image's url."""
    if id_field(record) is not None:
        return False
    return IMAGE in record or (bool(record) and all(isinstance(value, dict) for value in record.values()))


def _read(rows: Records, source: PredictionFile) -> list[Prediction]:
    """The answers of every model in the file; a sample's id is the url of its image."""
    return [prediction for where, record in rows for prediction in _record(record, where, source)]


def _record(record: dict[str, Any], where: str, source: PredictionFile) -> Iterator[Prediction]:
    location = source.at(where)
    if recognises(record):
        yield from predictions(record, location, source.setting)
    elif IMAGE in record:
        yield _answer(record, location, source)
    else:
        for model, of in record.items():
            for url, value in _of_model(of, location).items():
                response = reply(value, f"{model}.{url}", location)
                yield Prediction(url, source.setting, model=model, **response._asdict())


def _answer(record: Mapping[str, Any], location: RecordLocation, source: PredictionFile) -> Prediction:
    url = identifier(record[IMAGE], IMAGE, location)
    location = source.at(url)
    return Prediction(
        sample=url,
        variant=source.setting,
        **response_of(record, location)._asdict(),
        question=optional_text(record.get(INSTRUCTION), INSTRUCTION, location),
        model=optional_text(record.get("model"), "model", location),
        verdicts=_verdict(record.get("judgment"), location),
    )


def _verdict(value: object, location: RecordLocation) -> tuple[Verdict, ...]:
    """The verdict that a 1 or 0 stands for; none for null."""
    if value is None:
        return ()
    if isinstance(value, int | float) and value in (0, 1):
        verdict: VerdictName = "right" if value else "wrong"
        return (
            Verdict(
                targets=(),
                question="correct",
                scorer="contextual/judge",
                judge=JUDGE,
                kind="model",
                verdict=verdict,
                raw=str(int(value)),
            ),
        )
    raise location.error("is not a judgement", found=value, expected="1, 0 or null")


def _of_model(value: object, location: RecordLocation) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise location.error("is not an object", found=value, expected="{model: {image_url: ...}}")
    return value


def _first(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    return (outcome for outcome in outcomes if outcome.draw == 0)


def _write(by_url: Mapping[str, str | int], model: str, path: Path) -> None:
    write_atomically(path, [json.dumps({model: by_url}, ensure_ascii=False, indent=1).encode(), b"\n"])


def _refuse_several_variants(answers: AnswersToExport) -> None:
    """Raise UserError where a sample has several variants: ConTextual asks each instance once."""
    variant = {outcome.sample: outcome.variant for outcome in answers.outcomes}
    for outcome in answers.outcomes:
        if variant[outcome.sample] != outcome.variant:
            raise answers.error(
                "is not an answer to an instance of ConTextual", outcome, expected="one variant a sample"
            )


def _refuse_unjudged(answers: AnswersToExport) -> None:
    _refuse_several_variants(answers)
    if not _is_judged(answers):
        raise UserError(
            "no answer was judged",
            file=answers.file,
            field="verdict",
            expected="an answers.jsonl that `sightline run` or `sightline score` wrote",
        )


def _is_judged(answers: AnswersToExport) -> bool:
    return any(outcome.scored for outcome in answers.outcomes)


def _export_predictions(answers: AnswersToExport, path: Path) -> list[str]:
    write_predictions(answers.outcomes, model_name(answers), path)
    failed = sum(not outcome.answered for outcome in answers.first_draws)
    note = "failed answers are written as '', which reads as an empty answer"
    return counted_notes(repeats_note(answers), (failed, note))


def _export_judgements(answers: AnswersToExport, path: Path) -> list[str]:
    written = write_judgements(answers.outcomes, model_name(answers), path)
    first = sum(1 for _ in answers.first_draws)
    undecided = sum(outcome.verdict == "undecided" for outcome in answers.first_draws)
    return counted_notes(
        repeats_note(answers),
        (first - written, "answers that were not judged are left out"),
        (undecided, "undecided answers are written as 0"),
    )


ANSWER_FILES = AnswerFiles(
    layouts=(
        Layout(
            "ConTextual's answers ({model: {image_url: response}}, or records of image_url and response)",
            _recognises,
            _read,
        ),
    )
)

EXPORT_FORMATS = {
    "contextual": ExportFormat(
        "{model: {image_url: response}}, for ConTextual's test leaderboard",
        _export_predictions,
        _refuse_several_variants,
        "predictions.json",
    ),
    "contextual-val": ExportFormat(
        "{model: {image_url: 1 or 0}}, for ConTextual's val leaderboard",
        _export_judgements,
        _refuse_unjudged,
        "judgments.json",
        _is_judged,
    ),
}


# -- The cases of ConTextual's appendix (Figures 23-52): responses of seven models and humans, with
#    verdicts

CAPTIONS = "captions"
"""The judge's name for verdicts of captions."""

PARTIALLY = "partially correct"

_ERROR_WORDS: Mapping[str, str] = {
    "context-sensitive": "context-sensitive reasoning",
    "fine-grained": "fine-grained perception",
    "hallucination": "hallucination",
    "ground": "not grounded",
    "incorrect reasoning": "incorrect reasoning",
}
"""A part of a mark's text -> the error that it names."""

ERRORS = (*_ERROR_WORDS.values(), PARTIALLY)
"""The errors that the marks name (Appendix I)."""

_VERDICTS: Mapping[str, VerdictName] = {"correct": "right", PARTIALLY: "wrong", "wrong": "wrong"}


def recognises(record: Mapping[str, Any]) -> bool:
    return "image_url" in record and "responses" in record


def predictions(record: Mapping[str, Any], location: RecordLocation, variant: str) -> Iterator[Prediction]:
    """Read the responses of a case, each with the verdict of the caption if there is one."""
    urls = record["image_url"]
    if not isinstance(urls, list) or len(urls) != 1:
        raise location.error(
            "does not name one image", field="image_url", found=urls, expected="a list of one url"
        )
    url = identifier(urls[0], "image_url", location)
    location = RecordLocation(location.file, f"Figure {record.get('figure')}")
    if not isinstance(record["responses"], list):
        raise location.error("is not a list", field="responses", expected="a list of responses")
    for one in record["responses"]:
        if not isinstance(one, dict):
            raise location.error("is not a response", field="responses", found=one, expected="an object")
        yield Prediction(
            sample=url,
            variant=variant,
            **reply(one.get("response"), "responses.response", location)._asdict(),
            question=optional_text(record.get("instruction"), "instruction", location),
            model=identifier(one.get("model"), "responses.model", location),
            verdicts=_case_verdict(one, location),
        )


def _case_verdict(one: Mapping[str, Any], location: RecordLocation) -> tuple[Verdict, ...]:
    verdict, marked = one.get("verdict"), one.get("annotation_verdict")
    if verdict is None:
        return ()
    if verdict not in _VERDICTS:
        expected = f"one of {', '.join(_VERDICTS)}, or null"
        raise location.error("is not a verdict", field="responses.verdict", found=verdict, expected=expected)
    differs = marked is not None and marked != verdict
    raw = f"{location.record}, {one['model']}: {verdict}" + (
        f" (the mark beside it: {marked})" if differs else ""
    )
    flags = {PARTLY: verdict == PARTIALLY, CONTRADICTED: differs}
    return (
        Verdict(
            targets=(),
            question="correct",
            scorer="contextual/appendix",
            judge=CAPTIONS,
            kind="human",
            verdict=_VERDICTS[verdict],
            raw=raw,
            scores={name: 1.0 for name, holds in flags.items() if holds},
            labels=() if differs else _errors(one, location),
        ),
    )


def _errors(one: Mapping[str, Any], location: RecordLocation) -> tuple[str, ...]:
    """The errors that the mark next to a response names, in the order of ERRORS."""
    words = optional_text(one.get("annotation"), "responses.annotation", location).casefold()
    errors = [error for part, error in _ERROR_WORDS.items() if part in words]
    return (*errors, PARTIALLY) if one.get("annotation_verdict") == PARTIALLY else tuple(errors)
