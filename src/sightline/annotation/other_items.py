"""Items of drafts, images, captions, table lines, and variants beside their originals."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.decisions import judgements
from sightline.annotation.iibench_records import PROPOSALS
from sightline.annotation.sources import (
    FolderImages,
    MadeItems,
    SourceRequest,
    label_of,
    read_probes,
    shown_images,
)
from sightline.annotation.state import State
from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Item, Values
from sightline.benchmarks.contextual.data import ANSWER, COLUMNS, IMAGE, image_path
from sightline.benchmarks.released import read_captions
from sightline.builders.equivalence import VariantPair, draw_pairs, read_pairs
from sightline.builders.sources import folder_sources
from sightline.errors import UserError
from sightline.formats.files import file_digest_or_error, json_digest, read_bytes
from sightline.formats.tables import read_table, table_rows
from sightline.scoring.options import SIX_LETTERS
from sightline.types import ImageRef, Probe, Sample, each_value


def draft_items(request: SourceRequest) -> MadeItems:
    """Make an item of each draft of a project; a draft that a former check accepted is left out."""
    store = AnnotationStore(request.store, time.time)
    rows = [store.project(name) for name in request.sources]
    states = []
    for row in rows:
        state = State(row.project, store.items(row.number)).advance(store.entries(row.number))
        states.append(state)
    if rows[0].project.task.records == "":
        raise UserError(
            "is no project of authors", found=request.sources[0], expected="a project of author-codis"
        )
    accepted = {
        item.hidden["draft"]
        for row, state in zip(rows[1:], states[1:], strict=True)
        for item, _ in _accepted(store, row.number, state)
    }
    items = [
        Item(
            0,
            texts={name: each_value(value) for name, value in one.entry.values.items()},
            images=one.item.images,
            cluster=one.item.cluster,
            authors=(one.name,),
            hidden={"draft": draft_name(one.item.number, one.entry.values), "item": str(one.item.number)},
        )
        for one in judgements(states[0], store.annotators(rows[0].number))
    ]
    items = [item for item in items if item.hidden["draft"] not in accepted]
    return MadeItems(items, rows[0].project.benchmark, [], rows[0].project.data)


def draft_name(item: int, values: Values) -> str:
    """Name a draft by its item and content, so that a check does not outlive a revision."""
    from sightline.formats.files import json_digest

    return f"{item}-{json_digest(sorted(values.items()))[:16]}"


def _accepted(store: AnnotationStore, number: int, state: State) -> list[tuple[Item, str]]:
    from sightline.annotation.decisions import decided

    values = decided(state, store.annotators(number))
    return [(state.items[item], value) for item, value in values.items() if value == "yes"]


# -- Items of images: those of a folder, and those whose caption is checked


def image_items(request: SourceRequest) -> MadeItems:
    """Make an item of each image of a folder, or one for each pair that authors may write about it.

    Authors see the records that the folder holds already, to correct them.
    """
    if len(request.sources) != 1 or not Path(request.sources[0]).is_dir():
        raise UserError(
            "one folder of images is needed",
            found=", ".join(request.sources),
            expected="annotate new TASK FOLDER",
        )
    folder = Path(request.sources[0])
    paths = [os.path.relpath(source.image, folder) for source in folder_sources(folder)]
    images = FolderImages(folder)
    images.add(paths)
    read = PROPOSALS.get(request.task.records)
    known = read(folder, request.split) if read else {}
    items = [
        Item(
            0,
            images={"image": found},
            cluster=found[0].digest,
            # A folder of images is a category, which `invite --stratum` assigns to authors.
            stratum=path.rpartition(os.sep)[0],
            proposal=known.get(path, {}),
            hidden={"image": path, **({"pair": str(pair + 1)} if request.pairs > 1 else {})},
        )
        for pair in range(request.pairs)
        for path in paths
        if (found := images.found([path]))
    ]
    return MadeItems(items, "", images.notes(), str(folder.resolve()))


def caption_items(request: SourceRequest) -> MadeItems:
    """Make an item of each question about an image that has a caption, with its contexts (CODIS 5.1)."""
    if len(request.sources) != 2:
        found = ", ".join(request.sources)
        raise UserError(
            "a benchmark and a file of captions are needed", found=found, expected="codis captions.json"
        )
    captions = read_captions(request.sources[1], True)
    asked = read_probes(replace(request, sources=request.sources[:1]))
    folder = request.folder("the images of the captions")
    probes: dict[tuple[str, str], list[tuple[Sample, Probe]]] = defaultdict(list)
    for sample, probe in asked.probes:
        for ref in shown_images(sample, probe)[:1]:
            probes[ref.path, sample.id].append((sample, probe))
    images = FolderImages(folder)
    images.add(dict.fromkeys(path for path, _ in probes))
    items = [
        Item(
            0,
            texts={
                "caption": (captions[name],),
                "question": tuple(dict.fromkeys(probe.question for _, probe in about)),
                "context": tuple(dict.fromkeys(probe.context for _, probe in about if probe.context)),
            },
            images={"image": images.found([path])},
            cluster=path,
            stratum=label_of(about[0][1].labels, request.by),
            hidden={"image": name, "caption": captions[name], "sample": sample},
        )
        for (path, sample), about in probes.items()
        if (name := os.path.basename(path)) in captions
    ]
    if not items:
        raise UserError(
            "no caption is of an image of the benchmark",
            file=request.sources[1],
            found=f"{len(captions):,} captions",
        )
    return MadeItems(items, asked.name, images.notes(), str(folder.resolve()))


# -- Items of table lines: triplets of ConTextual's layout, questions of II-Bench, or any other table

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
    items = [_table_item(line, images) for line in lines]
    phases = [phase.name for phase in request.task.phases]
    if BLIND in phases:
        items = [*map(_blind, items), *(replace(item, phase=REVIEW) for item in items)]
    return MadeItems(items, "", images.notes(), str(folder))


def _table_item(line: TableLine, images: FolderImages) -> Item:
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


# -- The lines of tables that humans verify: triplets, questions, or those of any other table

REVIEW_COLUMNS = ("round", "right", "wrong", "remarks")
"""Additional columns of rejected.csv for its reviser; they are not part of the line."""


class TableLine(Struct, frozen=True):
    """A line of a table."""

    key: str
    cells: Mapping[str, str]
    round: int = 1
    image: ImageRef | None = None


def read_table_lines(paths: Sequence[Path]) -> list[TableLine]:
    """Read the lines of tables with the same columns.

    A line of a revised rejected.csv is in the next round; an unchanged line is the line that it was. Images
    are next to any of the tables.
    """
    lines: dict[str, TableLine] = {}
    columns: tuple[str, ...] = ()
    for path in paths:
        table = read_table(read_bytes(path), path)
        reviewed = set(REVIEW_COLUMNS) <= set(table.header)
        own = tuple(name for name in table.header if not (reviewed and name in REVIEW_COLUMNS))
        # II-Bench's questions.csv names its images in the same column.
        if set(COLUMNS) - set(own) == {ANSWER}:
            raise UserError("lacks a column", file=path, field=ANSWER, expected=", ".join(COLUMNS))
        columns = columns or own
        if own != columns:
            expected = f"the columns of {paths[0]}"
            raise UserError("has other columns", file=path, found=", ".join(own), expected=expected)
        keys: set[str] = set()
        for where, row in table_rows(table, path):
            cells = {name: row[name] for name in columns}
            key = json_digest(cells)[:16]
            if key in keys:
                raise UserError("occurs twice", file=path, record=where, expected="each line once")
            keys.add(key)
            number = _round(row, where, path) if reviewed else 1
            folders = [path.parent, *(other.parent for other in paths)]
            lines.setdefault(key, TableLine(key, cells, number, _image(cells, folders)))
    if not lines:
        raise UserError("contains no line", file=paths[0], expected="at least one line below the header")
    _refuse_other_images(lines.values())
    return list(lines.values())


def _round(row: Mapping[str, str], where: str, path: Path) -> int:
    """The round after the one in which a line was rejected."""
    number = row["round"].strip()
    if not number.isdecimal():
        raise UserError(
            "is not a round number",
            file=path,
            record=where,
            field="round",
            found=number,
            expected="1, 2, ...",
        )
    return int(number) + 1


def _image(cells: Mapping[str, str], folders: Sequence[Path]) -> ImageRef | None:
    """The image of a line in ConTextual's layout, in the first folder that has it."""
    url = cells.get(IMAGE)
    if not url:
        return None
    candidates = [ImageRef(str(folder / image_path(url)), str(folder)) for folder in folders]
    return next((one for one in candidates if Path(one.path).is_file()), candidates[0])


