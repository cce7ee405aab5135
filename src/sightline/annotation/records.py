"""The kinds of records that projects produce: who writes each, and who checks values before they are kept."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from sightline.annotation.decisions import Decision, decide, settlers
from sightline.annotation.state import State
from sightline.annotation.task import Records
from sightline.annotation.types import Annotator, Item, ItemImage, Values
from sightline.errors import UserError
from sightline.formats.files import file_digest

Written = Iterator[tuple[Path, str]]
"""Each file, and what it holds."""

WRITERS: dict[Records, str] = {
    "images": "sightline.annotation.record_tables:write_images",
    "captions": "sightline.annotation.record_tables:write_captions",
    "table-lines": "sightline.annotation.record_tables:write_table_lines",
    "questions": "sightline.annotation.record_tables:write_questions",
    "codis": "sightline.annotation.record_tables:write_codis",
    "iibench": "sightline.annotation.iibench_records:write",
    "contextual": "sightline.annotation.record_tables:write_contextual",
}
"""Kind of records -> the function that writes them."""

PROPOSALS: dict[Records, str] = {"iibench": "sightline.annotation.iibench_records:proposals"}
"""Kind of records -> the function `proposals`, for kinds that a folder can hold already."""

CHECKS: dict[Records, str] = {"iibench": "sightline.annotation.iibench_records:faults"}
"""Kind of records -> the function `faults`, for kinds that values can be unfit for."""


def write_records(kind: Records, request: RecordsRequest) -> Written:
    write = _named(WRITERS[kind])
    return cast("Callable[[RecordsRequest], Written]", write)(request)


def proposals(kind: Records, folder: Path, split: str) -> Mapping[str, Values]:
    if kind not in PROPOSALS:
        return {}
    read = _named(PROPOSALS[kind])
    return cast(Callable[[Path, str], Mapping[str, Values]], read)(folder, split)


def record_faults(kind: Records, item: Item, values: Values) -> Iterator[UserError]:
    """Find what would keep an annotator's values out of the records."""
    if kind not in CHECKS:
        return iter(())
    faults = _named(CHECKS[kind])
    return cast(Callable[[Item, Values], Iterator[UserError]], faults)(item, values)


def _named(entry: str) -> object:
    module, _, name = entry.partition(":")
    return cast(object, getattr(importlib.import_module(module), name))


# -- What a writer of records gets: the state of the project, its annotators, and the folder


class RecordsRequest(Struct, frozen=True):
    """A project whose records are written to a folder."""

    state: State
    annotators: Sequence[Annotator]
    out: Path

    def decision(self, item: Item) -> Decision:
        state = self.state
        return decide(state.project, item, state.of_item(item.number), settlers(self.annotators))

    def copy(self, image: ItemImage, name: str) -> None:
        """Copy an image of the project's data folder; raises UserError if it has changed or is gone."""
        source, target = Path(self.state.project.data) / image.path, self.out / name
        try:
            unchanged = file_digest(source) == image.digest
        except OSError:
            unchanged = False
        if not unchanged:
            raise UserError(
                "is not the image that the annotators saw", file=source, expected="the image as it was"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
