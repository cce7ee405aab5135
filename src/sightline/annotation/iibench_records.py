"""Records in II-Bench's layout, of what authors wrote about images (II-Bench 3.2, appendix B.3)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.annotation.decisions import judgements
from sightline.annotation.overview import LabelAgreement, label_agreement
from sightline.annotation.records import RecordsRequest
from sightline.annotation.task import RATER
from sightline.annotation.types import Item
from sightline.annotation.types import Values as ItemValues
from sightline.benchmarks.contextual.data import IMAGE
from sightline.benchmarks.iibench.data import LABELS, VALUES, IIBenchQuestion, IIBenchRecord, ImageMetadata
from sightline.benchmarks.released import read_records
from sightline.builders.folder import IMAGES, BuildManifest, Contents, build_identity, write_folder
from sightline.builders.sources import CheckedImages, check_images, ids_of
from sightline.errors import UserError, did_you_mean
from sightline.formats.files import json_digest, write_atomically
from sightline.formats.tables import csv_bytes
from sightline.metrics.agreement import majority
from sightline.scoring.options import SIX_LETTERS
from sightline.text import escape_formula, for_csv_lines, indented_json
from sightline.types import ImageRef

FOLDER, REPORT, LEFT_OUT = "data", "annotation.json", "left_out.csv"


def write_iibench(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write test.json, questions.csv for the review, the images and the agreement on labels.

    What an author wrote with a fault, such as two equal options, is left out, and listed in left_out.csv.
    """
    folder = request.state.project.data
    paths = {image.path for item in request.state.items.values() for image in item.images["image"]}
    gallery = check_images({path: ImageRef(str(Path(folder) / path), folder) for path in sorted(paths)})
    lines: list[FormLine] = []
    settled: list[FormLine] = []
    left_out = [["item", "image", "author", "fault"]]
    for one in judgements(request.state, request.annotators):
        image = one.item.images["image"][0].path
        found = [str(fault) for fault in faults(one.item, one.entry.values)]
        if image not in gallery.files:
            found.append("the image cannot be read")
        left_out += [[str(one.item.number), image, one.name, fault] for fault in found]
        if not found:
            into = lines if one.role == RATER else settled
            into += form_lines(one.item, one.name, one.entry.values)
    path = request.out / LEFT_OUT
    write_atomically(path, [csv_bytes([[*map(for_csv_lines, row)] for row in left_out])])
    named = ", ".join(dict.fromkeys(f"item {row[0]} by {row[2]}" for row in left_out[1:]))
    yield path, f"left out for their faults: {named}" if named else "nothing was left out"
    images = group_by_image(lines, settled)
    agreement = label_agreement(request.state, request.annotators)
    report = annotation_report(images, len(gallery.files), agreement)
    write_atomically(request.out / REPORT, [indented_json(report)])
    open_images = [one.image for one in images if one.open]
    differ = f"; without a majority on a label: {', '.join(open_images)}" if open_images else ""
    yield request.out / REPORT, f"labels of {len(images):,} images, and the agreement on them{differ}"
    yield from write_data(request, images, gallery)


def write_data(
    request: RecordsRequest, images: Sequence[AnnotatedImage], gallery: CheckedImages
) -> Iterator[tuple[Path, str]]:
    """Write the data folder of the images whose labels are decided, if there are any."""
    if all(one.open for one in images):
        return
    out = request.out / FOLDER
    manifest = write_annotations(images, gallery, out)
    yield out / f"{SPLIT}.json", f"{manifest.probes:,} questions about {manifest.groups:,} images"
    yield out / TABLE, "the same questions, for `annotate new review`"


# -- II-Bench's data folder from the lines that annotators filled in

KIND = "annotate"
TABLE = "questions.csv"

Values = tuple[str, ...]


