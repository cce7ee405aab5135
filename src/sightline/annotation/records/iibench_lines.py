"""The questions of II-Bench that an author's values hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.types import Item, Values
from sightline.benchmarks.iibench.records import LABELS
from sightline.builders.annotation_form import FILLED, FormLine, find_faults
from sightline.errors import UserError
from sightline.scoring.multiple_choice import SIX_LETTERS

QUESTIONS = (1, 2, 3)


def form_lines(item: Item, by: str, values: Values) -> list[FormLine]:
    """Turn what an author filled in into lines of the annotation form.

    Args:
        item: The item.
        by: The name of the author.
        values: The values.

    Returns:
        A line for each question of which anything is filled in.
    """
    image = item.images["image"][0].path
    shared = {name: _text(values, name) for name in (*LABELS, "explanation")}
    lines = []
    for number in QUESTIONS:
        cells = {
            "question": _text(values, f"question_{number}"),
            "answer": _text(values, f"answer_{number}"),
            **dict(zip(SIX_LETTERS, _options(values, number), strict=False)),
        }
        if any(cell.strip() for cell in cells.values()):
            whole = {**dict.fromkeys(FILLED, ""), **shared, **cells}
            lines.append(FormLine(image, by, whole, Path(f"item {item.number}"), f"question {number}"))
    return lines


def faults(item: Item, values: Values) -> Iterator[UserError]:
    """Find what keeps an author's values out of the records.

    Args:
        item: The item.
        values: The values.

    Yields:
        An error for each fault, with question and field; no path, which authors must not see.
    """
    for line in form_lines(item, "", values):
        for fault in find_faults([line], [line.image]):
            yield UserError(
                fault.message,
                record=line.where,
                field=fault.field,
                found=fault.found,
                expected=fault.expected,
            )
    for number in QUESTIONS:
        if len(options := _options(values, number)) > len(SIX_LETTERS):
            yield UserError(
                "are too many",
                record=f"question {number}",
                field="options",
                found=len(options),
                expected=f"{len(SIX_LETTERS)} lines, one option each",
            )


def _options(values: Values, number: int) -> list[str]:
    lines = _text(values, f"options_{number}").split("\n")
    return [option.strip() for option in lines if option.strip()]


def _text(values: Values, name: str) -> str:
    value = values.get(name, "")
    return value if isinstance(value, str) else ", ".join(value)
