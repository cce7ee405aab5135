"""Items of table lines: triplets of ConTextual's layout, questions of II-Bench, or any other table."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from sightline.annotation.sources.images import FolderImages
from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.sources.table_lines import TableLine, read_table_lines
from sightline.annotation.types import Item
from sightline.scoring.multiple_choice import SIX_LETTERS

BY = "by"
"""The column with the author of a line."""

BLIND, REVIEW = "blind", "review"
"""The phases of a review: the reviewer answers first, and sees the right option afterwards."""


def table_items(request: SourceRequest) -> MadeItems:
    """Make an item of each line of tables; of two, where reviewers answer the question blind first."""
    paths = [Path(source) for source in request.sources]
    lines = read_table_lines(paths)
    folder = Path(os.path.commonpath([str(path.resolve().parent) for path in paths]))
    images = FolderImages(folder)
    images.add(os.path.abspath(line.image.path) for line in lines if line.image)
    items = [_item(line, images) for line in lines]
    phases = [phase.name for phase in request.task.phases]
    if BLIND in phases:
        items = [*map(_blind, items), *(replace(item, phase=REVIEW) for item in items)]
    return MadeItems(items, "", images.notes(), str(folder))


def _item(line: TableLine, images: FolderImages) -> Item:
    found = images.found([os.path.abspath(line.image.path)]) if line.image else ()
    author = line.cells.get(BY, "").strip()
    return Item(
        0,
        texts=_texts(line.cells),
        images={"image": found} if found else {},
        cluster=found[0].digest if found else line.key,
        stratum=line.cells.get("category", ""),
        group=line.key,
        authors=(author,) if author else (),
        hidden={"line": line.key, "round": str(line.round)},
    )


def _texts(cells: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Column -> cell; the columns A to F are the options, and `answer` is the letter of the right one."""
    texts: dict[str, tuple[str, ...]] = {
        name: (text,) for name, text in cells.items() if text and name not in (BY, *SIX_LETTERS)
    }
    options = [cells[letter] for letter in SIX_LETTERS if cells.get(letter)]
    if options:
        texts["options"] = tuple(options)
        letter = cells.get("answer", "").strip().upper()
        if letter in SIX_LETTERS and SIX_LETTERS.index(letter) < len(options):
            texts["right option"] = (f"({letter}) {options[SIX_LETTERS.index(letter)]}",)
    return texts


def _blind(item: Item) -> Item:
    """The item without what gives the answer away."""
    shown: Sequence[str] = ("question", "options")
    texts = {name: item.texts[name] for name in shown if name in item.texts}
    return replace(item, texts=texts, phase=BLIND)
