"""The accepted questions of a review as II-Bench's data folder, beside the verified table (II-Bench 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.records import table_lines
from sightline.annotation.records.iibench import FOLDER, write_data
from sightline.annotation.records.iibench_data import group_by_image
from sightline.annotation.records.iibench_form import FILLED, FormLine, find_faults
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.sources.table_items import BY
from sightline.benchmarks.contextual.folder import IMAGE
from sightline.builders.checked_images import check_images
from sightline.types import ImageRef


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the verified table; if its lines hold all that II-Bench's records need, the data folder, too."""
    reviewed = table_lines.reviewed_lines(request)
    yield from table_lines.write_verified(request, reviewed)
    accepted = [one.line for one in reviewed if one.accepted]
    if not all({IMAGE, *FILLED} <= line.cells.keys() for line in accepted):
        return
    verified = request.out / table_lines.FOLDER
    gallery = check_images(
        {line.cells[IMAGE]: ImageRef(str(verified / line.cells[IMAGE]), str(verified)) for line in accepted}
    )
    lines = [
        FormLine(line.cells[IMAGE], line.cells.get(BY, "").strip(), line.cells, Path(FOLDER), line.key)
        for line in accepted
    ]
    sound = [line for line in lines if not find_faults([line], gallery.files)]
    yield from write_data(request, group_by_image(sound), gallery)
