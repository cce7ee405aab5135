"""What --columns names in the records of a file: fields of layouts, and groups, clusters and scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sightline.errors import UserError, did_you_mean, unknown_name
from sightline.formats.prediction import (
    ONLY_VARIANT,
    RESPONSES,
    Prediction,
    RecordLocation,
    identifier,
)
from sightline.text import Records, cell_text
from sightline.types import Verdict

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
            name, value = (found[1], found[0][found[1]]) if found else (column, None)
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
        scores: What may be the score, by the name that --columns takes; where several differ, the user must
            name one.
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
        score = _score(asked["score"][1])
        if score is None and cell_text(asked["score"][1]):
            found = asked["score"][1]
            raise location.error(
                "is no score", field=asked["score"][0], found=found, expected="a number from 0 to 1"
            )
    else:
        known = {name: score for name, value in scores.items() if (score := _score(value)) is not None}
        if len(set(known.values())) > 1:
            several = replace(_verdict(0, tool, None), verdict="undecided", value=None, scores={})
            return replace(one, verdicts=(*one.verdicts, replace(several, raw=", ".join(known))))
        score = next(iter(known.values()), None)
    return one if score is None else replace(one, verdicts=(*one.verdicts, _verdict(score, tool, extracted)))


def _name(field: str, value: object, location: RecordLocation) -> str:
    """A group or a cluster: a text, a number, or the texts of a list, such as the paths of all images."""
    return identifier(", ".join(right_answers(value)) if isinstance(value, list) else value, field, location)


def right_answers(value: object) -> tuple[str, ...]:
    """The right answer, or several in a list."""
    values = value if isinstance(value, list | tuple) else [value]
    return tuple(text for one in values if isinstance(one, str | int | float) and (text := cell_text(one)))


def labels_in(record: Mapping[str, Any]) -> dict[str, str]:
    return {name: text for name in LABELS if isinstance(text := record.get(name), str) and text}


def _score(value: object) -> float | None:
    """A number from 0 to 1, or the one in an object such as {"score": 1.0}; None for anything else."""
    if isinstance(value, dict):
        value = value.get("score")
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        return None
    return number if 0 <= number <= 1 else None


def score_name(name: str, value: object) -> str:
    """What --columns takes for a score that may be in an object."""
    return f"{name}.score" if isinstance(value, dict) else name


def _verdict(score: float, tool: str, extracted: str | None) -> Verdict:
    """Right with the full score; what is between counts in the metric `score`."""
    return Verdict(
        targets=(),
        question="correct",
        scorer=tool,
        judge=tool,
        kind="tool",
        verdict="right" if score == 1 else "wrong",
        value=score,
        extracted=extracted,
        scores={"score": score},
    )
