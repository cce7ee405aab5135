"""Records in II-Bench's layout, of what authors wrote about images (II-Bench 3.2, appendix B.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.annotation.judgements import judgements
from sightline.annotation.label_agreement import label_agreement
from sightline.annotation.records.iibench_data import (
    TABLE,
    AnnotatedImage,
    annotation_report,
    group_by_image,
    write_annotations,
)
from sightline.annotation.records.iibench_form import SPLIT, FormLine
from sightline.annotation.records.iibench_lines import faults, form_lines
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.task import RATER
from sightline.builders.checked_images import CheckedImages, check_images
from sightline.builders.manifest import indented_json
from sightline.escaping import for_csv_lines
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes
from sightline.types import ImageRef

FOLDER, REPORT, LEFT_OUT = "data", "annotation.json", "left_out.csv"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
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
