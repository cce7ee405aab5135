"""Triplets in ConTextual's layout, of what authors wrote about images (ConTextual 2.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.judgements import judgements
from sightline.annotation.records.request import RecordsRequest
from sightline.benchmarks.contextual.folder import COLUMNS, image_path, table_name
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes

FOLDER, SPLIT, TASKS = "data", "val", "tasks.csv"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the table with its images, and the labels of the tasks."""
    rows = [list(COLUMNS)]
    tasks = [["image_url", "task"]]
    for one in judgements(request.state, request.annotators):
        image, values = one.item.images["image"][0], one.entry.values
        name = f"images/{image.digest[:16]}{Path(image.path).suffix.lower()}"
        request.copy(image, f"{FOLDER}/{image_path(name)}")
        rows.append([name, *(str(values[column]) for column in ("instruction", "response", "category"))])
        if "task" in values:
            tasks.append([name, str(values["task"])])
    table = request.out / FOLDER / table_name(SPLIT)
    table.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(table, [csv_bytes(rows)])
    yield table, f"{len(rows) - 1:,} triplets"
    if len(tasks) > 1:
        write_atomically(request.out / FOLDER / TASKS, [csv_bytes(tasks)])
        yield request.out / FOLDER / TASKS, "extractive or math, for --set labels=FILE"
