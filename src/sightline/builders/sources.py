"""Sources: the images that builders work on, with their questions and references, from folders and tables."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from sightline.builders.image_io import SUFFIXES
from sightline.builders.source_ids import ids_of
from sightline.decoding import UNDECODABLE, Records, json_records, unknown_field
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.image_paths import is_below
from sightline.formats.tables import RawTable, read_table, table_rows
from sightline.scoring.letters import LETTERS
from sightline.types import Labels

IMAGE = ("image", "picture")
OPTIONS = "options"
ANSWERS = ("answer", "answers", "reference", "references")


class SourceItem(Struct, frozen=True):
    """An image to work on.

    All fields but `image` and `root` are part of the fingerprint that identifies finished work; the image
    counts by its content.

    Attributes:
        question: Its question, '' for none.
        options: The options of its question, () for none.
        root: The folder that the image may not leave, not even by a link ('' for none).
    """

    id: str
    image: str
    references: tuple[str, ...] = ()
    question: str = ""
    labels: Labels = field(default_factory=dict)
    record: Any = None
    root: str = ""
    options: tuple[str, ...] = ()


def folder_sources(folder: Path) -> list[SourceItem]:
    """List the images in a folder and below, in the order of their paths.

    If the images lie in two folders or more, as in MIT Indoor-67, the name of an image's folder is its
    reference and its label `class`; underscores become spaces, and percent-encoding is decoded. Images that
    lie in one folder, or beside the class folders, have no reference.
    """
    paths = images_below(folder)
    if not paths:
        raise UserError("contains no image", file=folder, expected=f"files that end in {', '.join(SUFFIXES)}")
    inside = [os.path.dirname(path) for path in paths]
    classes = set(inside) - {""}
    sources = []
    for path, name, parent in zip(paths, ids_of(paths), inside, strict=True):
        name_of_class = decode_place_name(os.path.basename(parent)) if parent and len(classes) > 1 else ""
        labels: Labels = {"class": name_of_class} if name_of_class else {}
        sources.append(
            SourceItem(
                name,
                str(folder / path),
                (name_of_class,) if name_of_class else (),
                labels=labels,
                root=str(folder),
            )
        )
    return sources


def table_sources(path: Path, images: Path | None = None) -> list[SourceItem]:
    """Read the records of a CSV, JSON Lines or JSON list.

    The columns are image, and optionally id, question, answer(s), reference(s). A cell may hold a JSON list
    of answers. Records about one image get numbered ids. A missing image is dropped later, when it is used.
    """
    root = images or path.parent
    content = read_bytes(path)
    rows = (
        json_records(content, path)
        if content.lstrip()[:1] in (b"{", b"[")
        else table_rows(with_columns(read_table(content, path), path), path)
    )
    paths = [_image_path(row, where, path, root) for where, row in rows]
    for where, row in rows:
        _refuse_unknown(row, path, where)
    ids = _ids_in_table(rows, path) or ids_of(paths)
    return [
        SourceItem(
            id=name,
            image=str(root / path_in_root),
            references=_references(row, where, path),
            question=_text(row.get("question"), where, "question", path),
            root=str(root),
            options=_options(row, where, path),
        )
        for (where, row), path_in_root, name in zip(rows, paths, ids, strict=True)
    ]


def decode_place_name(name: str) -> str:
    """Decode the name of a place.

    Args:
        name: A URL of Wikimedia Commons, or a name with underscores and percent-encoding.

    >>> decode_place_name("http://commons.wikimedia.org/wiki/Category:Vl%C4%8D%C3%AD_d%C5%AFl")
    'Vlčí důl'
    >>> decode_place_name("concert_hall")
    'concert hall'
    """
    bare = re.sub(r"^https?://commons\.wikimedia\.org/wiki/Category:", "", name.strip())
    with contextlib.suppress(UnicodeDecodeError):
        bare = unquote(bare, errors="strict")
    return " ".join(bare.replace("_", " ").split())


def confined(name: str, path: Path, record: object, field: str, root: Path | None = None) -> str:
    """Check that an image's path stays below the folder of images."""
    if not is_below(name):
        raise UserError(
            f"is outside {root or 'the folder of images'}",
            file=path,
            record=record,
            field=field,
            found=name,
            expected="a path inside that folder",
        )
    return Path(os.path.normpath(name)).as_posix()


