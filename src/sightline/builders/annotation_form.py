"""The form in which people annotate images for II-Bench: drawn of a folder, read back, checked.

II-Bench (section 3.2, Appendix B.3): an annotator gives an image its labels, explains what it implies, and
writes one to three questions about that, each with one right option and five others. A form is a table with a
line a question, `by` (who wrote it), where the image lies, and the columns of FILLED. Of an image with
several questions the labels and the explanation stand in each of their lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.contextual.folder import IMAGE
from sightline.benchmarks.iibench.records import LABELS, VALUES, IIBenchRecord
from sightline.benchmarks.records import read_records
from sightline.builders.manifest import fingerprint
from sightline.builders.review_lists import AnnotatorNames
from sightline.builders.sources import folder_sources
from sightline.errors import UserError, did_you_mean
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.tables import csv_bytes, escape_formula, read_table, table_rows, unescape_formula
from sightline.scoring.multiple_choice import LETTERS

SEVERAL = ("image_type", "rhetoric")
"""The labels of which an image may have more than one value."""
OF_IMAGE = (*LABELS, "explanation")
FILLED = (*OF_IMAGE, "question", *LETTERS, "answer")
"""The columns that an annotator fills in."""
MOST_QUESTIONS = 3
WRITTEN = "written"
"""The column that tells what stood in a line when the form was written."""

Cells = Mapping[str, str]
"""What stands in the columns of FILLED."""


class FormLine(Struct, frozen=True):
    """A line that somebody filled in: the image that it is about (a path in the folder), who wrote it, its
    cells, and where it stands: a file, and a line such as 'line 3'."""

    image: str
    by: str
    cells: Cells
    file: Path
    where: str

    def values(self, label: str) -> tuple[str, ...]:
        """The values of a label, spelt as in the release where they are some of its own; each once."""
        known = {value.casefold(): value for value in VALUES[label]}
        parts = (" ".join(part.split()) for part in self.cells[label].replace(";", ",").split(","))
        return tuple(dict.fromkeys(known.get(part.casefold(), part) for part in parts if part))

    @property
    def texts(self) -> tuple[str, ...]:
        """Explanation, question, options and answer, blanks alike."""
        told = (self.cells[column] for column in ("explanation", "question", *LETTERS))
        return (*(" ".join(text.split()) for text in told), self.answer)

    @property
    def options(self) -> tuple[str, ...]:
        """The six options, as they were written."""
        return tuple(self.cells[letter] for letter in LETTERS)

    @property
    def answer(self) -> str:
        """The letter of the right option."""
        return self.cells["answer"].strip().upper()


def cells_in(folder: Path, split: str) -> dict[str, list[Cells]]:
    """What a form of a folder begins with: by the paths of its images, the cells of each line.

    Where the folder holds II-Bench's SPLIT.json these are its images with their questions, to be corrected;
    else all images in it and below, each with a line of empty cells. UserError where there is no image,
    or the records are wrong.
    """
    file = folder / f"{split}.json"
    if not file.is_file():
        paths = (Path(source.image).relative_to(folder).as_posix() for source in folder_sources(folder))
        return {path: [dict.fromkeys(FILLED, "")] for path in paths}
    found: dict[str, list[Cells]] = defaultdict(list)
    for record in read_records(file, IIBenchRecord, name="local_path"):
        found[record.local_path] += _cells(record)
    return dict(found)


def write_form(path: Path, folder: Path, form: Mapping[str, Sequence[Cells]]) -> None:
    """Write a form about images of a folder. EnvironmentFailedError where the disk refuses."""
    rows = (
        ["", str(folder / image), image, *(cells[column] for column in FILLED), _digest(cells)]
        for image, lines in form.items()
        for cells in lines
    )
    header = ["by", "image", IMAGE, *FILLED, WRITTEN]
    write_atomically(path, [csv_bytes([header, *([*map(escape_formula, row)] for row in rows)])])


def read_forms(paths: Sequence[Path]) -> list[FormLine]:
    """The lines that people filled in, in the order of the forms; one that is empty is none, nor is one that
    is as it was written and without a name in `by`. One that was given twice counts once.

    Whoever left `by` empty is named as the file; case and blanks make no other name. UserError where a form
    lacks a column, or two such forms have one name.
    """
    lines: dict[tuple[object, ...], FormLine] = {}
    humans = AnnotatorNames()
    for path in paths:
        table = read_table(read_bytes(path), path)
        for column in (IMAGE, *FILLED):
            if column not in table.header:
                expected = f"a form of --write, with {', '.join((IMAGE, *FILLED))}"
                raise UserError("lacks a column", file=path, field=column, expected=expected)
        for where, row in table_rows(table, path):
            cells = {column: unescape_formula(row[column]) for column in FILLED}
            left_as_it_was = row.get(WRITTEN) == _digest(cells) and not row.get("by", "").strip()
            if left_as_it_was or not any(cell.strip() for cell in cells.values()):
                continue
            line = FormLine(unescape_formula(row[IMAGE]), humans.whose(row, path, where), cells, path, where)
            lines.setdefault((line.image, line.by, *cells.values()), line)
    return list(lines.values())


def faults(lines: Sequence[FormLine], images: Collection[str]) -> list[UserError]:
    """What is wrong with lines about these images: an error each, with file, line, field and what to do."""
    found = [fault for line in lines for fault in _faults(line, images)]
    by_human: dict[tuple[str, str], list[FormLine]] = defaultdict(list)
    for line in lines:
        by_human[line.image, line.by].append(line)
    for first, *others in by_human.values():
        found += [fault for other in others for fault in _differences(first, other)]
        found += [
            _fault(line, "question", "is one too many about this image", expected="1 to 3 of a person")
            for line in others[MOST_QUESTIONS - 1 :]
        ]
    return found


def _digest(cells: Cells) -> str:
    """What tells cells again; spreadsheets change line breaks, and take digits alone for a number."""
    return f"x{fingerprint([' '.join(cells[column].split()) for column in FILLED])[:15]}"


def _cells(record: IIBenchRecord) -> list[Cells]:
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
            **dict(zip(LETTERS, question.options, strict=False)),
            "answer": question.answer or "",
        }
        for question in record.questions
    ]


def _joined(values: str | tuple[str, ...]) -> str:
    return values if isinstance(values, str) else ", ".join(values)


def _faults(line: FormLine, images: Collection[str]) -> Iterator[UserError]:
    if line.image not in images:
        yield _fault(line, IMAGE, "is no image of the folder that can be shown", line.image, "its path there")
    for label in LABELS:
        yield from _label_faults(line, label)
    for column in ("explanation", "question", *LETTERS):
        if not line.cells[column].strip():
            yield _fault(line, column, "is empty", expected="a text")
    seen: dict[str, str] = {}
    for letter, option in zip(LETTERS, line.options, strict=True):
        same = seen.setdefault(" ".join(option.split()).casefold(), letter)
        if same != letter and option.strip():
            yield _fault(line, letter, f"is the same as {same}", option, "six options that differ")
    if line.answer not in tuple(LETTERS):
        found = line.cells["answer"]
        yield _fault(
            line, "answer", "is no option", found, f"the letter of the right one, {LETTERS[0]}-{LETTERS[-1]}"
        )


def _label_faults(line: FormLine, label: str) -> Iterator[UserError]:
    several, known, said = label in SEVERAL, VALUES[label], line.values(label)
    expected = f"{'one or more' if several else 'one'} of: {', '.join(known)}"
    if not said:
        yield _fault(line, label, "is empty", expected=expected)
    for value in said:
        if value not in known:
            yield _fault(line, label, f"is no {label}{did_you_mean(value, known)}", value, expected)
    if len(said) > 1 and not several:
        yield _fault(line, label, "has more than one value", line.cells[label], expected)


def _differences(first: FormLine, other: FormLine) -> Iterator[UserError]:
    """Where a person's lines about one image say different things of it."""
    for column in OF_IMAGE:
        one, two = (
            line.values(column) if column in VALUES else line.cells[column] for line in (first, other)
        )
        if one != two:
            yield _fault(
                other,
                column,
                f"is not what {first.file}, {first.where} says of the same image",
                other.cells[column],
                "the same in all lines that a person writes about an image",
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