class AnnotatedImage(Struct, frozen=True):
    """An image and the lines about it: by annotator, in the order of the log, and those that settle it."""

    image: str
    by_annotator: Mapping[str, tuple[FormLine, ...]]
    settled: tuple[FormLine, ...] = ()

    @property
    def lines(self) -> tuple[FormLine, ...]:
        """The lines that settle the image, or those of the first annotator."""
        return self.settled or next(iter(self.by_annotator.values()))

    def annotations(self, label: str) -> dict[str, Values]:
        return {annotator: lines[0].values(label) for annotator, lines in self.by_annotator.items()}

    def decided(self, label: str) -> Values | None:
        """The values of a label that were settled, or that more than half of the annotators give.

        Spelt as the first of them wrote them; None if there are none.
        """
        if self.settled:
            return self.settled[0].values(label)
        annotations = list(self.annotations(label).values())
        winner = majority((frozenset(values) for values in annotations), absolute=True)
        return next((values for values in annotations if frozenset(values) == winner), None)

    @property
    def unused(self) -> tuple[str, ...]:
        """The annotators whose texts differ from those that are used."""
        used = [line.texts for line in self.lines]
        return tuple(
            name for name, lines in self.by_annotator.items() if [line.texts for line in lines] != used
        )

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(label for label in LABELS if self.decided(label) is None)

    @property
    def cells(self) -> list[Cells]:
        """The lines that count, with the decided labels; undecided ones are empty."""
        labels = {label: ", ".join(self.decided(label) or ()) for label in LABELS}
        return [{**line.cells, **labels, "answer": line.answer} for line in self.lines]


