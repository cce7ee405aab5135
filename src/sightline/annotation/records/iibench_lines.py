"""The questions of II-Bench that an author's values hold, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.annotation.records.iibench_form import (
    FILLED,
    SEVERAL,
    SPLIT,
    Cells,
    FormLine,
    cells_of,
    find_faults,
)
from sightline.annotation.types import Item, Values
from sightline.benchmarks.iibench.records import LABELS, IIBenchRecord
from sightline.benchmarks.records import read_records
from sightline.errors import UserError
from sightline.scoring.multiple_choice import SIX_LETTERS

QUESTIONS = (1, 2, 3)


def proposals(folder: Path, split: str) -> dict[str, Values]:
    """Read what a data folder already says about its images, for authors to correct."""
    file = folder / f"{split or SPLIT}.json"
    if not file.is_file():
        return {}
    records = read_records(file, IIBenchRecord, name="local_path")
    return {record.local_path: _values(cells_of(record)) for record in records}


def _values(lines: Sequence[Cells]) -> Values:
    """The values of an author that `form_lines` turns into these lines."""
    first = lines[0]
    values: dict[str, str | tuple[str, ...]] = {
        label: first[label] if label not in SEVERAL else tuple(first[label].split(", ")) for label in LABELS
    }
    values["explanation"] = first["explanation"]
    for number, cells in zip(QUESTIONS, lines, strict=False):
        values[f"question_{number}"] = cells["question"]
        # An option of test-646 has two lines; authors write one option a line.
        options = [" ".join(cells[letter].split("\n")) for letter in SIX_LETTERS]
        values[f"options_{number}"] = "\n".join(options)
        values[f"answer_{number}"] = cells["answer"]
    return {name: value for name, value in values.items() if value}


def form_lines(item: Item, by: str, values: Values) -> list[FormLine]:
    """Turn what an author filled in into lines of the annotation form."""
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
    """Find what keeps an author's values out of the records."""
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
