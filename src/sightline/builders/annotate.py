"""Annotation: agreement of annotators on the labels of images, and II-Bench's records from their forms.

II-Bench (section 3.2, Appendix B.4): inconsistent annotations are revised until the annotators agree. Here an
image gets the labels that more than half of its annotators give it; an image without such labels stays open.
Its explanation and questions are those of its first annotator.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, structs

from sightline.benchmarks.contextual.folder import IMAGE
from sightline.benchmarks.iibench.records import LABELS, IIBenchQuestion, IIBenchRecord, ImageMetadata
from sightline.builders.annotation_form import FILLED, Cells, FormLine
from sightline.builders.built_folder import IMAGES, Contents, everything_dropped, write_folder
from sightline.builders.checked_images import CheckedImages
from sightline.builders.manifest import (
    BuildIdentity,
    BuildManifest,
    build_identity,
    fingerprint,
    indented_json,
)
from sightline.builders.source_ids import ids_of
from sightline.escaping import escape_formula
from sightline.formats.tables import csv_bytes
from sightline.metric_types import MetricValue
from sightline.metrics.association import NOMINAL_ALPHA
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import clustered_mean
from sightline.scoring.majority import majority
from sightline.scoring.multiple_choice import SIX_LETTERS

KIND = "annotate"
REPORT, TABLE = "annotation.json", "questions.csv"
ALONE = "no image has two annotators"

Values = tuple[str, ...]


class AnnotatedImage(Struct, frozen=True):
    """An image and the lines about it by annotator, in the order of the forms."""

    image: str
    by_annotator: Mapping[str, tuple[FormLine, ...]]

    @property
    def lines(self) -> tuple[FormLine, ...]:
        """The lines of the first annotator."""
        return next(iter(self.by_annotator.values()))

    def annotations(self, label: str) -> dict[str, Values]:
        """Get all annotations of a label.

        Args:
            label: The label.

        Returns:
            Annotator -> values.
        """
        return {annotator: lines[0].values(label) for annotator, lines in self.by_annotator.items()}

    def decided(self, label: str) -> Values | None:
        """Decide a label.

        Args:
            label: The label.

        Returns:
            The values that more than half of the annotators give, spelt as the first of them wrote them; None
            if there are none.
        """
        annotations = list(self.annotations(label).values())
        winner = majority((frozenset(values) for values in annotations), absolute=True)
        return next((values for values in annotations if frozenset(values) == winner), None)

    @property
    def unused(self) -> tuple[str, ...]:
        """The annotators whose texts differ from those of the first annotator, which are used."""
        texts = {name: [line.texts for line in lines] for name, lines in self.by_annotator.items()}
        first = next(iter(texts.values()))
        return tuple(name for name, own in texts.items() if own != first)

    @property
    def open(self) -> tuple[str, ...]:
        """The undecided labels."""
        return tuple(label for label in LABELS if self.decided(label) is None)

    @property
    def cells(self) -> list[Cells]:
        """The lines of the first annotator with the decided labels; undecided ones are empty."""
        labels = {label: ", ".join(self.decided(label) or ()) for label in LABELS}
        return [{**line.cells, **labels, "answer": line.answer} for line in self.lines]


def group_by_image(lines: Iterable[FormLine]) -> list[AnnotatedImage]:
    """Group lines by image.

    Args:
        lines: Lines without faults.

    Returns:
        The images in the order of the lines.
    """
    groups: dict[str, dict[str, list[FormLine]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        groups[line.image][line.by].append(line)
    return [
        AnnotatedImage(image, {annotator: tuple(own) for annotator, own in by_annotator.items()})
        for image, by_annotator in groups.items()
    ]


def open_form(
    form: Mapping[str, Sequence[Cells]], images: Iterable[AnnotatedImage]
) -> dict[str, Sequence[Cells]]:
    """Select the part of a form that still needs work.

    Args:
        form: The form of the whole folder.
        images: The annotated images.

    Returns:
        The images without annotation, and those with an undecided label: as their first annotator left them,
        with that label empty.
    """
    done = {one.image: one for one in images}
    return {
        image: done[image].cells if image in done else cells
        for image, cells in form.items()
        if image not in done or done[image].open
    }


def agreement(images: Sequence[AnnotatedImage]) -> list[MetricValue]:
    """Compute how far annotators agree on each label.

    A set of values agrees only with an equal set.

    Args:
        images: The annotated images.

    Returns:
        Two values per label: `agreement`, the share of pairs of annotators who agree, in percent, and
        `alpha`, Krippendorff's, where 1 is full agreement and 0 is chance.
    """
    several = [one for one in images if len(one.by_annotator) > 1]
    metrics = []
    for label in LABELS:
        annotations = [[frozenset(own) for own in one.annotations(label).values()] for one in several]
        pairs = [
            (one.image, float(a == b))
            for one, own in zip(several, annotations, strict=True)
            for a, b in combinations(own, 2)
        ]
        categories = list(dict.fromkeys(value for own in annotations for value in own))
        counts = np.array(
            [[own.count(category) for category in categories] for own in annotations], dtype=np.float64
        )
        counts = counts.reshape(len(annotations), len(categories))
        clusters = [one.image for one in several]
        alpha = statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), clusters)
        share = clustered_mean("agreement", pairs, reason=ALONE)
        absent = {} if several else {"reason": ALONE}
        metrics += [
            structs.replace(share, subset=f"label={label}"),
            structs.replace(alpha, subset=f"label={label}", **absent),
        ]
    return metrics


def output_paths(images: Collection[str]) -> dict[str, str]:
    """Choose the paths of images in the output folder, all below images/.

    Args:
        images: Paths in the input folder.

    Returns:
        Input path -> output path. If all input paths begin with images/, as in the release, they are kept.

    >>> output_paths(["images/a.png"])
    {'images/a.png': 'images/a.png'}
    >>> output_paths(["a.png", "images/a.png"])
    {'a.png': 'images/a.png', 'images/a.png': 'images/images/a.png'}
    """
    below = all(image.startswith(f"{IMAGES}/") for image in images)
    return {image: image if below else f"{IMAGES}/{image}" for image in images}


def iibench_records(
    images: Sequence[AnnotatedImage], paths: Mapping[str, str], split: str
) -> list[IIBenchRecord]:
    """Make II-Bench's records.

    Args:
        images: Images without an undecided label.
        paths: Path of each image in the output folder.
        split: 'test' or 'dev'.

    Returns:
        The records; ids of questions are made from the names of their images.
    """
    names = [Path(one.image).name for one in images for _ in one.lines]
    ids = iter(ids_of(names))
    return [
        IIBenchRecord(
            paths[one.image],
            tuple(_question(line, next(ids)) for line in one.lines),
            _meta(one, split),
        )
        for one in images
    ]


def annotation_report(images: Sequence[AnnotatedImage], total: int) -> dict[str, Any]:
    """The content of annotation.json.

    Args:
        images: The annotated images.
        total: Number of images in the folder.

    Returns:
        Counts, agreement, and the annotations of every image, as plain data.
    """
    return {
        "schema": 1,
        "images": total,
        "annotated": len(images),
        "open": sum(bool(one.open) for one in images),
        "human": list(dict.fromkeys(name for one in images for name in one.by_annotator)),
        "metrics": agreement(images),
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


def identify_build(gallery: CheckedImages, split: str) -> BuildIdentity:
    """The identity of the build. Annotations are not part of it: later ones complete the same folder.

    Args:
        gallery: The images of the folder.
        split: 'test' or 'dev'.

    Returns:
        The identity.
    """
    images = fingerprint({name: file.digest for name, file in gallery.files.items()})
    return build_identity(KIND, {"split": split, "images": images})


def write_annotations(
    images: Sequence[AnnotatedImage],
    gallery: CheckedImages,
    split: str,
    out: Path,
    *,
    force: bool = False,
) -> BuildManifest:
    """Write the annotated images as a data folder: SPLIT.json, questions.csv, annotation.json, images/,
    manifest.

    questions.csv holds the same questions for `build verify`. Images with an undecided label are left out.

    Args:
        images: The annotated images.
        gallery: The images of the folder.
        split: 'test' or 'dev'.
        out: The output folder.
        force: Replace a folder that was built from other input.

    Returns:
        The manifest.

    Raises:
        UserError: No image is left, or the folder contains something else; nothing is written.
    """
    settled = [one for one in images if not one.open]
    dropped = {
        **gallery.broken,
        **dict.fromkeys(gallery.files, "no annotation"),
        **{one.image: f"annotators disagree on {', '.join(one.open)}" for one in images},
    }
    for one in settled:
        del dropped[one.image]
    if not settled:
        raise everything_dropped(dropped, "images")
    paths = output_paths(gallery.files)
    records = iibench_records(settled, paths, split)
    copied = {paths[one.image]: gallery.files[one.image] for one in settled}
    contents = Contents(
        groups=len(records),
        probes=sum(len(record.questions) for record in records),
        files={
            f"{split}.json": indented_json(records),
            TABLE: _table(settled, paths),
            REPORT: indented_json(annotation_report(images, len(gallery.files))),
        },
        sources={path: file.digest for path, file in copied.items()},
        dropped=dropped,
    )
    identity = identify_build(gallery, split)
    return write_folder(out, identity, contents, copied, manifest=BuildManifest, force=force)


def _question(line: FormLine, name: str) -> IIBenchQuestion:
    right = line.options[SIX_LETTERS.index(line.answer)]
    return IIBenchQuestion(name, line.cells["question"], line.options, line.answer, right)


def _meta(one: AnnotatedImage, split: str) -> ImageMetadata:
    values = {label: one.decided(label) or () for label in LABELS}
    types = values["image_type"]
    return ImageMetadata(
        domain=values["domain"][0],
        emotion=values["emotion"][0],
        # The release writes a single image type as a text in dev, and as a list in test.
        image_type=types[0] if split == "dev" and len(types) == 1 else types,
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
