"""A validation split that holds as much of every category as the whole does (ConTextual, Appendix C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

from msgspec import Struct

from sightline.benchmarks.contextual.data import MISCELLANEOUS, SOURCES
from sightline.benchmarks.contextual.folder import ANSWER, CATEGORY, COLUMNS, IMAGE, image_path, table_name
from sightline.builders.built_folder import add_images
from sightline.builders.stratified_sampling import draw_places
from sightline.errors import UserError
from sightline.formats.digests import changed_files
from sightline.formats.files import read_bytes, refuse_overwriting, refuse_unwritable, write_atomically
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.types import ImageFile, ImageRef


class ValidationSplit(Struct, frozen=True):
    """A table in ConTextual's layout and its file, the numbers of the rows that were drawn, and how many of
    each category: `drawn` of `sizes`; and where its images should lie, by their places in a data folder."""

    file: Path
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chosen: frozenset[int]
    sizes: Mapping[str, int]
    drawn: Mapping[str, int]
    images: Mapping[str, ImageRef]


def split_table(path: Path, count: int, seed: int) -> ValidationSplit:
    """Draw `count` rows of a table, in proportion to its categories; the same seed draws the same rows.

    ConTextual's two sources of natural scenes are one category, as in the paper. Raises UserError for a table
    in another layout, a row without a response or category, and a count that the table does not hold.
    """
    table = read_table(read_bytes(path), path)
    for column in COLUMNS:
        if column not in table.header:
            raise UserError("lacks a column", file=path, field=column, expected=", ".join(COLUMNS))
    rows = table_rows(table, path)
    for where, row in rows:
        for column in (ANSWER, CATEGORY):
            if not row[column].strip():
                raise UserError("is blank", file=path, record=where, field=column)
    if not 1 <= count < len(rows):
        raise UserError(
            f"--count {count} cannot be drawn of {len(rows)} rows", expected=f"1 to {max(1, len(rows) - 1)}"
        )
    named = [row[CATEGORY].strip() for _, row in rows]
    categories = [MISCELLANEOUS if name in SOURCES else name for name in named]
    chosen = draw_places(categories, count, Random(f"validation split {seed}"))
    sizes, drawn = Counter(sorted(categories)), Counter(categories[number] for number in chosen)
    lines = tuple(tuple(row[column] for column in table.header) for _, row in rows)
    places = dict.fromkeys(image_path(row[IMAGE]) for _, row in rows)
    images = {place: ImageRef(str(path.parent / place), str(path.parent)) for place in places}
    return ValidationSplit(path, tuple(table.header), lines, frozenset(chosen), sizes, drawn, images)


def write_split(
    split: ValidationSplit, images: Mapping[str, ImageFile], out: Path, *, force: bool = False
) -> list[Path]:
    """Write contextual_val.csv, the drawn rows with their responses, and contextual_test.csv, as the release
    has them: all rows, the responses held back; and `images`, by their places. Returns the tables' paths.

    Raises UserError where a table, or another image in the place of one, is there already, unless `force`,
    and where it is the table that was split; EnvironmentFailedError where the disk refuses.
    """
    files = [out / table_name("val"), out / table_name("test")]
    refuse_unwritable(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("a file is in the way", file=out, expected="a folder for --out") from None
    for file in files:
        refuse_overwriting(file, force, read=[split.file])
    there = {place: file.digest for place, file in images.items() if (out / place).exists()}
    for place in changed_files(out, there):
        refuse_overwriting(out / place, force)
    add_images(images, out)
    open_to_all = [place for place, name in enumerate(split.header) if name != ANSWER]
    drawn = [row for number, row in enumerate(split.rows) if number in split.chosen]
    write_atomically(files[0], [csv_bytes([split.header, *drawn])])
    write_atomically(
        files[1], [csv_bytes([row[place] for place in open_to_all] for row in (split.header, *split.rows))]
    )
    return files
