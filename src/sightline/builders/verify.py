"""Verification: people mark each line of a table right or not, and what they find wrong is dropped.

ConTextual (section 2.3): people who neither responded nor rated marked every triplet of image, instruction
and response, and found 96 % right; the rest was dropped, and what passed was reviewed by the other authors.
II-Bench (section 3.2): a question is accepted by 4 of 5 reviewers, and else goes back for
revision and is reviewed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field, structs

import sightline
from sightline.benchmarks.contextual.folder import ANSWER, COLUMNS, IMAGE, NAME, image_path
from sightline.benchmarks.published import published
from sightline.builders.built_folder import BuildIdentity, begin, copy_images, finish, held
from sightline.builders.image_index import check_images
from sightline.builders.manifest import BuildManifest, fingerprint
from sightline.builders.review_lists import COLUMNS as MARKED
from sightline.builders.review_lists import AcceptanceRule, Mark, MarkWords, bare
from sightline.errors import UserError
from sightline.formats.digests import file_digest, file_digest_or_error
from sightline.formats.files import read_bytes, write_atomically
from sightline.formats.tables import csv_bytes, read_table, table_rows
from sightline.metric_types import MetricValue
from sightline.metrics.metric_values import clustered_mean
from sightline.types import ImageRef

KIND = "verify"
RIGHT = MarkWords("right", "wrong")
REPORT, REJECTED, ACCEPTED = "verification.json", "rejected.csv", "accepted.csv"
NOTED = ("round", "right", "wrong", "remarks")
"""The columns that stand behind a rejected line for whoever revises it; they are no part of the line."""
SHOWN = "image"
"""The column in which people are shown where a line's image lies."""


class TableLine(Struct, frozen=True):
    """A line of a table: what tells it again (`key`, of its content), its cells, the round in which it is
    reviewed, and where its image should lie if it names one."""

    key: str
    cells: Mapping[str, str]
    round: int = 1
    image: ImageRef | None = None


class VerifiedManifest(BuildManifest, frozen=True):
    """The manifest of a verified table, with the images that its lines name and that are not beside it, by
    their places in a data folder, each with why."""

    missing: Mapping[str, str] = field(default_factory=dict)


class ReviewedLine(Struct, frozen=True):
    """A line and what people decided: accepted, rejected (False), or nothing yet (None)."""

    line: TableLine
    marks: tuple[Mark, ...]
    accepted: bool | None


def read_lines(paths: Sequence[Path]) -> list[TableLine]:
    """The lines of tables with the same columns, in their order; images lie beside any of the tables.

    Those of a rejected.csv that was revised are in the next round; one that was not is the line it was.
    UserError where a table has other columns than the first, one in ConTextual's layout has no responses, a
    line stands in one twice, or two tables have different images in one place.
    """
    lines: dict[str, TableLine] = {}
    columns: tuple[str, ...] = ()
    for path in paths:
        table = read_table(read_bytes(path), path)
        noted = set(NOTED) <= set(table.header)
        own = tuple(name for name in table.header if not (noted and name in NOTED))
        # II-Bench's questions.csv names its images in the same column.
        if set(COLUMNS) - set(own) == {ANSWER}:
            raise UserError("lacks a column", file=path, field=ANSWER, expected=", ".join(COLUMNS))
        columns = columns or own
        if own != columns:
            expected = f"the columns of {paths[0]}"
            raise UserError("has other columns", file=path, found=", ".join(own), expected=expected)
        seen: set[str] = set()
        for where, row in table_rows(table, path):
            cells = {name: row[name] for name in columns}
            key = fingerprint(cells)[:16]
            if key in seen:
                raise UserError("is there twice", file=path, record=where, expected="each line once")
            seen.add(key)
            number = _round(row, where, path) if noted else 1
            folders = [path.parent, *(other.parent for other in paths)]
            lines.setdefault(key, TableLine(key, cells, number, _image(cells, folders)))
    if not lines:
        raise UserError("holds no line", file=paths[0], expected="one at least, below the header")
    _refuse_other_images(lines.values())
    return list(lines.values())


def listed(lines: Sequence[TableLine]) -> dict[str, dict[str, str]]:
    """What people are shown of lines, by key: the path of the image where it is there, and every cell.

    A column of the table that is called as one of the list's own is told from it.
    """
    own = {*MARKED, SHOWN}
    shown = {}
    for line in lines:
        cells = {f"{name} (table)" if name in own else name: cell for name, cell in line.cells.items()}
        shown[line.key] = {SHOWN: _path(line.image), **cells}
    return shown


def verify(
    lines: Sequence[TableLine],
    marks: Mapping[str, Sequence[Mark]],
    rule: AcceptanceRule,
    *,
    not_by: Sequence[str] = (),
) -> list[ReviewedLine]:
    """What people decided of each line.

    `not_by` names those who may not mark: who wrote the lines, responded to them or rates responses. Raises
    UserError for a mark by one of them, for more marks on a line than the rule knows, and where no mark is
    about any of the lines.
    """
    found, kept_out = [], {bare(name) for name in not_by}
    for line in lines:
        given = tuple(marks.get(line.key, ()))
        barred = [mark.by for mark in given if bare(mark.by) in kept_out]
        if barred:
            raise UserError(f"'{barred[0]}' has marked a line", record=line.key, expected="marks by others")
        if rule.of and len(given) > rule.of:
            expected = f"{rule.of}, as --accept {rule.needed}/{rule.of} says"
            raise UserError("has too many marks", record=line.key, found=len(given), expected=expected)
        found.append(ReviewedLine(line, given, rule.decide(given)))
    if not any(one.marks for one in found):
        raise UserError(
            "no mark is about a line of these tables", expected="lists that --write wrote of them"
        )
    return found


