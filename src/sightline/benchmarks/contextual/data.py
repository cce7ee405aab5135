"""Reads ConTextual's released tables: instructions about images on the web, some with a reference."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.released import data_folder, refuse_repeated_ids
from sightline.errors import UserError
from sightline.formats.files import read_bytes, text_digest
from sightline.formats.tables import read_table, table_rows
from sightline.text import json_records, unknown_field
from sightline.types import ImageRef, Labels, Sample

# -- ConTextual's data folder: its tables, their columns, and the path of a URL's image

NAME = "contextual"
"""The benchmark's name, and that of its folder of data."""

IMAGE, INSTRUCTION, ANSWER, CATEGORY = COLUMNS = ("image_url", "instruction", "response", "category")
"""The columns of the tables in the released order; the table of test has no answers."""

SYNTHETIC = "synthetic"
"""The split that `sightline build synthesize` writes; it is not part of the release."""

LONGEST_NAME = 200
"""The most characters of a file's or a folder's name; file systems allow 255 bytes."""

LONGEST_PATH = 1000

_ESCAPED = re.compile(r"%(?![0-9A-Fa-f]{2})|[^A-Za-z0-9._~%+=,@()-]|^\.+|\.$")
_RESERVED = re.compile(r"(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?=\.|$)")


def table_name(split: str) -> str:
    return f"contextual_{split}.csv"


def image_path(url: str) -> str:
    """Compute the path of a URL's image in the data folder: `images` and the URL's own path.

    Escapes (%2B) are kept, so that different URLs have different paths. Characters that could leave the
    folder, hide a file, or are not allowed on some file system are escaped too. A query is part of the name,
    a fragment is not. A text that is not a URL is a path in the folder already, as in synthetic data.

    >>> image_path("https://images.s3.amazonaws.com/time-images/clock%2B1.JPG")
    'images/time-images/clock%2B1.JPG'
    >>> image_path("https://h/a/../..//x.jpg?w=1"), image_path("images/val-001.png")
    ('images/a/%2E%2E/%2E%2E/%/x.jpg%3Fw=1', 'images/val-001.png')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return f"images/{_name(url)}"
    if not parts.scheme and not parts.netloc:
        return _within(url.partition("#")[0])
    query = f"?{parts.query}" if parts.query else ""
    path = "/".join(["images", *map(_name, (parts.path.removeprefix("/") + query).split("/"))])
    return path if len(path) <= LONGEST_PATH else f"images/{_digest(path)}"


def _within(path: str) -> str:
    """A path in the folder; steps out of the folder become names."""
    steps = [step for step in path.replace("\0", "%00").split("/") if step]
    return "/".join(_name(step) if step in (".", "..") else step for step in steps) or "%"


def _name(text: str) -> str:
    """A part of a URL's path as a name; '%' stands for an empty part only."""
    name = _ESCAPED.sub(_escape, text) or "%"
    name = _RESERVED.sub(lambda found: f"%{ord(found[0][0]):02X}{found[0][1:]}", name, count=1)
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME // 2]}~{_digest(name)}"


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _digest(text: str) -> str:
    return text_digest(text)[:32]


SPLITS = ("test", "val", SYNTHETIC)

MISCELLANEOUS = "Miscellaneous Natural Scenes"
"""The category that the tables split by source (SOURCES)."""

SOURCES = ("stvqa", "estvqa")

SCENES: Mapping[str, str] = {
    **dict.fromkeys(("shopping", "navigation-transportation", MISCELLANEOUS), "natural"),
    **dict.fromkeys(("time", "abstract", "app", "web", "infographics"), "digital"),
}
"""Category -> kind of scene (Appendix G.2)."""

EXAMPLES = 8
"""Solved instances that are sampled from val: the most that a few-shot setting uses (Appendix D)."""


class SolvedExample(Struct, frozen=True):
    """A solved instance in front of the question."""

    image_url: str
    instruction: str
    response: str


class ContextualRecord(Struct, frozen=True):
    """One released line with its reference, if there is one, and its few-shot examples."""

    image_url: str
    instruction: str
    category: str
    response: str = ""
    examples: tuple[SolvedExample, ...] = ()


class Shots(Struct, frozen=True):
    """The few-shot examples: how many are used, whether all are left out of the samples, their seed."""

    count: int = 0
    held_out: bool = False
    seed: int = 0


