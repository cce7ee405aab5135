"""ConTextual's released files: answers and judgements in and out.

Answers are {model: {image_url: response}}, judgements {model: {image_url: 1 or 0}}: rohan598/ConTextual
models/*/eval_*.py and eval/response_eval_gpt4.py write them as master.json and gpt4_judgments.json. The
leaderboards take the first for test and the second for val (huggingface.co/blog/leaderboard-contextual, 'How
to Submit'). Also read are the same as records, a line an answer, and the cases of the paper's appendix
(`formats.appendix_cases`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.contextual import appendix_cases
from sightline.benchmarks.contextual.folder import IMAGE, INSTRUCTION
from sightline.errors import UserError
from sightline.formats.files import Records, json_records, read_bytes, write_atomically
from sightline.formats.jsonl import id_field, response_of
from sightline.formats.prediction import Place, Prediction, Source, identifier, optional_text, reply
from sightline.types import Outcome, Verdict, VerdictName

LAYOUT = "ConTextual's answers ({model: {image_url: response}}, or records of image_url and response)"

JUDGE = "gpt-4"
"""Whose judgements were released (eval/response_eval_gpt4.py)."""


def recognises(record: dict[str, Any], benchmark: str) -> bool:
    """Whether a record of ConTextual holds answers by model, or one by its image's url."""
    if benchmark != "contextual" or id_field(record) is not None:
        return False
    return IMAGE in record or (bool(record) and all(isinstance(of, dict) for of in record.values()))


def read(rows: Records, source: Source) -> list[Prediction]:
    """The answers of every model in the file; a sample's id is the url of its image."""
    return [prediction for where, record in rows for prediction in _read(record, where, source)]


def with_judgements(predictions: Sequence[Prediction], path: Path) -> list[Prediction]:
    """The same answers with the verdicts of a gpt4_judgments.json.

    Raises UserError for a file of none or several objects, for a judgement that is neither 1 nor 0, and for
    one whose answer is not among them.
    """
    rows = json_records(read_bytes(path), path)
    if len(rows) != 1:
        expected = "{model: {image_url: 1 or 0}}"
        raise UserError("is not one object", file=path, found=f"{len(rows)} of them", expected=expected)
    ((_, by_model),) = rows
    given = {
        (model, url): _verdict(value, Place(path, url))
        for model, of in by_model.items()
        for url, value in _of_model(of, Place(path, model)).items()
    }
    answered = {(one.model, one.sample) for one in predictions}
    for model, url in given:
        if (model, url) not in answered:
            raise UserError(
                f"a judgement of an answer by '{model}' that is not there",
                file=path,
                record=url,
                expected="the answers that were judged, in a file of the same models",
            )
    return [
        replace(one, verdicts=(*one.verdicts, *given.get((one.model, one.sample), ()))) for one in predictions
    ]


def write_predictions(outcomes: Iterable[Outcome], model: str, path: Path) -> None:
    """Write {model: {image_url: response}}, for the test leaderboard; a failed call is written as ''.

    The layout knows no repeats: draw 0 is written.
    """
    _write({one.sample: one.response if one.answered else "" for one in _first(outcomes)}, model, path)


def write_judgements(outcomes: Iterable[Outcome], model: str, path: Path) -> int:
    """Write {model: {image_url: 1 or 0}}, for the val leaderboard; returns how many are in it.

    What is not accepted is 0, errors and undecided answers among it; what has no reference stays out.
    """
    judged = {one.sample: int(one.right) for one in _first(outcomes) if one.scored}
    _write(judged, model, path)
    return len(judged)


def _read(record: dict[str, Any], where: str, source: Source) -> Iterator[Prediction]:
    place = source.at(where)
    if appendix_cases.recognises(record):
        yield from appendix_cases.predictions(record, place, source.setting)
    elif IMAGE in record:
        yield _answer(record, place, source)
    else:
        for model, of in record.items():
            for url, value in _of_model(of, place).items():
                response, error = reply(value, f"{model}.{url}", place)
                yield Prediction(url, source.setting, response, model=model, error=error)


def _answer(record: Mapping[str, Any], place: Place, source: Source) -> Prediction:
    url = identifier(record[IMAGE], IMAGE, place)
    place = source.at(url)
    response, error = response_of(record, place)
    return Prediction(
        sample=url,
        variant=source.setting,
        response=response,
        question=optional_text(record.get(INSTRUCTION), INSTRUCTION, place),
        model=optional_text(record.get("model"), "model", place),
        verdicts=_verdict(record.get("judgment"), place),
        error=error,
    )


def _verdict(value: object, place: Place) -> tuple[Verdict, ...]:
    """The verdict that a 1 or 0 stands for; none for null."""
    if value is None:
        return ()
    if isinstance(value, int | float) and value in (0, 1):
        said: VerdictName = "right" if value else "wrong"
        return (
            Verdict(
                targets=(),
                question="correct",
                scorer="contextual/judge",
                judge=JUDGE,
                kind="model",
                verdict=said,
                raw=str(int(value)),
            ),
        )
    raise place.error("is no judgement", found=value, expected="1, 0 or null")


def _of_model(value: object, place: Place) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise place.error("is no object", found=value, expected="{model: {image_url: ...}}")
    return value


def _first(outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
    return (outcome for outcome in outcomes if outcome.draw == 0)


def _write(by_url: Mapping[str, str | int], model: str, path: Path) -> None:
    write_atomically(path, [json.dumps({model: by_url}, ensure_ascii=False, indent=1).encode(), b"\n"])
