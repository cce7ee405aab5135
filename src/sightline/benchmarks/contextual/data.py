"""ConTextual's released tables: instructions about images on the web, some of them with a reference."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.contextual.folder import (
    ANSWER,
    COLUMNS,
    IMAGE,
    NAME,
    SYNTHETIC,
    image_path,
    table_name,
)
from sightline.benchmarks.records import data_folder, refuse_doubles
from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes
from sightline.formats.tables import read_table, table_rows
from sightline.types import ImageRef, Labels, Sample

SPLITS = ("test", "val", SYNTHETIC)

MISCELLANEOUS = "Miscellaneous Natural Scenes"
"""The category that the tables hold in two parts, SOURCES."""

SOURCES = ("stvqa", "estvqa")

SCENES: Mapping[str, str] = {
    **dict.fromkeys(("shopping", "navigation-transportation", MISCELLANEOUS), "natural"),
    **dict.fromkeys(("time", "abstract", "app", "web", "infographics"), "digital"),
}
"""Which scenes a category holds (Appendix G.2)."""

EXAMPLES = 8
"""Solved instances that are drawn from val: the most that a few-shot setting shows (Appendix D)."""


class SolvedExample(Struct, frozen=True):
    """A solved instance that is shown before the question."""

    image_url: str
    instruction: str
    response: str


class ContextualRecord(Struct, frozen=True):
    """One released line, its reference where there is one, and the examples that are shown with it."""

    image_url: str
    instruction: str
    category: str
    response: str = ""
    examples: tuple[SolvedExample, ...] = ()


class Shots(Struct, frozen=True):
    """How many of the drawn examples are shown; `held_out` leaves all of them out of the samples, shown or
    not. `seed` draws them."""

    shown: int = 0
    held_out: bool = False
    seed: int = 0


def read_samples(
    folder: Path | None, split: str, shots: Shots, answers: str | None = None, labels: str | None = None
) -> list[Sample]:
    """The instances of a split, in their order; a sample's `record` is a ContextualRecord, its id the
    image's url.

    The nth instance of one image has '#n' behind its id, from the second on. References on test are those
    of the same instances in val, where the folder has it, and of the file `answers`; `labels` is a file of
    tasks. Raises UserError with file and record where one is wrong.
    """
    place = data_folder(folder, NAME, table_name(split))
    files = {name: place / table_name(name) for name in SPLITS}
    tables = {name: _read(file, solved=name != "test") for name, file in files.items() if file.is_file()}
    solved = {(one.image_url, one.instruction): one for one in tables.get("val", {}).values()}
    known = {name for table in tables.values() for name in table}
    given = _by_url(answers, ANSWER, known)
    tasks = _by_url(labels, "task", known)
    drawn = _drawn(place, list(solved.values()), shots) if shots.shown or shots.held_out else []
    left_out = {(one.image_url, one.instruction) for one in drawn}
    samples = []
    for name, record in tables[split].items():
        asked = record.image_url, record.instruction
        if asked in left_out:
            continue
        reference = given.get(name) or record.response or solved.get(asked, record).response
        samples.append(
            Sample(
                id=name,
                question=record.instruction,
                images=(image_of(record, place),),
                references=(reference,) if reference.strip() else (),
                labels=_labels(record.category, tasks.get(name)),
                record=replace(record, response=reference, examples=tuple(drawn[: shots.shown])),
            )
        )
    return samples


def image_of(shown: ContextualRecord | SolvedExample, place: Path | str) -> ImageRef:
    """The image of a line in the data folder `place`."""
    return ImageRef(str(Path(place) / image_path(shown.image_url)), str(place))


def _read(path: Path, *, solved: bool) -> dict[str, ContextualRecord]:
    """The lines of a table by id; `solved` says that they have responses."""
    table = read_table(read_bytes(path), path)
    for column in COLUMNS if solved else _NEEDED:
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected="the released layout")
    records: dict[str, ContextualRecord] = {}
    asked: set[tuple[str, str]] = set()
    times: defaultdict[str, int] = defaultdict(int)
    urls: dict[str, str] = {}
    for where, row in table_rows(table, path):
        record = msgspec.convert({name: row[name] for name in row.keys() & set(COLUMNS)}, ContextualRecord)
        for column in _NEEDED:
            if not row[column].strip():
                raise UserError("is blank", file=path, record=where, field=column)
        if (record.image_url, record.instruction) in asked:
            raise UserError("this instance occurs twice", file=path, record=where, found=record.image_url)
        asked.add((record.image_url, record.instruction))
        _refuse_shared_image(urls, record.image_url, path, where)
        times[record.image_url] += 1
        number = times[record.image_url]
        records[record.image_url if number == 1 else f"{record.image_url}#{number}"] = record
    return records


_NEEDED = tuple(column for column in COLUMNS if column != ANSWER)


def _refuse_shared_image(urls: dict[str, str], url: str, path: Path, where: str) -> None:
    """Raise UserError where two urls name one file, as those of two hosts may."""
    other = urls.setdefault(image_path(url), url)
    if other != url:
        raise UserError(
            "the image would lie where that of another url does",
            file=path,
            record=where,
            field=IMAGE,
            found=f"{url} and {other}",
            expected="urls with paths that differ",
        )


def _drawn(place: Path, solved: Sequence[ContextualRecord], shots: Shots) -> list[SolvedExample]:
    """The drawn examples; the first 2 are those of two shots, the first 4 those of four."""
    usable = [one for one in solved if one.response.strip()]
    if len(usable) < EXAMPLES:
        raise UserError(
            f"has {len(usable)} instances with a response",
            file=place / table_name("val"),
            expected=f"{EXAMPLES} at least, of which the few-shot settings draw their examples",
        )
    chosen = random.Random(f"contextual examples {shots.seed}").sample(usable, EXAMPLES)
    return [SolvedExample(one.image_url, one.instruction, one.response) for one in chosen]


def _labels(category: str, task: str | None) -> Labels:
    """Category, source and scene of a released category, and the task where it is known."""
    merged = MISCELLANEOUS if category in SOURCES else category
    labels = {"category": merged}
    if category in SOURCES:
        labels["source"] = category
    if merged in SCENES:
        labels["scene"] = SCENES[merged]
    return {**labels, "task": task} if task else labels


def _by_url(file: str | None, field: str, known: Collection[str]) -> dict[str, str]:
    """Sample id -> text, from a table or records of image_url and `field`, or a JSON object {id: text}.

    Blank texts are left out. UserError for what is no text, and for an id that no table of the data has.
    """
    if file is None:
        return {}
    path = Path(file)
    pairs = _pairs(path, field)
    refuse_doubles(path, [name for name, _ in pairs if isinstance(name, str)])
    for name, text in pairs:
        if not isinstance(name, str) or name not in known:
            raise UserError("is no instance of the data", file=path, record=name, field=IMAGE)
        if not isinstance(text, str):
            raise UserError(
                "is not a text", file=path, record=name, field=field, found=text, expected="a text"
            )
    return {name: text for name, text in pairs if text.strip()}


def _pairs(path: Path, field: str) -> list[tuple[Any, Any]]:
    content = read_bytes(path)
    if content.lstrip()[:1] in (b"{", b"["):
        rows = json_records(content, path)
        if len(rows) == 1 and IMAGE not in rows[0][1]:
            return list(rows[0][1].items())
    else:
        rows = table_rows(read_table(content, path), path)
    return [(row.get(IMAGE), row.get(field)) for _, row in rows]
