"""What --columns names in the records of a file: fields of layouts, and groups, clusters and scores."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.formats.prediction import (
    ONLY_VARIANT,
    RESPONSES,
    Prediction,
    RecordLocation,
    ToolScores,
    identifier,
)
from sightline.text import Records, cell_text

FIELDS: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "sample", "group", "index"),
    "response": RESPONSES,
    "variant": ("variant",),
    "draw": ("draw",),
    "question": ("question",),
    "options": ("options",),
    "error": ("error",),
}
"""What --columns may name, and the fields that have this meaning in some layout."""

OF_ANY_LAYOUT = ("group", "cluster", "references", "label", "score")
"""What else it may name: no layout has a field for it, so that `completed` adds it."""

NAMED = "--columns"
"""The field in which a record keeps what is named of these: role -> column and value."""

NO_SCORES: Mapping[str, object] = {}

LABELS = ("category", "l2-category", "split", "subset")
"""Fields that other tools break their results down by."""


def named(rows: Records, columns: Mapping[str, str], path: Path) -> Records:
    """The records with the named columns under every name that a layout reads."""
    for role, column in columns.items():
        if role not in FIELDS and role not in OF_ANY_LAYOUT:
            raise unknown_name("name in --columns", role, [*FIELDS, *OF_ANY_LAYOUT])
        if rows and not any(_holder(record, column) for _, record in rows):
            known = _fields(rows[0][1])
            raise UserError(
                f"has no column or field '{column}'{did_you_mean(column, known)}",
                file=path,
                found=", ".join(known),
                expected=f"--columns {role}= with one of them",
            )
    return [(where, _renamed(record, columns)) for where, record in rows] if columns else rows


def _holder(record: Mapping[str, Any], column: str) -> tuple[Mapping[str, Any], str] | None:
    """The object that holds a column such as `doc.question_id`, and its name there; None if there is none."""
    if column in record:
        return record, column
    outer, _, inner = column.partition(".")
    inside = record.get(outer)
    return _holder(inside, inner) if inner and isinstance(inside, dict) else None


def _fields(record: Mapping[str, Any]) -> list[str]:
    """The names that --columns takes: fields, and those of the objects in a record of a log."""
    inside = [f"{outer}.{name}" for outer, one in record.items() if isinstance(one, dict) for name in one]
    return [*record, *inside]


def _renamed(record: Mapping[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    renamed = dict(record)
    for role, column in columns.items():
        found = _holder(record, column)
        if role in OF_ANY_LAYOUT:
            name = found[1] if found and role == "label" else column
            value = found[0][found[1]] if found else None
            renamed[NAMED] = {**renamed.get(NAMED, {}), role: (name, value)}
            continue
        names = [role, *(name for name in FIELDS[role] if name in record)]
        for name in names:
            renamed.pop(name, None)
        if found:
            renamed.update(dict.fromkeys(names, found[0][found[1]]))
    return renamed


def completed(
    one: Prediction,
    record: Mapping[str, Any],
    location: RecordLocation,
    tool: str,
    scores: Mapping[str, object] = NO_SCORES,
    extracted: str | None = None,
) -> Prediction:
    """An answer with the group, the cluster and the label that the user named, and the score of its tool.

    Args:
        scores: What may be the score, or an object such as {"score": 1.0}, by the name that --columns takes.
    """
    asked: Mapping[str, tuple[str, Any]] = record.get(NAMED) or {}
    if "group" in asked:
        variant = one.sample if one.variant == ONLY_VARIANT else one.variant
        one = replace(one, sample=_name(*asked["group"], location), variant=variant)
    if "cluster" in asked:
        one = replace(one, cluster=_name(*asked["cluster"], location))
    if "references" in asked:
        one = replace(one, references=right_answers(asked["references"][1]))
    if "label" in asked and asked["label"][1] is not None:
        name, value = asked["label"]
        one = replace(one, labels={**one.labels, name: cell_text(value)})
    if "score" in asked:
        scores = dict([asked["score"]])
    values = {
        name: value.get("score") if isinstance(value, dict) else value for name, value in scores.items()
    }
    held = {name: value for name, value in values.items() if value is not None}
    return replace(one, scores=ToolScores(tool, held, extracted)) if held else one


def _name(field: str, value: object, location: RecordLocation) -> str:
    """A group or a cluster: a text, a number, or the texts of a list, such as the paths of all images."""
    return identifier(", ".join(right_answers(value)) if isinstance(value, list) else value, field, location)


def right_answers(value: object) -> tuple[str, ...]:
    """The right answer, or several in a list."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(text for one in values if isinstance(one, str | int | float) and (text := cell_text(one)))


def labels_in(record: Mapping[str, Any]) -> dict[str, str]:
    return {name: text for name in LABELS if isinstance(text := record.get(name), str) and text}


# -- Which of the fields of a file is the score of its tool


_ERROR_METRIC = re.compile(
    r"(?:^|[\W_])(?:wer|cer|ter|perplexity|ppl|loss|error|distance|mae|mse|rmse|bits)(?:[\W_]|$)", re.I
)
"""The names of metrics of which less is better."""


def score_of(one: Prediction) -> float | None:
    """The score of an answer, as `check_scores` allows it; None if its tool gave none."""
    return next(iter(_numbers(one).values()), None)


def check_scores(predictions: Sequence[Prediction], path: Path) -> None:
    """Refuse the file if its score is ambiguous or is no number from 0 to 1 of which more is better.

    All records count, so that no answer is scored because two fields of its record happen to agree.
    """
    several = False
    names: dict[str, None] = {}
    for one in predictions:
        known = _numbers(one)
        names |= dict.fromkeys(known)
        several |= len(set(known.values())) > 1
    if several:
        raise UserError(
            "holds several scores of an answer, which differ",
            file=path,
            found=", ".join(names),
            expected="--columns score= with one of them",
        )
    own = "a table with a score from 0 to 1, 1 for right: --judge file --columns score=COLUMN"
    if less := next(filter(_ERROR_METRIC.search, names), None):
        raise UserError("is an error: less is better", file=path, field=less, expected=own)
    for one in predictions:
        for name, score in _numbers(one).items():
            if not 0 <= score <= 1:
                raise UserError(
                    "is a score on another scale",
                    file=path,
                    record=one.sample,
                    field=name,
                    found=score,
                    expected=own,
                )
        if one.scores and (text := _grade(one.scores)):
            raise UserError(
                "is no score", file=path, record=one.sample, field=text[0], found=text[1], expected=own
            )


def _grade(scores: ToolScores) -> tuple[str, str] | None:
    """A text where all fields are scores: the one that the user named, or those of inspect_ai."""
    if len(scores.by_name) > 1 and scores.tool != "inspect_ai":
        return None
    texts = ((name, value) for name, value in scores.by_name.items() if isinstance(value, str))
    return next(((name, text) for name, text in texts if text.strip() and _number(text) is None), None)


def _numbers(one: Prediction) -> dict[str, float]:
    scores = one.scores.by_name if one.scores else {}
    return {name: number for name, value in scores.items() if (number := _number(value)) is not None}


def _number(value: object) -> float | None:
    """None for what is no number, and for NaN."""
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        return None
    return None if math.isnan(number) else number


def score_name(name: str, value: object) -> str:
    """What --columns takes for a score that may be in an object."""
    return f"{name}.score" if isinstance(value, dict) else name