def share_right(found: Sequence[ReviewedLine], *, seed: int = 0) -> MetricValue:
    """The share of lines that were accepted, of those decided, with an interval over images.

    Beside lines in ConTextual's layout stands what its paper found of its own.
    """
    decided = [(_cluster(one.line), float(one.accepted)) for one in found if one.accepted is not None]
    names = ", ".join(sorted({mark.by for one in found for mark in one.marks}))
    nothing = "people have decided of no line"
    share = clustered_mean("right", decided, shares=True, reason=nothing, seed=seed)
    share = structs.replace(share, judge=names or None)
    if not all(set(COLUMNS) <= one.line.cells.keys() for one in found):
        return share
    return structs.replace(share, published=published(NAME, KIND, "Humans")["right", "all"])


def report(found: Sequence[ReviewedLine], rule: AcceptanceRule, *, seed: int = 0) -> dict[str, Any]:
    """The whole of verification.json: the share, the counts, and every line's round and marks."""
    verdicts = [one.accepted for one in found]
    return {
        "schema": 1,
        "rule": rule.text,
        "lines": len(found),
        "accepted": verdicts.count(True),
        "rejected": verdicts.count(False),
        "undecided": verdicts.count(None),
        "metrics": [share_right(found, seed=seed)],
        "decided": [
            {"key": one.line.key, "round": one.line.round, "accepted": one.accepted, "marks": one.marks}
            for one in found
        ],
    }


def build_of(lines: Sequence[TableLine], rule: AcceptanceRule) -> BuildIdentity:
    """What a folder must have been built from to be built on; marks that come later join it."""
    settings = {"rule": rule.text, "lines": fingerprint([line.key for line in lines])}
    header = {"kind": KIND, "settings": settings, "versions": {"sightline": sightline.__version__}}
    return BuildIdentity(header, fingerprint(header))


def write(
    found: Sequence[ReviewedLine],
    rule: AcceptanceRule,
    table: str,
    out: Path,
    *,
    seed: int = 0,
    force: bool = False,
) -> VerifiedManifest:
    """Write what was accepted into `table`, with its images, what was not into rejected.csv, for revision,
    verification.json and, last, manifest.json. Lines of which nothing is decided are in neither table.
    The images of rejected lines are there too: whoever revises and reviews them needs to see them.

    Raises UserError where the folder holds something else unless `force` replaces it, EnvironmentFailedError where
    the disk refuses or an image has changed.
    """
    columns = list(found[0].line.cells)
    accepted = [one for one in found if one.accepted]
    rejected = [one for one in found if one.accepted is False]
    named = (one.line for one in [*accepted, *rejected])
    gallery = check_images({image_path(one.cells[IMAGE]): one.image for one in named if one.image})
    rows = [list(one.line.cells.values()) for one in accepted]
    noted = [[*one.line.cells.values(), *_notes(one)] for one in rejected]
    told = msgspec.json.format(msgspec.json.encode(report(found, rule, seed=seed)), indent=1)
    files = {
        table: csv_bytes([columns, *rows]),
        REJECTED: csv_bytes([[*columns, *NOTED], *noted]),
        REPORT: told + b"\n",
    }
    build = build_of([one.line for one in found], rule)
    with held(out, build, force=force) as journal:
        begin(out, build, journal)
        made = copy_images(gallery.files, out)
        for name, content in files.items():
            write_atomically(out / name, [content])
        manifest = VerifiedManifest(
            **build.header,
            groups=len(accepted),
            probes=len(accepted),
            images=len(made),
            fingerprint=build.fingerprint,
            dropped={one.line.key: "people find it wrong" for one in rejected},
            sources=made,
            made={**{name: file_digest(out / name) for name in files}, **made},
            missing=gallery.broken,
        )
        finish(out, manifest, journal)
    return manifest


def _round(row: Mapping[str, str], where: str, path: Path) -> int:
    """The round after the one in which a line was rejected."""
    said = row["round"].strip()
    if not said.isdecimal():
        raise UserError(
            "is no round", file=path, record=where, field="round", found=said, expected="1, 2, ..."
        )
    return int(said) + 1


def _image(cells: Mapping[str, str], folders: Sequence[Path]) -> ImageRef | None:
    """The image of a line in ConTextual's layout, in the first of the folders that has it."""
    url = cells.get(IMAGE)
    if not url:
        return None
    found = [ImageRef(str(folder / image_path(url)), str(folder)) for folder in folders]
    return next((one for one in found if Path(one.path).is_file()), found[0])


def _refuse_other_images(lines: Iterable[TableLine]) -> None:
    """Raise UserError where lines have different images in one place: one folder could not hold both."""
    first: dict[str, str] = {}
    for line in lines:
        if line.image is None:
            continue
        path, place = line.image.path, image_path(line.cells[IMAGE])
        other = first.setdefault(place, path)
        if other != path and file_digest_or_error(other) != file_digest_or_error(path):
            raise UserError(
                f"is another image than {other}",
                file=Path(path),
                record=line.cells[IMAGE],
                field=IMAGE,
                expected="one image of that name, or tables that are verified one by one",
            )


def _path(image: ImageRef | None) -> str:
    return image.path if image is not None and Path(image.path).is_file() else ""


def _cluster(line: TableLine) -> str:
    return line.cells.get(IMAGE) or line.key


def _notes(one: ReviewedLine) -> list[str]:
    votes = [mark.yes for mark in one.marks]
    remarks = "; ".join(f"{mark.by}: {mark.remark}" for mark in one.marks if mark.remark)
    return [str(one.line.round), str(votes.count(True)), str(votes.count(False)), remarks]
