"""The lines of questions about II-Bench's images: their columns, and what is wrong with a line.

II-Bench (section 3.2, Appendix B.3): an annotator labels an image, explains its implied meaning, and writes
one to three questions about it, each with one right option and five others. There is one line per question:
`by` (the annotator), the image's path, and the columns of FILLED. If an image has several questions, each of
their lines repeats the labels and the explanation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.contextual.folder import IMAGE
from sightline.benchmarks.iibench.records import LABELS, VALUES, IIBenchRecord
from sightline.errors import UserError, did_you_mean
from sightline.scoring.multiple_choice import SIX_LETTERS

SEVERAL = ("image_type", "rhetoric")
"""Labels that may have more than one value per image."""
OF_IMAGE = (*LABELS, "explanation")
FILLED = (*OF_IMAGE, "question", *SIX_LETTERS, "answer")
"""Columns that an annotator fills in."""
MOST_QUESTIONS = 3
SPLIT = "test"
"""The split as which data is written."""

Cells = Mapping[str, str]
"""Column of FILLED -> cell."""


class FormLine(Struct, frozen=True):
    """A line: its image (path in the folder), its annotator, its cells, and where it was filled in."""

    image: str
    by: str
    cells: Cells
    file: Path
    where: str

    def values(self, label: str) -> tuple[str, ...]:
        spelling = {value.casefold(): value for value in VALUES[label]}
        parts = (" ".join(part.split()) for part in self.cells[label].replace(";", ",").split(","))
        return tuple(dict.fromkeys(spelling.get(part.casefold(), part) for part in parts if part))

    @property
    def texts(self) -> tuple[str, ...]:
        """Explanation, question, options and answer, with single blanks."""
        cells = (self.cells[column] for column in ("explanation", "question", *SIX_LETTERS))
        return (*(" ".join(text.split()) for text in cells), self.answer)

    @property
    def options(self) -> tuple[str, ...]:
        """The six options as written."""
        return tuple(self.cells[letter] for letter in SIX_LETTERS)

    @property
    def answer(self) -> str:
        """The letter of the right option."""
        return self.cells["answer"].strip().upper()


def find_faults(lines: Sequence[FormLine], images: Collection[str]) -> list[UserError]:
    """Check filled-in lines."""
    faults = [fault for line in lines for fault in _faults(line, images)]
    by_annotator: dict[tuple[str, str], list[FormLine]] = defaultdict(list)
    for line in lines:
        by_annotator[line.image, line.by].append(line)
    for first, *others in by_annotator.values():
        faults += [fault for other in others for fault in _differences(first, other)]
        faults += [
            _fault(line, "question", "is one line too many for this image", expected="1 to 3 per annotator")
            for line in others[MOST_QUESTIONS - 1 :]
        ]
    return faults


def cells_of(record: IIBenchRecord) -> list[Cells]:
    meta = record.meta_data
    labels = {label: _joined(getattr(meta, label)) for label in LABELS}
    # The explanation of test-908 is an object.
    explanation = meta.explanation if isinstance(meta.explanation, str) else ""
    return [
        {
            **dict.fromkeys(FILLED, ""),
            **labels,
            "explanation": explanation,
            "question": question.question,
            **dict(zip(SIX_LETTERS, question.options, strict=False)),
            "answer": question.answer or "",
        }
        for question in record.questions
    ]


def _joined(values: str | tuple[str, ...]) -> str:
    return values if isinstance(values, str) else ", ".join(values)


def _faults(line: FormLine, images: Collection[str]) -> Iterator[UserError]:
    if line.image not in images:
        yield _fault(line, IMAGE, "is not a readable image of the folder", line.image, "its path there")
    for label in LABELS:
        yield from _label_faults(line, label)
    for column in ("explanation", "question", *SIX_LETTERS):
        if not line.cells[column].strip():
            yield _fault(line, column, "is empty", expected="a text")
    letter_of: dict[str, str] = {}
    for letter, option in zip(SIX_LETTERS, line.options, strict=True):
        same = letter_of.setdefault(" ".join(option.split()).casefold(), letter)
        if same != letter and option.strip():
            yield _fault(line, letter, f"is the same as {same}", option, "six different options")
    if line.answer not in tuple(SIX_LETTERS):
        found = line.cells["answer"]
        yield _fault(
            line,
            "answer",
            "is not an option",
            found,
            f"the letter of the right one, {SIX_LETTERS[0]}-{SIX_LETTERS[-1]}",
        )


def _label_faults(line: FormLine, label: str) -> Iterator[UserError]:
    several, allowed, values = label in SEVERAL, VALUES[label], line.values(label)
    expected = f"{'one or more' if several else 'one'} of: {', '.join(allowed)}"
    if not values:
        yield _fault(line, label, "is empty", expected=expected)
    for value in values:
        if value not in allowed:
            yield _fault(line, label, f"is not a {label}{did_you_mean(value, allowed)}", value, expected)
    if len(values) > 1 and not several:
        yield _fault(line, label, "has more than one value", line.cells[label], expected)


def _differences(first: FormLine, other: FormLine) -> Iterator[UserError]:
    """Contradictions between lines of one annotator about one image."""
    for column in OF_IMAGE:
        one, two = (
            line.values(column) if column in VALUES else line.cells[column] for line in (first, other)
        )
        if one != two:
            yield _fault(
                other,
                column,
                f"differs from {first.file}, {first.where}, about the same image",
                other.cells[column],
                "the same in all lines of an annotator about an image",
            )


def _fault(
    line: FormLine, column: str, message: str, found: str | None = None, expected: str | None = None
) -> UserError:
    return UserError(
        message,
        file=line.file,
        record=f"{line.where} ({line.image})",
        field=column,
        found=found,
        expected=expected,
    )