def read_samples(
    folder: Path | None, split: str, shots: Shots, answers: str | None = None, labels: str | None = None
) -> list[Sample]:
    """Read the instances of a split.

    The id of a sample is the URL of its image; from the second instance of one image on, '#n' is appended. On
    test, references come from the same instances in val, if the folder has it, and from `answers`.
    """
    folder = data_folder(folder, NAME, table_name(split))
    files = {name: folder / table_name(name) for name in SPLITS}
    tables = {name: _read(file, solved=name != "test") for name, file in files.items() if file.is_file()}
    solved = {(one.image_url, one.instruction): one for one in tables.get("val", {}).values()}
    ids = {name for table in tables.values() for name in table}
    references = _by_url(answers, ANSWER, ids)
    tasks = _by_url(labels, "task", ids)
    examples = _sample_examples(folder, list(solved.values()), shots) if shots.count or shots.held_out else []
    left_out = {(one.image_url, one.instruction) for one in examples}
    samples = []
    for name, record in tables[split].items():
        instance = record.image_url, record.instruction
        if instance in left_out:
            continue
        reference = references.get(name) or record.response or solved.get(instance, record).response
        samples.append(
            Sample(
                id=name,
                question=record.instruction,
                images=(image_of(record, folder),),
                references=(reference,) if reference.strip() else (),
                labels=_labels(record.category, tasks.get(name)),
                record=replace(record, response=reference, examples=tuple(examples[: shots.count])),
            )
        )
    return samples


def read_released(folder: Path | None, split: str) -> dict[str, list[str]]:
    """Read what was released of each instance: of test, the lines without responses."""
    table = table_name(split)
    solved = split != "test"
    return {
        name: [one.image_url, one.instruction, one.category, *([one.response] if solved else [])]
        for name, one in _read(data_folder(folder, NAME, table) / table, solved=solved).items()
    }


def image_of(line: ContextualRecord | SolvedExample, folder: Path | str) -> ImageRef:
    return ImageRef(str(Path(folder) / image_path(line.image_url)), str(folder))


def _read(path: Path, *, solved: bool) -> dict[str, ContextualRecord]:
    """The lines of a table by id; with `solved`, they have responses."""
    table = read_table(read_bytes(path), path)
    for column in COLUMNS if solved else _NEEDED:
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected="the released layout")
    for column in table.header:
        if column not in COLUMNS:
            raise unknown_field(column, COLUMNS, path, "line 1")
    records: dict[str, ContextualRecord] = {}
    instances: set[tuple[str, str]] = set()
    times: defaultdict[str, int] = defaultdict(int)
    urls: dict[str, str] = {}
    for where, row in table_rows(table, path):
        record = msgspec.convert({name: row[name] for name in row.keys() & set(COLUMNS)}, ContextualRecord)
        for column in _NEEDED:
            if not row[column].strip():
                raise UserError("is blank", file=path, record=where, field=column)
        if (record.image_url, record.instruction) in instances:
            raise UserError("this instance occurs twice", file=path, record=where, found=record.image_url)
        instances.add((record.image_url, record.instruction))
        _refuse_shared_image(urls, record.image_url, path, where)
        times[record.image_url] += 1
        number = times[record.image_url]
        records[record.image_url if number == 1 else f"{record.image_url}#{number}"] = record
    return records


_NEEDED = tuple(column for column in COLUMNS if column != ANSWER)


def _refuse_shared_image(urls: dict[str, str], url: str, path: Path, where: str) -> None:
    """Raise UserError if two URLs have one path, as those of two hosts may."""
    other = urls.setdefault(image_path(url), url)
    if other != url:
        raise UserError(
            "the image has the path of another URL's image",
            file=path,
            record=where,
            field=IMAGE,
            found=f"{url} and {other}",
            expected="URLs with different paths",
        )


def _sample_examples(folder: Path, solved: Sequence[ContextualRecord], shots: Shots) -> list[SolvedExample]:
    """The examples; the first 2 are those of two shots, the first 4 those of four."""
    usable = [one for one in solved if one.response.strip()]
    if len(usable) < EXAMPLES:
        raise UserError(
            f"has {len(usable)} instances with a response",
            file=folder / table_name("val"),
            expected=f"at least {EXAMPLES}, from which few-shot settings sample their examples",
        )
    chosen = random.Random(f"contextual examples {shots.seed}").sample(usable, EXAMPLES)
    return [SolvedExample(one.image_url, one.instruction, one.response) for one in chosen]


def _labels(category: str, task: str | None) -> Labels:
    """Category, source and scene of a released category, and the task if it is known."""
    merged = MISCELLANEOUS if category in SOURCES else category
    labels = {"category": merged}
    if category in SOURCES:
        labels["source"] = category
    if merged in SCENES:
        labels["scene"] = SCENES[merged]
    return {**labels, "task": task} if task else labels


def _by_url(file: str | None, field: str, ids: Collection[str]) -> dict[str, str]:
    """Sample id -> text, from a table or records of image_url and `field`, or a JSON object {id: text}.

    Blank texts are left out. Raises UserError if a value is not a text, or no table has the id.
    """
    if file is None:
        return {}
    path = Path(file)
    pairs = _pairs(path, field)
    refuse_repeated_ids(path, [name for name, _ in pairs if isinstance(name, str)])
    for name, text in pairs:
        if not isinstance(name, str) or name not in ids:
            raise UserError("is not an instance of the data", file=path, record=name, field=IMAGE)
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
