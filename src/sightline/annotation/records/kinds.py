"""The kinds of records that projects produce: who writes each, and who checks values before they are kept."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sightline.annotation.task import Records
from sightline.annotation.types import Item, Values
from sightline.errors import UserError

if TYPE_CHECKING:
    from sightline.annotation.records.request import RecordsRequest

Written = Iterator[tuple[Path, str]]
"""Each file, and what it holds."""

WRITERS: dict[Records, str] = {
    "images": "sightline.annotation.records.images",
    "captions": "sightline.annotation.records.captions",
    "table-lines": "sightline.annotation.records.table_lines",
    "questions": "sightline.annotation.records.questions",
    "codis": "sightline.annotation.records.codis",
    "iibench": "sightline.annotation.records.iibench",
    "contextual": "sightline.annotation.records.contextual",
}
"""Kind of records -> the module with the function `write`."""

PROPOSALS: dict[Records, str] = {"iibench": "sightline.annotation.records.iibench_lines"}
"""Kind of records -> the module with the function `proposals`, for kinds that a folder can hold already."""

CHECKS: dict[Records, str] = {"iibench": "sightline.annotation.records.iibench_lines"}
"""Kind of records -> the module with the function `faults`, for kinds that values can be unfit for."""


def write_records(kind: Records, request: RecordsRequest) -> Written:
    """Write the records of a project."""
    write = importlib.import_module(WRITERS[kind]).write
    return cast("Callable[[RecordsRequest], Written]", write)(request)


def proposals(kind: Records, folder: Path, split: str) -> Mapping[str, Values]:
    """Read the records that a folder of images holds already."""
    if kind not in PROPOSALS:
        return {}
    read = importlib.import_module(PROPOSALS[kind]).proposals
    return cast(Callable[[Path, str], Mapping[str, Values]], read)(folder, split)


def record_faults(kind: Records, item: Item, values: Values) -> Iterator[UserError]:
    """Find what would keep an annotator's values out of the records."""
    if kind not in CHECKS:
        return iter(())
    faults = importlib.import_module(CHECKS[kind]).faults
    return cast(Callable[[Item, Values], Iterator[UserError]], faults)(item, values)