def _refuse_other_images(lines: Iterable[TableLine]) -> None:
    """Refuse different images with one path in the folder, which cannot hold both."""
    path_of: dict[str, str] = {}
    for line in lines:
        if line.image is None:
            continue
        path, target = line.image.path, image_path(line.cells[IMAGE])
        other = path_of.setdefault(target, path)
        if other != path and file_digest_or_error(other) != file_digest_or_error(path):
            raise UserError(
                f"differs from the image {other}",
                file=Path(path),
                record=line.cells[IMAGE],
                field=IMAGE,
                expected="one image of that name, or verify each table separately",
            )


# -- Items of an original and its variant: do both mean the same (MM-R3, section 3.2)?

PAIRS = 100
"""The pairs that the paper drew, at most one of a group."""


def variant_pair_items(request: SourceRequest) -> MadeItems:
    """Make an item of each drawn pair of a built folder."""
    if len(request.sources) != 1:
        found = ", ".join(request.sources)
        raise UserError("one folder is needed", found=found, expected="a folder of `sightline build`")
    folder = Path(request.sources[0])
    pairs = draw_pairs(read_pairs(folder), request.count or PAIRS, request.seed)
    images = FolderImages(folder)
    images.add(path for pair in pairs if pair.kind == "image" for path in _paths(pair))
    items = [_variant_item(pair, images) for pair in pairs]
    return MadeItems(items, "", images.notes(), str(folder.resolve()), sampled=True)


def _variant_item(pair: VariantPair, images: FolderImages) -> Item:
    is_text = pair.kind == "text"
    return Item(
        0,
        texts={"original": (pair.first,), "variant": (pair.second,)} if is_text else {},
        images={}
        if is_text
        else dict(zip(("first", "second"), map(images.found, _split(pair)), strict=True)),
        cluster=pair.cluster,
        stratum=pair.variant,
        group=pair.group,
        targets=pair.targets,
        variant=pair.variant,
        hidden={"sample": pair.group},
    )


def _split(pair: VariantPair) -> tuple[list[str], list[str]]:
    return pair.first.split(", "), pair.second.split(", ")


def _paths(pair: VariantPair) -> list[str]:
    return [str(Path(path).absolute()) for side in _split(pair) for path in side]
