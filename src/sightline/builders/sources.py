"""The images that a builder works on, and what is known of each: folders, tables, lists of places."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from sightline.builders.image_io import SUFFIXES
from sightline.builders.source_ids import ids_of
from sightline.errors import UserError
from sightline.formats.files import Records, json_records, read_bytes
from sightline.formats.tables import RawTable, read_table, table_rows
from sightline.images import BadImage
from sightline.types import Labels

IMAGE = ("image", "image")
ANSWERS = ("answer", "answers", "reference", "references")
LANDMARK = ("landmark_id", "landmark")


class SourceItem(Struct, frozen=True):
    """An image to be worked on, and what is known of it.

    `id` is its group's: unique, and safe as a file name. `image` is a path on disk, `references` answers
    any of which is right. `record` is what one builder needs beyond that (an annotation), in plain builtins.
    `root` is the folder that the image may not leave, by a link either ('' for none): one that does is
    dropped. All but `image` and `root` are part of the fingerprint by which finished work is known again;
    the image counts by its content.
    """

    id: str
    image: str
    references: tuple[str, ...] = ()
    question: str = ""
    labels: Labels = field(default_factory=dict)
    record: Any = None
    root: str = ""


def image_sources(path: Path, images: Path | None = None, labels: Path | None = None) -> list[SourceItem]:
    """The sources in whatever was given.

    A folder; a table (CSV, JSON Lines, JSON list) with a column image; a Google Landmarks csv; or a JSON
    object of file names without their ending and place names, as the authors of MM-R3 released for both of
    their sets. `images` is where the images of a file lie (default: its folder), `labels` the names of
    landmarks (landmark_id, category). UserError where it is none of these, or a record is wrong.
    """
    if path.is_dir():
        if images or labels:
            option = "--images" if images else "--labels"
            raise UserError(f"{option} goes with a table, this is a folder", file=path)
        return folder_sources(path)
    content = read_bytes(path)
    if content.lstrip()[:1] in (b"{", b"["):
        if labels:
            raise UserError("--labels goes with a Google Landmarks csv, this is JSON", file=path)
        rows = json_records(content, path)
        if len(rows) == 1 and _is_mapping(rows[0][1]):
            return place_sources(rows[0][1], path, images)
        return table_sources(path, images)
    header = read_table(content, path).header
    if "id" in header and any(name in header for name in LANDMARK):
        return landmark_sources(path, images, labels)
    if labels:
        raise UserError("--labels goes with a Google Landmarks csv", file=path, found=header)
    return table_sources(path, images)


def folder_sources(folder: Path) -> list[SourceItem]:
    """Every image in a folder and below, in the order of their paths.

    Where they lie in two folders or more, as in MIT Indoor-67, the name of the one an image lies in is its
    reference and its label `class`: underscores become spaces, percent-encoding is decoded. Images that
    lie all in one folder, or beside the class folders, have no reference. UserError where there is none.
    """
    paths = _images_below(folder)
    if not paths:
        raise UserError("holds no image", file=folder, expected=f"files that end in {', '.join(SUFFIXES)}")
    inside = [os.path.dirname(path) for path in paths]
    classes = set(inside) - {""}
    sources = []
    for path, name, parent in zip(paths, ids_of(paths), inside, strict=True):
        place = decoded(os.path.basename(parent)) if parent and len(classes) > 1 else ""
        known: Labels = {"class": place} if place else {}
        sources.append(
            SourceItem(name, str(folder / path), (place,) if place else (), labels=known, root=str(folder))
        )
    return sources


def table_sources(path: Path, images: Path | None = None) -> list[SourceItem]:
    """The records of a CSV, JSON Lines or JSON list: image, and id, question, answer(s), reference(s) if any.

    A cell may hold a JSON list of answers. Images are looked for in `images` (default: the table's
    folder) and may not leave it: UserError for a path that does, a drop for a link. One that is not there
    becomes a drop when it is worked on. Records about one image are told apart by a number. UserError
    names file, record and field.
    """
    root = images or path.parent
    content = read_bytes(path)
    rows = (
        json_records(content, path)
        if content.lstrip()[:1] in (b"{", b"[")
        else table_rows(_headed(read_table(content, path), path), path)
    )
    paths = [_image(row, where, path, root) for where, row in rows]
    ids = _given_ids(rows, path) or ids_of(paths)
    return [
        SourceItem(
            id=name,
            image=str(root / path_in_root),
            references=_references(row, where, path),
            question=_text(row.get("question"), where, "question", path),
            root=str(root),
        )
        for (where, row), path_in_root, name in zip(rows, paths, ids, strict=True)
    ]


def landmark_sources(path: Path, images: Path | None = None, labels: Path | None = None) -> list[SourceItem]:
    """The images of a Google Landmarks csv (id, url, landmark_id; or id, landmark), named by `labels`.

    An image is the file ID.jpg anywhere below `images`, such as a/b/c/ID.jpg. Of a csv that lists more
    missing images than there are files, such as the whole release's, only those that are there are
    sources; of any other the missing ones become drops. `labels` maps landmark_id to category. UserError
    where a landmark has no name there, or where no image is found.
    """
    root = images or path.parent
    files = _by_stem(root)
    table = _headed(read_table(read_bytes(path), path), path, "id")
    column = next(name for name in LANDMARK if name in table.header)
    names = _landmark_names(labels) if labels else None
    if names is None and column == "landmark_id":
        raise UserError(
            "gives landmarks by number",
            file=path,
            field=column,
            expected="--labels FILE with the columns landmark_id and category",
        )
    at, of = table.header.index("id"), table.header.index(column)
    found: list[tuple[str, str, str]] = []
    missing: list[tuple[str, str, str]] = []
    for number, cells in table.lines:
        if len(cells) != len(table.header):
            expected = f"{len(table.header)} cells; is the file cut off?"
            raise UserError("is no whole record", file=path, record=f"line {number}", expected=expected)
        places = files.get(cells[at], [])
        if places:
            name = _name_of(cells[of], names, column, number, path, labels)
            found.append((cells[at], str(root / _only(cells[at], places, "", path)), name))
        elif len(missing) <= len(files):
            name = cells[of] if names is None else names.get(cells[of], "")
            missing.append((cells[at], str(root / _absent(cells[at], f"line {number}", path)), name))
    if not found:
        raise UserError("no image of it is there", file=path, expected=f"files named ID.jpg below {root}")
    listed = found + missing if len(missing) <= len(found) else found
    ids = ids_of([name for name, _, _ in listed])
    return [
        SourceItem(name, image, (decoded(place),), root=str(root))
        for name, (_, image, place) in zip(ids, listed, strict=True)
    ]


def place_sources(named: Mapping[str, str], path: Path, images: Path | None = None) -> list[SourceItem]:
    """The images that a JSON object names (file name without its ending -> place), its names decoded.

    Where several files below `images` have that name, the one in the folder of the place counts; UserError
    where that does not tell them apart. One that is not there becomes a drop when it is worked on.
    """
    root = images or path.parent
    files = _by_stem(root)
    if not any(stem in files for stem in named):
        raise UserError("no image of it is there", file=path, expected=f"files named so below {root}")
    sources = []
    for name, (stem, place) in zip(ids_of(list(named)), named.items(), strict=True):
        there = _only(stem, files[stem], place, path) if stem in files else _absent(stem, stem, path)
        sources.append(SourceItem(name, str(root / there), (decoded(place),), root=str(root)))
    return sources


def decoded(name: str) -> str:
    """A place's name as people write it.

    >>> decoded("http://commons.wikimedia.org/wiki/Category:Vl%C4%8D%C3%AD_d%C5%AFl")
    'Vlčí důl'
    >>> decoded("concert_hall")
    'concert hall'
    """
    bare = re.sub(r"^https?://commons\.wikimedia\.org/wiki/Category:", "", name.strip())
    with contextlib.suppress(UnicodeDecodeError):
        bare = unquote(bare, errors="strict")
    return " ".join(bare.replace("_", " ").split())


def confined(name: str, path: Path, record: object, field: str, root: Path | None = None) -> str:
    """An image's path as a file names it, below the folder of images; UserError where it leads out."""
    plain = os.path.normpath(name)
    if os.path.isabs(plain) or plain.split(os.sep)[0] == ".." or "\0" in name:
        raise UserError(
            f"leads out of {root or 'the folder of images'}",
            file=path,
            record=record,
            field=field,
            found=name,
            expected="a path inside that folder",
        )
    return Path(plain).as_posix()


