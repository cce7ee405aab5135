"""Sources: the images that builders work on, with their questions and references, from folders and tables."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from sightline.benchmarks.registry import benchmark, benchmark_names
from sightline.builders.folder import GROUPS, SUFFIXES
from sightline.errors import UserError
from sightline.formats.files import READERS, read_bytes, text_digest
from sightline.formats.groups import is_below, read_groups
from sightline.formats.tables import RawTable, read_table, table_rows
from sightline.images import BadImage, inspect_image
from sightline.progress import progress
from sightline.text import UNDECODABLE, Records, json_records, unknown_field
from sightline.types import LETTERS, ImageFile, ImageRef, Labels

IMAGE = "image"
OPTIONS = "options"
ANSWER_COLUMNS = ("answer", "answers", "reference", "references")


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
    """Decode the name of a place. `name`: a URL of Wikimedia Commons, or a name with underscores and
    percent-encoding.

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
    for name in needed:
        if name not in table.header:
            raise UserError("is missing", file=path, field=name, found=table.header, expected="that column")
    return table


def _refuse_unknown(fields: Iterable[str], path: Path, where: str) -> None:
    """Raise UserError for a field that nothing reads, such as a misspelled one."""
    known = (IMAGE, "id", "question", OPTIONS, *ANSWER_COLUMNS)
    for name in fields:
        if name not in known:
            raise unknown_field(name, known, path, where)


def _image_path(row: Mapping[str, Any], where: str, path: Path, root: Path) -> str:
    """The path of a record's image relative to the root; UserError if there is none or it leaves the root."""
    if IMAGE not in row:
        raise UserError(
            "is missing", file=path, record=where, field=IMAGE, found=list(row), expected="an image's path"
        )
    name = _text(row[IMAGE], where, IMAGE, path)
    if not name or "\0" in name:
        raise UserError("names no image", file=path, record=where, field=IMAGE, found=row[IMAGE])
    return confined(name, path, where, IMAGE, root)


def _references(row: Mapping[str, Any], where: str, path: Path) -> tuple[str, ...]:
    answers: list[str] = []
    for name in ANSWER_COLUMNS:
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


# -- Makes ids of sources from the paths of their images or from names

LONGEST_ID = 120
"""Largest length of an id in characters. File systems take names of 255 bytes; builders append to ids."""


def ids_of(names: Sequence[str]) -> list[str]:
    """Make ids that are readable, safe as file names, and unique even if case is ignored.

    Names that occur more than once get a number. A digest is appended to ids that would otherwise be equal or
    that lost characters which a file name cannot hold.
    """
    often, counted = Counter(names), Counter[str]()
    numbers = []
    for name in names:
        counted[name] += 1
        numbers.append(f"-{counted[name]}" if often[name] > 1 else "")
    plain = [_plain(name) + number for name, number in zip(names, numbers, strict=True)]
    same = Counter(name.casefold() for name in plain)
    return [
        f"{short}-{_digest(name, number)}"
        if same[short.casefold()] > 1 or not _is_lossless(short, name)
        else short
        for short, name, number in zip(plain, names, numbers, strict=True)
    ]


def _plain(path: str) -> str:
    stem = path[: -len(Path(path).suffix)] if path.lower().endswith(SUFFIXES) else path
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem.replace("/", "-")).lstrip(".")[:LONGEST_ID] or "image"


def _is_lossless(name: str, path: str) -> bool:
    return len(name) < LONGEST_ID and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._/-]*", path) is not None


def _digest(name: str, number: str) -> str:
    # No name holds the null byte, so that the first of two 'x' differs from an 'x-1'.
    key = f"{name}\0{number}" if number else name
    return text_digest(key)[:8]


# -- Reads sources from any supported folder or file: tables, Google Landmarks CSVs, MM-R3's label files

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
    return all(isinstance(value, str) for value in row.values()) and IMAGE not in row


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


# -- Finds the images of data folders, folders of images and groups files, with their names in the data


def images_in(data: Path) -> dict[str, ImageRef]:
    """List the images of a data folder, of any folder of images, or of a groups file."""
    if not data.exists():
        raise UserError("there is no such folder or file", file=data, expected="images for DATA")
    if data.is_file() or (data / GROUPS).is_file():
        return _of_groups(data if data.is_file() else data / GROUPS)
    for name in benchmark_names():
        images = benchmark(name).images_by_id(data)
        if images is not None:
            return dict(images)
    return _by_path(ImageRef(source.image, source.root) for source in folder_sources(data))


def _of_groups(file: Path) -> dict[str, ImageRef]:
    root = str(file.parent)
    lines = read_groups(file)
    names = dict.fromkeys(image for line in lines for image in line.images)
    if not names:
        raise UserError("names no image", file=file, expected="lines with images")
    return {name: ImageRef(os.path.join(root, name), root) for name in names}


def _by_path(images: Iterable[ImageRef]) -> dict[str, ImageRef]:
    return {Path(os.path.relpath(one.path, one.root)).as_posix(): one for one in images}


# -- Checks images before work begins: the readable ones with their digests, the broken ones with the
#    reason

T = TypeVar("T")


class CheckedImages(Struct, frozen=True):
    """Readable images by name, and broken ones by name with the reason."""

    files: Mapping[str, ImageFile]
    broken: Mapping[str, str]

    def named(self, by_digest: Mapping[str, T]) -> dict[str, T]:
        return {name: by_digest[file.digest] for name, file in self.files.items()}


def check_images(images: Mapping[str, ImageRef], *, show_progress: bool = False) -> CheckedImages:
    files: dict[str, ImageFile] = {}
    broken: dict[str, str] = {}
    with (
        ThreadPoolExecutor(READERS) as pool,
        progress("checking images", len(images), "images", show_progress=show_progress) as advance,
    ):
        for name, checked in zip(images, pool.map(_look, images.values()), strict=True):
            if isinstance(checked, BadImage):
                broken[name] = str(checked).removeprefix(f"{images[name].path}: ")
            else:
                files[name] = checked
            advance(1)
    return CheckedImages(files, broken)


def check_sources(
    sources: Sequence[SourceItem], folder_of: Mapping[str, str], *, show_progress: bool = False
) -> tuple[dict[str, ImageFile], dict[str, str]]:
    """Check the images of sources; each image is read once."""
    refuse_duplicate_ids(sources)
    images = {f"{source.root}\0{source.image}": ImageRef(source.image, source.root) for source in sources}
    checked = check_images(images, show_progress=show_progress)
    files: dict[str, ImageFile] = {}
    dropped: dict[str, str] = {}
    for source in sources:
        name = f"{source.root}\0{source.image}"
        if name in checked.broken:
            dropped[source.id] = drop_reason(checked.broken[name], source)
        elif (file := checked.files[name]).digest in folder_of:
            dropped[source.id] = f"its image is in {folder_of[file.digest]}"
        else:
            files[source.id] = file
    return files, dropped


def drop_reason(error: BadImage | str, source: SourceItem) -> str:
    """Why a source is dropped, without paths on disk, which must not change the manifest."""
    return str(error).removeprefix(f"{source.image}: ").removesuffix(f" {source.root}")


def _look(image: ImageRef) -> ImageFile | BadImage:
    try:
        return inspect_image(image, {})
    except BadImage as error:
        return error
