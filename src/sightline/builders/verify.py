"""Verification: humans mark each line of a table right or wrong, and wrong lines are dropped.

ConTextual (section 2.3): humans who neither responded nor rated marked every triplet of image, instruction
and response, and found 96 % right. The rest was dropped, and the other authors reviewed what passed. II-Bench
(section 3.2): a question is accepted by 4 of 5 reviewers, and otherwise revised and reviewed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from sightline.benchmarks.contextual.folder import ANSWER, COLUMNS, IMAGE, NAME, image_path
from sightline.benchmarks.published import published
from sightline.builders.built_folder import Contents, write_folder
from sightline.builders.checked_images import check_images
from sightline.builders.manifest import (
    BuildIdentity,
    BuildManifest,
    build_identity,
    fingerprint,
    indented_json,
)
from sightline.builders.review_lists import COLUMNS as LIST_COLUMNS
from sightline.builders.review_lists import AcceptanceRule, Mark, MarkWords, normalised_name
from sightline.errors import UserError
from sightline.formats.content import read_bytes
from sightline.formats.digests import file_digest_or_error
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.metric_types import MetricValue
from sightline.metrics.metric_values import clustered_mean
from sightline.types import ImageRef

KIND = "verify"
RIGHT = MarkWords("right", "wrong")
REPORT, REJECTED, ACCEPTED = "verification.json", "rejected.csv", "accepted.csv"
REVIEW_COLUMNS = ("round", "right", "wrong", "remarks")
"""Additional columns of rejected.csv for its reviser; they are not part of the line."""
IMAGE_COLUMN = "image"
"""The column of a review list with the path of the line's image."""


class TableLine(Struct, frozen=True):
    """A line of a table.

    Attributes:
        key: Digest of its cells.
        cells: Column -> cell.
        round: The round in which it is reviewed.
        image: Where its image should lie, if it names one.
    """

    key: str
    cells: Mapping[str, str]
    round: int = 1
    image: ImageRef | None = None


class VerifiedManifest(BuildManifest, frozen=True):
    """The manifest of a verified table; `missing` maps paths of missing or broken images to the reason."""

    missing: Mapping[str, str] = field(default_factory=dict)


class ReviewedLine(Struct, frozen=True):
    """A line with its marks: accepted (True), rejected (False) or undecided (None)."""

    line: TableLine
    marks: tuple[Mark, ...]
    accepted: bool | None


