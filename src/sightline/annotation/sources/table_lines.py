"""The lines of tables that humans verify: triplets, questions, or those of any other table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from sightline.benchmarks.contextual.folder import ANSWER, COLUMNS, IMAGE, image_path
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.digests import file_digest_or_error, json_digest
from sightline.formats.tables import read_table, table_rows
from sightline.types import ImageRef

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
