"""Answers in the layouts that others read; each says what it cannot hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sightline.benchmarks.codis.formats import HALVES, write_codis
from sightline.benchmarks.contextual.formats import write_judgements, write_predictions
from sightline.benchmarks.iibench.formats import write_iibench, write_iibench_submission
from sightline.errors import UserError
from sightline.formats.jsonl import read_outcomes, write_plain
from sightline.formats.released import iibench_records, released_options
from sightline.formats.run_metadata import read_run_metadata
from sightline.types import Outcome

SPLITS = ("test", "dev")


class Answers(NamedTuple):
    """An answers.jsonl that was read, the data folder, where one is known, and the model's name."""

    file: Path
    outcomes: Sequence[Outcome]
    data: Path | None
    model: str

    def error(self, message: str, outcome: Outcome, **more: Any) -> UserError:
        """The error at one of its lines."""
        return UserError(message, file=self.file, record=outcome.sample, **more)


def export(file: Path, layout: str, path: Path, data: Path | None, model: str = "") -> list[str]:
    """Write an answers.jsonl as `path` in one of LAYOUTS; returns what was lost in doing so, in sentences.

    II-Bench's two layouts need the data folder, ConTextual's two the model's name: that of the metrics.json
    beside the answers, where none is given. Raises UserError where the answers are not of the layout's
    benchmark, before anything is written.
    """
    return LAYOUTS[layout](Answers(file, _outcomes(file), data, model), path)


def _codis(answers: Answers, path: Path) -> list[str]:
    for outcome in answers.outcomes:
        if outcome.variant not in HALVES.values():
            raise answers.error(
                "is no answer to a pair of CODIS",
                outcome,
                field="variant",
                found=outcome.variant,
                expected=" or ".join(f"'{variant}'" for variant in HALVES.values()),
            )
    write_codis(answers.outcomes, path)
    written = [outcome for outcome in answers.outcomes if outcome.draw == 0]
    halves = len(HALVES) * len({outcome.sample for outcome in written})
    return _said(
        _repeats(answers),
        (
            halves - sum(outcome.answered for outcome in written),
            "failed or missing halves are written as '', which reads as an empty answer",
        ),
    )


def _contextual(answers: Answers, path: Path) -> list[str]:
    _refuse_several(answers)
    write_predictions(answers.outcomes, _model(answers), path)
    failed = sum(not outcome.answered for outcome in answers.outcomes if outcome.draw == 0)
    return _said(
        _repeats(answers), (failed, "failed answers are written as '', which reads as an empty answer")
    )


def _contextual_val(answers: Answers, path: Path) -> list[str]:
    _refuse_several(answers)
    if not any(outcome.scored for outcome in answers.outcomes):
        raise UserError(
            "no answer was judged",
            file=answers.file,
            field="verdict",
            expected="an answers.jsonl that `sightline run` or `sightline score` wrote",
        )
    written = write_judgements(answers.outcomes, _model(answers), path)
    first = [outcome for outcome in answers.outcomes if outcome.draw == 0]
    undecided = sum(outcome.verdict == "undecided" for outcome in first)
    return _said(
        _repeats(answers),
        (len(first) - written, "answers that were held against nothing are left out"),
        (undecided, "undecided answers are written as 0"),
    )


def _iibench(answers: Answers, path: Path) -> list[str]:
    records = _records(answers)
    write_iibench(answers.outcomes, records, path)
    return _left_out(answers, records)


def _submission(answers: Answers, path: Path) -> list[str]:
    records = _records(answers)
    if not any(outcome.extracted for outcome in answers.outcomes):
        raise UserError(
            "no answer has an extracted letter",
            file=answers.file,
            field="extracted",
            expected="an answers.jsonl that `sightline run` or `sightline score` wrote",
        )
    lost = write_iibench_submission(answers.outcomes, path, released_options(records))
    return _left_out(answers, records) + _said(
        (len(lost), f"letters have no counterpart in the released order and are written as '': {lost[:5]}")
    )


def _jsonl(answers: Answers, path: Path) -> list[str]:
    write_plain(answers.outcomes, path)
    return []


LAYOUTS: Mapping[str, Callable[[Answers, Path], list[str]]] = {
    "codis": _codis,
    "contextual": _contextual,
    "contextual-val": _contextual_val,
    "iibench": _iibench,
    "submission": _submission,
    "jsonl": _jsonl,
}
"""The layouts by name: CODIS' output list, ConTextual's answers (test) and judgements (val), II-Bench's
predictions and submission, plain JSON lines."""


def _outcomes(file: Path) -> list[Outcome]:
    try:
        return read_outcomes(file)
    except UserError as error:
        expected = error.expected or "an answers.jsonl; `sightline import` makes one of other layouts"
        raise UserError(
            error.message, file=error.file, record=error.record, field=error.field, expected=expected
        ) from None


def _refuse_several(answers: Answers) -> None:
    """Raise UserError where a sample has several variants: ConTextual asks each instance once."""
    variant = {outcome.sample: outcome.variant for outcome in answers.outcomes}
    for outcome in answers.outcomes:
        if variant[outcome.sample] != outcome.variant:
            raise answers.error(
                "is no answer to an instance of ConTextual", outcome, expected="one variant a sample"
            )


def _repeats(answers: Answers) -> tuple[int, str]:
    return sum(outcome.draw != 0 for outcome in answers.outcomes), "answers of repeats are left out"


def _model(answers: Answers) -> str:
    """The model's name: the one given, else that of the run that wrote the answers."""
    if answers.model:
        return answers.model
    run = read_run_metadata(answers.file.parent)
    if run is None:
        raise UserError("whose answers these are is not said", file=answers.file, expected="--model NAME")
    return run.model


def _records(answers: Answers) -> list[dict[str, Any]]:
    """The released records of the split that the answers belong to."""
    data = answers.data
    if data is None:
        raise UserError(
            "II-Bench's layouts repeat the released records",
            expected="--data DIR or SIGHTLINE_DATA with test.json or dev.json",
        )
    there = [s for s in SPLITS if (data / f"{s}.json").is_file() or (data / f"iibench/{s}.json").is_file()]
    first = answers.outcomes[0]
    for split in there or SPLITS[:1]:
        records = iibench_records(data, split)
        known = released_options(records)
        if first.sample in known:
            for outcome in answers.outcomes:
                if outcome.sample not in known:
                    raise answers.error(f"is no question of {split}.json", outcome, expected="its ids")
            return records
    raise answers.error(f"is no question of {data}", first, expected="the data that was answered")


def _left_out(answers: Answers, records: Sequence[dict[str, Any]]) -> list[str]:
    questions = len(released_options(records))
    written = len({outcome.sample for outcome in answers.outcomes if outcome.draw == 0})
    return _said(
        (len(answers.outcomes) - written, "answers are left out: the layout holds one a question, the first"),
        (questions - written, f"of {questions:,} questions have no answer and are left out"),
    )


def _said(*counted: tuple[int, str]) -> list[str]:
    return [f"{count:,} {what}" for count, what in counted if count]