def read_table_lines(paths: Sequence[Path]) -> list[TableLine]:
    """Read the lines of tables with the same columns.

    A line of a revised rejected.csv is in the next round; an unchanged line is the line that it was. Images
    are next to any of the tables.

    Args:
        paths: The tables.

    Returns:
        The distinct lines, in their order.

    Raises:
        UserError: A table has other columns than the first, a table in ConTextual's layout has no responses,
            a line occurs twice in a table, or two tables have different images with the same path.
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
            key = fingerprint(cells)[:16]
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


def review_columns(lines: Sequence[TableLine]) -> dict[str, dict[str, str]]:
    """The columns of a review list about lines.

    Args:
        lines: The lines.

    Returns:
        Key of a line -> column -> cell: the path of the image if it is there, and every cell. A column that
        is named like one of the list's own gets the suffix ' (table)'.
    """
    own = {*LIST_COLUMNS, IMAGE_COLUMN}
    columns = {}
    for line in lines:
        cells = {f"{name} (table)" if name in own else name: cell for name, cell in line.cells.items()}
        columns[line.key] = {IMAGE_COLUMN: _path(line.image), **cells}
    return columns


def verify(
    lines: Sequence[TableLine],
    marks: Mapping[str, Sequence[Mark]],
    rule: AcceptanceRule,
    *,
    not_by: Sequence[str] = (),
) -> list[ReviewedLine]:
    """Decide about each line.

    Args:
        lines: The lines.
        marks: The marks by key of the line.
        rule: When a line is accepted.
        not_by: Names of humans who may not mark: who wrote the lines, responded to them or rates responses.

    Returns:
        The lines with their decisions.

    Raises:
        UserError: A human of `not_by` has marked a line, a line has more marks than the rule allows, or no
            mark is about any of the lines.
    """
    reviewed, barred_names = [], {normalised_name(name) for name in not_by}
    for line in lines:
        own = tuple(marks.get(line.key, ()))
        barred = [mark.by for mark in own if normalised_name(mark.by) in barred_names]
        if barred:
            raise UserError(f"'{barred[0]}' has marked a line", record=line.key, expected="marks by others")
        if rule.of and len(own) > rule.of:
            expected = f"{rule.of}, as --accept {rule.needed}/{rule.of} says"
            raise UserError("has too many marks", record=line.key, found=len(own), expected=expected)
        reviewed.append(ReviewedLine(line, own, rule.decide(own)))
    if not any(one.marks for one in reviewed):
        raise UserError(
            "no mark is about a line of these tables", expected="lists that --write wrote for them"
        )
    return reviewed


def share_right(reviewed: Sequence[ReviewedLine]) -> MetricValue:
    """Compute the share of accepted lines.

    Args:
        reviewed: The lines.

    Returns:
        Accepted lines of the decided ones, in percent. For ConTextual's layout the paper's own value (section
        2.3) is attached.
    """
    decided = [(_cluster(one.line), float(one.accepted)) for one in reviewed if one.accepted is not None]
    names = ", ".join(sorted({mark.by for one in reviewed for mark in one.marks}))
    reason = "no line is decided"
    share = clustered_mean("right", decided, reason=reason)
    share = structs.replace(share, judge=names or None)
    if not all(set(COLUMNS) <= one.line.cells.keys() for one in reviewed):
        return share
    return structs.replace(share, published=published(NAME, KIND, "Humans")["right", "all"])


def verification_report(reviewed: Sequence[ReviewedLine], rule: AcceptanceRule) -> dict[str, Any]:
    """The content of verification.json.

    Args:
        reviewed: The lines.
        rule: When a line is accepted.

    Returns:
        The share, the counts, and every line's round and marks, as plain data.
    """
    verdicts = [one.accepted for one in reviewed]
    return {
        "schema": 1,
        "rule": rule.text,
        "lines": len(reviewed),
        "accepted": verdicts.count(True),
        "rejected": verdicts.count(False),
        "undecided": verdicts.count(None),
        "metrics": [share_right(reviewed)],
        "decided": [
            {"key": one.line.key, "round": one.line.round, "accepted": one.accepted, "marks": one.marks}
            for one in reviewed
        ],
    }


def identify_build(lines: Sequence[TableLine], rule: AcceptanceRule) -> BuildIdentity:
    """The identity of the build. Marks are not part of it: later ones complete the same folder.

    Args:
        lines: The lines.
        rule: When a line is accepted.

    Returns:
        The identity.
    """
    return build_identity(KIND, {"rule": rule.text, "lines": fingerprint([line.key for line in lines])})


def write_accepted(
    reviewed: Sequence[ReviewedLine],
    rule: AcceptanceRule,
    table: str,
    out: Path,
    *,
    force: bool = False,
) -> VerifiedManifest:
    """Write the accepted lines, rejected.csv for revision, verification.json, images/ and, last,
    manifest.json.

    Undecided lines are in neither table. The images of rejected lines are copied too, for revision and
    review.

    Args:
        reviewed: The lines.
        rule: When a line is accepted.
        table: File name of the table of accepted lines.
        out: The folder.
        force: Replace a folder that was built from other input.

    Returns:
        The manifest.
    """
    columns = list(reviewed[0].line.cells)
    accepted = [one for one in reviewed if one.accepted]
    rejected = [one for one in reviewed if one.accepted is False]
    decided = (one.line for one in [*accepted, *rejected])
    gallery = check_images({image_path(one.cells[IMAGE]): one.image for one in decided if one.image})
    revision = [[*one.line.cells.values(), *_notes(one)] for one in rejected]
    contents = Contents(
        groups=len(accepted),
        probes=len(accepted),
        files={
            table: csv_bytes([columns, *(list(one.line.cells.values()) for one in accepted)]),
            REJECTED: csv_bytes([[*columns, *REVIEW_COLUMNS], *revision]),
            REPORT: indented_json(verification_report(reviewed, rule)),
        },
        sources={path: file.digest for path, file in gallery.files.items()},
        dropped={one.line.key: "humans mark it wrong" for one in rejected},
    )
    identity = identify_build([one.line for one in reviewed], rule)
    manifest = partial(VerifiedManifest, missing=gallery.broken)
    return write_folder(out, identity, contents, gallery.files, manifest=manifest, force=force)


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


def _path(image: ImageRef | None) -> str:
    return image.path if image is not None and Path(image.path).is_file() else ""


def _cluster(line: TableLine) -> str:
    return line.cells.get(IMAGE) or line.key


def _notes(one: ReviewedLine) -> list[str]:
    votes = [mark.yes for mark in one.marks]
    remarks = "; ".join(f"{mark.by}: {mark.remark}" for mark in one.marks if mark.remark)
    return [str(one.line.round), str(votes.count(True)), str(votes.count(False)), remarks]