def drop_reason(error: BadImage, source: SourceItem) -> str:
    """Why a source is dropped, without the places on disk: they decide nothing that is built."""
    return str(error).removeprefix(f"{source.image}: ").removesuffix(f" {source.root}")


def refuse_twins(sources: Sequence[SourceItem]) -> None:
    """Raise UserError where an id occurs twice."""
    seen: dict[str, str] = {}
    for source in sources:
        if source.id in seen:
            raise UserError(
                "two sources have this id",
                record=source.id,
                found=f"{seen[source.id]} and {source.image}",
                expected="ids that differ",
            )
        seen[source.id] = source.image


def _images_below(folder: Path) -> list[str]:
    """The paths, relative to the folder, of the images in it and below; hidden ones are none."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = Path(place).relative_to(folder)
        found += [
            (inside / name).as_posix()
            for name in files
            if name.lower().endswith(SUFFIXES) and not name.startswith(".")
        ]
    return sorted(found)


def _given_ids(rows: Records, path: Path) -> list[str]:
    """The ids that a table gives, if it does; UserError where one is missing or given twice."""
    if not any("id" in row for _, row in rows):
        return []
    seen: dict[str, str] = {}
    for where, row in rows:
        name = _text(row.get("id"), where, "id", path)
        if not name:
            raise UserError("is missing", file=path, record=where, field="id", expected="an id as elsewhere")
        if name in seen:
            raise UserError(
                f"stands in {seen[name]} already",
                file=path,
                record=where,
                field="id",
                found=name,
                expected="each id once",
            )
        seen[name] = where
    return ids_of(list(seen))


def _headed(table: RawTable, path: Path, *needed: str) -> RawTable:
    """The table; UserError where it lacks a column, or has one twice."""
    twice = [name for name, count in Counter(table.header).items() if count > 1]
    if twice:
        raise UserError("stands in the header twice", file=path, field=twice[0], expected="each column once")
    for name in needed:
        if name not in table.header:
            raise UserError("is missing", file=path, field=name, found=table.header, expected="that column")
    return table


def _image(row: Mapping[str, Any], where: str, path: Path, root: Path) -> str:
    """The image of a record, relative to the root; UserError where there is none or it leads out of it."""
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
    found: list[str] = []
    for name in ANSWERS:
        value = row.get(name)
        if isinstance(value, str) and value.lstrip().startswith("["):
            value = _list_in_cell(value)
        listed = value if isinstance(value, list) else [value]
        found += [_text(one, where, name, path) for one in listed]
    return tuple(dict.fromkeys(one for one in found if one))


def _list_in_cell(cell: str) -> Any:
    """The JSON list that a cell holds; the cell itself where it is none, such as '[sic]'."""
    try:
        return msgspec.json.decode(cell)
    except msgspec.DecodeError:
        return cell


def _text(value: Any, where: str, name: str, path: Path) -> str:
    # NaN is how Python's json writes the empty cell of a data frame.
    if value is None or value != value:
        return ""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UserError("is no text", file=path, record=where, field=name, found=value, expected="text")
    return str(value).strip()


def _is_mapping(row: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in row.values()) and not any(name in row for name in IMAGE)


def _by_stem(folder: Path) -> dict[str, list[str]]:
    """The images below a folder by their name without its ending."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in _images_below(folder):
        found[Path(path).stem].append(path)
    return dict(found)