def group_by_image(lines: Iterable[FormLine], settled: Iterable[FormLine] = ()) -> list[AnnotatedImage]:
    groups: dict[str, dict[str, list[FormLine]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        groups[line.image][line.by].append(line)
    settling: dict[str, list[FormLine]] = defaultdict(list)
    for line in settled:
        settling[line.image].append(line)
    return [
        AnnotatedImage(
            image,
            {annotator: tuple(own) for annotator, own in groups[image].items()},
            tuple(settling[image]),
        )
        for image in dict.fromkeys([*groups, *settling])
    ]


def output_paths(images: Collection[str]) -> dict[str, str]:
    """Choose the paths of images in the output folder, all below images/.

    >>> output_paths(["images/a.png"])
    {'images/a.png': 'images/a.png'}
    >>> output_paths(["a.png", "images/a.png"])
    {'a.png': 'images/a.png', 'images/a.png': 'images/images/a.png'}
    """
    below = all(image.startswith(f"{IMAGES}/") for image in images)
    return {image: image if below else f"{IMAGES}/{image}" for image in images}


def iibench_records(images: Sequence[AnnotatedImage], paths: Mapping[str, str]) -> list[IIBenchRecord]:
    names = [Path(one.image).name for one in images for _ in one.lines]
    ids = iter(ids_of(names))
    return [
        IIBenchRecord(
            paths[one.image],
            tuple(_question(line, next(ids)) for line in one.lines),
            _meta(one),
        )
        for one in images
    ]


def annotation_report(
    images: Sequence[AnnotatedImage], total: int, agreement: Sequence[LabelAgreement]
) -> dict[str, Any]:
    return {
        "schema": 1,
        "images": total,
        "annotated": len(images),
        "open": sum(bool(one.open) for one in images),
        "human": list(dict.fromkeys(name for one in images for name in one.by_annotator)),
        "metrics": [value for one in agreement for value in (one.share, one.alpha)],
        "labels": [
            {
                "image": one.image,
                "decided": {label: one.decided(label) for label in LABELS},
                "annotations": {label: one.annotations(label) for label in LABELS},
                "unused_texts": one.unused,
            }
            for one in images
        ],
    }


def write_annotations(images: Sequence[AnnotatedImage], gallery: CheckedImages, out: Path) -> BuildManifest:
    """Write annotated images as a data folder: test.json, questions.csv, images/, manifest.

    questions.csv holds the same questions for reviewers. Images with an undecided label are left out.
    """
    settled = [one for one in images if not one.open]
    dropped = {
        **gallery.broken,
        **dict.fromkeys(gallery.files, "no annotation"),
        **{one.image: f"annotators disagree on {', '.join(one.open)}" for one in images},
    }
    for one in settled:
        del dropped[one.image]
    paths = output_paths(gallery.files)
    records = iibench_records(settled, paths)
    copied = {paths[one.image]: gallery.files[one.image] for one in settled}
    contents = Contents(
        groups=len(records),
        probes=sum(len(record.questions) for record in records),
        files={f"{SPLIT}.json": indented_json(records), TABLE: _table(settled, paths)},
        sources={path: file.digest for path, file in copied.items()},
        dropped=dropped,
    )
    digests = json_digest({name: file.digest for name, file in gallery.files.items()})
    identity = build_identity(KIND, {"images": digests})
    return write_folder(out, identity, contents, copied, manifest=BuildManifest, force=True)


def _question(line: FormLine, name: str) -> IIBenchQuestion:
    right = line.options[SIX_LETTERS.index(line.answer)]
    return IIBenchQuestion(name, line.cells["question"], line.options, line.answer, right)


def _meta(one: AnnotatedImage) -> ImageMetadata:
    values = {label: one.decided(label) or () for label in LABELS}
    return ImageMetadata(
        domain=values["domain"][0],
        emotion=values["emotion"][0],
        image_type=values["image_type"],
        difficulty=values["difficulty"][0],
        rhetoric=values["rhetoric"],
        explanation=one.lines[0].cells["explanation"],
    )


def _table(images: Iterable[AnnotatedImage], paths: Mapping[str, str]) -> bytes:
    rows = (
        [line.by, paths[one.image], *(cells[column] for column in FILLED)]
        for one in images
        for line, cells in zip(one.lines, one.cells, strict=True)
    )
    return csv_bytes([["by", IMAGE, *FILLED], *([*map(escape_formula, row)] for row in rows)])


# -- The lines of questions about II-Bench's images: their columns, and what is wrong with a line

SEVERAL = ("image_type", "rhetoric")
"""Labels that may have more than one value per image."""
OF_IMAGE = (*LABELS, "explanation")
FILLED = (*OF_IMAGE, "question", *SIX_LETTERS, "answer")
"""Columns that an annotator fills in."""
SPLIT = "test"
"""The split as which data is written."""

Cells = Mapping[str, str]
"""Column of FILLED -> cell."""


class FormLine(Struct, frozen=True):
    """A line: its image (path in the folder), its annotator, its cells, and which one it is."""

    image: str
    by: str
    cells: Cells
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
        return tuple(self.cells[letter] for letter in SIX_LETTERS)

    @property
    def answer(self) -> str:
        """The letter of the right option."""
        return self.cells["answer"].strip().upper()


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


def find_faults(line: FormLine) -> Iterator[UserError]:
    """Find what is wrong with a line, whatever its image is."""
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
        expected = f"the letter of the right one, {SIX_LETTERS[0]}-{SIX_LETTERS[-1]}"
        yield _fault(line, "answer", "is not an option", line.cells["answer"], expected)


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


def _fault(
    line: FormLine, column: str, message: str, found: str | None = None, expected: str | None = None
) -> UserError:
    return UserError(message, record=line.where, field=column, found=found, expected=expected)


# -- The questions of II-Bench that an author's values hold, and what is wrong with them

QUESTIONS = (1, 2, 3)


def proposals(folder: Path, split: str) -> dict[str, ItemValues]:
    """Read what a data folder already says about its images, for authors to correct."""
    file = folder / f"{split or SPLIT}.json"
    if not file.is_file():
        return {}
    records = read_records(file, IIBenchRecord, name="local_path")
    return {record.local_path: _values(cells_of(record)) for record in records}


def _values(lines: Sequence[Cells]) -> ItemValues:
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


def form_lines(item: Item, by: str, values: ItemValues) -> list[FormLine]:
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
            lines.append(FormLine(image, by, whole, f"question {number}"))
    return lines


def faults(item: Item, values: ItemValues) -> Iterator[UserError]:
    for line in form_lines(item, "", values):
        yield from find_faults(line)
    for number in QUESTIONS:
        if len(options := _options(values, number)) > len(SIX_LETTERS):
            yield UserError(
                "are too many",
                record=f"question {number}",
                field="options",
                found=len(options),
                expected=f"{len(SIX_LETTERS)} lines, one option each",
            )


def _options(values: ItemValues, number: int) -> list[str]:
    lines = _text(values, f"options_{number}").split("\n")
    return [option.strip() for option in lines if option.strip()]


def _text(values: ItemValues, name: str) -> str:
    value = values.get(name, "")
    return value if isinstance(value, str) else ", ".join(value)


# What a kind of records does before it is written: reads what a folder has already, checks what is typed.
PROPOSALS: Mapping[str, Callable[[Path, str], dict[str, ItemValues]]] = {"iibench": proposals}
CHECKS: Mapping[str, Callable[[Item, ItemValues], Iterator[UserError]]] = {"iibench": faults}
