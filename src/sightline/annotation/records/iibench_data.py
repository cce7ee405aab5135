"""II-Bench's data folder from the lines that annotators filled in.

II-Bench (section 3.2, Appendix B.4): inconsistent annotations are revised until the annotators agree. Here an
image gets the labels that more than half of its annotators give it; an image without such labels is left out
until somebody settles it. Its explanation and questions are those of its first annotator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.annotation.label_agreement import LabelAgreement
from sightline.annotation.records.iibench_form import FILLED, SPLIT, Cells, FormLine
from sightline.benchmarks.contextual.folder import IMAGE
from sightline.benchmarks.iibench.records import LABELS, IIBenchQuestion, IIBenchRecord, ImageMetadata
from sightline.builders.built_folder import IMAGES, Contents, write_folder
from sightline.builders.checked_images import CheckedImages
from sightline.builders.manifest import BuildManifest, build_identity, indented_json
from sightline.builders.source_ids import ids_of
from sightline.escaping import escape_formula
from sightline.formats.digests import json_digest
from sightline.formats.tables import csv_bytes
from sightline.scoring.majority import majority
from sightline.scoring.multiple_choice import SIX_LETTERS

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
        """Decide a label.

        Returns:
            The values that were settled, or that more than half of the annotators give, spelt as the first of
            them wrote them; None if there are none.
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
        """The undecided labels."""
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
    """Make II-Bench's records."""
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
    """The content of annotation.json."""
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
