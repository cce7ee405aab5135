"""Reads sources from any supported folder or file: tables, Google Landmarks CSVs, MM-R3's label files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.builders.source_ids import ids_of
from sightline.builders.sources import (
    IMAGE,
    SourceItem,
    decode_place_name,
    folder_sources,
    images_below,
    table_sources,
    with_columns,
)
from sightline.decoding import json_records
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.tables import read_table, table_rows

LANDMARK = ("landmark_id", "landmark")


def image_sources(path: Path, images: Path | None = None, labels: Path | None = None) -> list[SourceItem]:
    """Read sources from a folder or file of any supported kind.

    Supported are a folder; a table (CSV, JSON Lines, JSON list) with a column image; a Google Landmarks CSV;
    and a JSON object of file names without ending and place names, the form of MM-R3's released label files.
    """
    if path.is_dir():
        if images or labels:
            option = "--images" if images else "--labels"
            raise UserError(f"{option} needs a table, this is a folder", file=path)
        return folder_sources(path)
    content = read_bytes(path)
    if content.lstrip()[:1] in (b"{", b"["):
        if labels:
            raise UserError("--labels needs a Google Landmarks CSV, this is JSON", file=path)
        rows = json_records(content, path)
        if len(rows) == 1 and _is_mapping(rows[0][1]):
            return place_sources(rows[0][1], path, images)
        return table_sources(path, images)
    header = read_table(content, path).header
    if "id" in header and any(name in header for name in LANDMARK):
        return landmark_sources(path, images, labels)
    if labels:
        raise UserError("--labels needs a Google Landmarks CSV", file=path, found=header)
    return table_sources(path, images)


def landmark_sources(path: Path, images: Path | None = None, labels: Path | None = None) -> list[SourceItem]:
    """Read a Google Landmarks CSV (id, url, landmark_id; or id, landmark).

    An image is the file ID.jpg anywhere below `images`, such as a/b/c/ID.jpg. If the CSV lists more missing
    images than existing ones, as the whole release does, only existing ones are sources; otherwise missing
    ones are dropped later.
    """
    root = images or path.parent
    files = _by_stem(root)
    table = with_columns(read_table(read_bytes(path), path), path, "id")
    column = next(name for name in LANDMARK if name in table.header)
    names = _landmark_names(labels) if labels else None
    if names is None and column == "landmark_id":
        raise UserError(
            "names landmarks by number",
            file=path,
            field=column,
            expected="--labels FILE with the columns landmark_id and category",
        )
    at, of = table.header.index("id"), table.header.index(column)
    found: list[tuple[str, str, str]] = []
    missing: list[tuple[str, str, str]] = []
    for number, cells in table.lines:
        if len(cells) != len(table.header):
            expected = f"{len(table.header)} cells; is the file truncated?"
            raise UserError(
                "has a wrong number of cells", file=path, record=f"line {number}", expected=expected
            )
        places = files.get(cells[at], [])
        if places:
            name = _name_of(cells[of], names, column, number, path, labels)
            found.append((cells[at], str(root / _only(cells[at], places, "", path)), name))
        elif len(missing) <= len(files):
            name = cells[of] if names is None else names.get(cells[of], "")
            missing.append((cells[at], str(root / _absent(cells[at], f"line {number}", path)), name))
    if not found:
        raise UserError("its image is missing", file=path, expected=f"files named ID.jpg below {root}")
    listed = found + missing if len(missing) <= len(found) else found
    ids = ids_of([name for name, _, _ in listed])
    return [
        SourceItem(name, image, (decode_place_name(place),), root=str(root))
        for name, (_, image, place) in zip(ids, listed, strict=True)
    ]


def place_sources(named: Mapping[str, str], path: Path, images: Path | None = None) -> list[SourceItem]:
    """Read a JSON object of file names without ending and place names.

    If several files below `images` have a name, the one in the folder of the place counts. A missing image is
    dropped later.
    """
    root = images or path.parent
    files = _by_stem(root)
    if not any(stem in files for stem in named):
        raise UserError("its image is missing", file=path, expected=f"files named so below {root}")
    sources = []
    for name, (stem, place) in zip(ids_of(list(named)), named.items(), strict=True):
        there = _only(stem, files[stem], place, path) if stem in files else _absent(stem, stem, path)
        sources.append(SourceItem(name, str(root / there), (decode_place_name(place),), root=str(root)))
    return sources


def _is_mapping(row: Mapping[str, Any]) -> bool:
    return all(isinstance(value, str) for value in row.values()) and not any(name in row for name in IMAGE)


def _by_stem(folder: Path) -> dict[str, list[str]]:
    """File name without ending -> relative paths of the images below a folder."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in images_below(folder):
        found[Path(path).stem].append(path)
    return dict(found)


def _only(stem: str, places: Sequence[str], folder: str, path: Path) -> str:
    """The only file with a name; of several the one whose folder has the given name."""
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
    """The path of a missing file; UserError if the name cannot be a file name."""
    if not stem or "/" in stem or "\0" in stem:
        raise UserError(
            "is not a file name", file=path, record=where, found=stem, expected="a name without '/'"
        )
    return f"{stem}.jpg"


def _landmark_names(labels: Path) -> dict[str, str]:
    table = with_columns(read_table(read_bytes(labels), labels), labels, "landmark_id", "category")
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