def refuse_duplicate_ids(sources: Sequence[SourceItem]) -> None:
    image_of: dict[str, str] = {}
    for source in sources:
        if source.id in image_of:
            raise UserError(
                "two sources have this id",
                record=source.id,
                found=f"{image_of[source.id]} and {source.image}",
                expected="distinct ids",
            )
        image_of[source.id] = source.image


def images_below(folder: Path) -> list[str]:
    images = []
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(parent).relative_to(folder)
        images += [
            (inside / name).as_posix()
            for name in files
            if name.lower().endswith(SUFFIXES) and not name.startswith(".")
        ]
    return sorted(images)


def _ids_in_table(rows: Records, path: Path) -> list[str]:
    """The ids of a table with a column id, else nothing; UserError if an id is missing or occurs twice."""
    if not any("id" in row for _, row in rows):
        return []
    line_of: dict[str, str] = {}
    for where, row in rows:
        name = _text(row.get("id"), where, "id", path)
        if not name:
            raise UserError("is missing", file=path, record=where, field="id", expected="an id as elsewhere")
        if name in line_of:
            raise UserError(
                f"occurs in {line_of[name]} already",
                file=path,
                record=where,
                field="id",
                found=name,
                expected="each id once",
            )
        line_of[name] = where
    return ids_of(list(line_of))


def with_columns(table: RawTable, path: Path, *needed: str) -> RawTable:
    twice = [name for name, count in Counter(table.header).items() if count > 1]
    if twice:
        raise UserError("occurs twice in the header", file=path, field=twice[0], expected="each column once")
    for name in needed:
        if name not in table.header:
            raise UserError("is missing", file=path, field=name, found=table.header, expected="that column")
    return table


def _refuse_unknown(fields: Iterable[str], path: Path, where: str) -> None:
    """Raise UserError for a field that nothing reads, such as a misspelled one."""
    known = (*IMAGE, "id", "question", OPTIONS, *ANSWERS)
    for name in fields:
        if name not in known:
            raise unknown_field(name, known, path, where)


def _image_path(row: Mapping[str, Any], where: str, path: Path, root: Path) -> str:
    """The path of a record's image relative to the root; UserError if there is none or it leaves the root."""
    column = next((name for name in IMAGE if name in row), None)
    if column is None:
        raise UserError(
            "is missing", file=path, record=where, field="image", found=list(row), expected="an image's path"
        )
    name = _text(row[column], where, column, path)
    if not name or "\0" in name:
        raise UserError("names no image", file=path, record=where, field=column, found=row[column])
    return confined(name, path, where, column, root)


def _references(row: Mapping[str, Any], where: str, path: Path) -> tuple[str, ...]:
    answers: list[str] = []
    for name in ANSWERS:
        value = row.get(name)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = _list_in_cell(value)
        listed = value if isinstance(value, list) else [value]
        answers += [_text(one, where, name, path) for one in listed]
    return tuple(dict.fromkeys(one for one in answers if one))


def _options(row: Mapping[str, Any], where: str, path: Path) -> tuple[str, ...]:
    value = row.get(OPTIONS)
    if value is None or value == "":
        return ()
    listed = _list_in_cell(value) if isinstance(value, str) else value
    if not isinstance(listed, list) or not 2 <= len(listed) <= len(LETTERS):
        raise UserError(
            "is not a list of options",
            file=path,
            record=where,
            field=OPTIONS,
            found=value,
            expected=f"a JSON list of 2 to {len(LETTERS)} texts",
        )
    return tuple(_text(one, where, OPTIONS, path) for one in listed)


def _list_in_cell(cell: str) -> Any:
    """The JSON list in a cell; the cell itself if it is no JSON, such as '[sic]'."""
    try:
        return msgspec.json.decode(cell)
    except UNDECODABLE:
        return cell


def _text(value: Any, where: str, name: str, path: Path) -> str:
    # Python's json writes an empty cell of a data frame as NaN.
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UserError("is not a text", file=path, record=where, field=name, found=value, expected="text")
    return str(value).strip()