def _only(stem: str, places: Sequence[str], folder: str, path: Path) -> str:
    """The one file of that name, where there are several the one in the folder of that name."""
    right = [place for place in places if Path(place).parent.name == folder] if len(places) > 1 else places
    if len(right) != 1:
        raise UserError(
            f"several images have the name '{stem}'",
            file=path,
            record=stem,
            found=", ".join(places),
            expected="one",
        )
    return right[0]


def _absent(stem: str, where: str, path: Path) -> str:
    """The file that a name without ending stands for, where there is none; UserError where none could be."""
    if not stem or "/" in stem or "\0" in stem:
        raise UserError("is no file name", file=path, record=where, found=stem, expected="a name without '/'")
    return f"{stem}.jpg"


def _landmark_names(labels: Path) -> dict[str, str]:
    table = _headed(read_table(read_bytes(labels), labels), labels, "landmark_id", "category")
    return {row["landmark_id"]: row["category"] for _, row in table_rows(table, labels)}


def _name_of(
    landmark: str, names: Mapping[str, str] | None, column: str, number: int, path: Path, labels: Path | None
) -> str:
    name = landmark if names is None else names.get(landmark, "")
    if not name:
        raise UserError(
            "has no name",
            file=path,
            record=f"line {number}",
            field=column,
            found=landmark,
            expected=f"one of those in {labels}" if labels else "a name",
        )
    return name
