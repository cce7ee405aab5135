"""Draws a validation split in proportion to the categories (ConTextual, Appendix C)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct

from sightline.benchmarks.contextual.data import (
    ANSWER,
    CATEGORY,
    COLUMNS,
    IMAGE,
    MISCELLANEOUS,
    SOURCES,
    image_path,
    table_name,
)
from sightline.builders.folder import add_images
from sightline.errors import UserError
from sightline.formats.files import (
    changed_files,
    read_bytes,
    refuse_overwriting,
    refuse_unwritable,
    write_atomically,
)
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.types import ImageFile, ImageRef


class ValidationSplit(Struct, frozen=True):
    """A table in ConTextual's layout with the drawn rows."""

    file: Path
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    chosen: frozenset[int]
    sizes: Mapping[str, int]
    drawn: Mapping[str, int]
    images: Mapping[str, ImageRef]


def split_table(path: Path, count: int, seed: int) -> ValidationSplit:
    """Draw rows of a table in proportion to its categories.

    ConTextual's two sources of natural scenes count as one category, as in the paper.
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
            f"--count {count} cannot be sampled from {len(rows)} rows",
            expected=f"1 to {max(1, len(rows) - 1)}",
        )
    names = [row[CATEGORY].strip() for _, row in rows]
    categories = [MISCELLANEOUS if name in SOURCES else name for name in names]
    chosen = draw_indices(categories, count, Random(f"validation split {seed}"))
    sizes, drawn = Counter(sorted(categories)), Counter(categories[number] for number in chosen)
    lines = tuple(tuple(row[column] for column in table.header) for _, row in rows)
    paths = dict.fromkeys(image_path(row[IMAGE]) for _, row in rows)
    images = {name: ImageRef(str(path.parent / name), str(path.parent)) for name in paths}
    return ValidationSplit(path, tuple(table.header), lines, frozenset(chosen), sizes, drawn, images)


def write_split(
    split: ValidationSplit, images: Mapping[str, ImageFile], out: Path, *, force: bool = False
) -> list[Path]:
    """Write the split as in the release, and copy the images.

    contextual_val.csv holds the drawn rows with their responses, contextual_test.csv all rows without
    responses.
    """
    files = [out / table_name("val"), out / table_name("test")]
    refuse_unwritable(out)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("is a file", file=out, expected="a folder for --out") from None
    for file in files:
        refuse_overwriting(file, force, read=[split.file])
    existing = {name: file.digest for name, file in images.items() if (out / name).exists()}
    for name in changed_files(out, existing):
        refuse_overwriting(out / name, force)
    add_images(images, out)
    public = [column for column, name in enumerate(split.header) if name != ANSWER]
    drawn = [row for number, row in enumerate(split.rows) if number in split.chosen]
    write_atomically(files[0], [csv_bytes([split.header, *drawn])])
    write_atomically(
        files[1], [csv_bytes([row[column] for column in public] for row in (split.header, *split.rows))]
    )
    return files


# -- Stratified samples: each category is drawn in proportion to its size (ConTextual, Appendix C)


def proportional(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide a sample among categories by largest remainders; the first of equal remainders wins.

    >>> proportional({"natural": 156, "time": 50, "web": 50}, 50)
    {'natural': 30, 'time': 10, 'web': 10}
    """
    total = sum(sizes.values())
    shares = {name: divmod(size * count, total) for name, size in sizes.items()}
    left = count - sum(quotient for quotient, _ in shares.values())
    more = sorted(shares, key=lambda name: -shares[name][1])[:left]
    return {name: quotient + (name in more) for name, (quotient, _) in shares.items()}


def draw_indices(categories: Sequence[str], count: int, random: Random) -> list[int]:
    members: dict[str, list[int]] = defaultdict(list)
    for index, category in enumerate(categories):
        members[category].append(index)
    parts = proportional({category: len(members[category]) for category in sorted(members)}, count)
    return sorted(
        index for category, part in parts.items() for index in random.sample(members[category], part)
    )
