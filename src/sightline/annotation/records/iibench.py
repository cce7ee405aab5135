"""Records in II-Bench's layout, of what authors wrote about images (II-Bench 3.2, appendix B.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.judgements import judgements
from sightline.annotation.records.iibench_lines import faults, form_lines
from sightline.annotation.records.request import RecordsRequest
from sightline.builders.annotate import TABLE, group_by_image, write_annotations
from sightline.builders.checked_images import check_images
from sightline.escaping import for_csv_lines
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes
from sightline.types import ImageRef

FOLDER, SPLIT, LEFT_OUT = "data", "test", "left_out.csv"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write test.json, questions.csv for the review, the images and the agreement on labels.

    What an author wrote with a fault, such as two equal options, is left out, and listed in left_out.csv.

    Args:
        request: The project and the folder.

    Yields:
        The files, and what they hold.

    Raises:
        UserError: The authors disagree on the labels of all images.
    """
    folder = request.state.project.data
    paths = {image.path for item in request.state.items.values() for image in item.images["image"]}
    gallery = check_images({path: ImageRef(str(Path(folder) / path), folder) for path in sorted(paths)})
    lines = []
    left_out = [["item", "image", "author", "fault"]]
    for one in judgements(request.state, request.annotators):
        image = one.item.images["image"][0].path
        found = [str(fault) for fault in faults(one.item, one.entry.values)]
        if image not in gallery.files:
            found.append("the image cannot be read")
        left_out += [[str(one.item.number), image, one.name, fault] for fault in found]
        if not found:
            lines += form_lines(one.item, one.name, one.entry.values)
    path = request.out / LEFT_OUT
    write_atomically(path, [csv_bytes([[*map(for_csv_lines, row)] for row in left_out])])
    named = ", ".join(dict.fromkeys(f"item {row[0]} by {row[2]}" for row in left_out[1:]))
    yield path, f"left out for their faults: {named}" if named else "nothing was left out"
    if not lines:
        return
    out = request.out / FOLDER
    manifest = write_annotations(group_by_image(lines), gallery, SPLIT, out, force=True)
    yield out / f"{SPLIT}.json", f"{manifest.probes:,} questions about {manifest.groups:,} images"
    yield out / TABLE, "the same questions, for `annotate new review`"
