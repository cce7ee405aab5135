"""Verified tables: the lines that humans accept, and those that go back for revision.

ConTextual (section 2.3): humans who neither responded nor rated marked every triplet of image, instruction
and response, and found 96 % right. The rest was dropped, and the other authors reviewed what passed. II-Bench
(section 3.2): a question is accepted by 4 of 5 reviewers, and otherwise revised and reviewed again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field, structs

from sightline.annotation.sources.table_lines import REVIEW_COLUMNS, TableLine
from sightline.benchmarks.contextual.folder import COLUMNS, IMAGE, NAME, image_path
from sightline.benchmarks.published import published
from sightline.builders.built_folder import Contents, write_folder
from sightline.builders.checked_images import check_images
from sightline.builders.manifest import (
    BuildManifest,
    build_identity,
    indented_json,
)
from sightline.builders.review_lists import Mark
from sightline.formats.digests import json_digest
from sightline.formats.tables import csv_bytes
from sightline.metric_types import MetricValue
from sightline.metrics.metric_values import clustered_mean

KIND = "verify"
REPORT, REJECTED, ACCEPTED = "verification.json", "rejected.csv", "accepted.csv"


class VerifiedManifest(BuildManifest, frozen=True):
    """The manifest of a verified table; `missing` maps paths of missing or broken images to the reason."""

    missing: Mapping[str, str] = field(default_factory=dict)


class ReviewedLine(Struct, frozen=True):
    """A line with its marks: accepted (True), rejected (False) or undecided (None)."""

    line: TableLine
    marks: tuple[Mark, ...]
    accepted: bool | None


def share_right(reviewed: Sequence[ReviewedLine]) -> MetricValue:
    """Compute the share of accepted lines.

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


def verification_report(reviewed: Sequence[ReviewedLine], rule: str) -> dict[str, Any]:
    """The content of verification.json."""
    verdicts = [one.accepted for one in reviewed]
    return {
        "schema": 1,
        "rule": rule,
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


def write_accepted(
    reviewed: Sequence[ReviewedLine],
    rule: str,
    table: str,
    out: Path,
) -> VerifiedManifest:
    """Write the accepted lines, rejected.csv for revision, verification.json, images/ and, last,
    manifest.json.

    Undecided lines are in neither table. The images of rejected lines are copied too, for revision and
    review.
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
    lines = json_digest([one.line.key for one in reviewed])
    identity = build_identity(KIND, {"rule": rule, "lines": lines})
    manifest = partial(VerifiedManifest, missing=gallery.broken)
    return write_folder(out, identity, contents, gallery.files, manifest=manifest, force=True)


def _cluster(line: TableLine) -> str:
    return line.cells.get(IMAGE) or line.key


def _notes(one: ReviewedLine) -> list[str]:
    votes = [mark.yes for mark in one.marks]
    remarks = "; ".join(f"{mark.by}: {mark.remark}" for mark in one.marks if mark.remark)
    return [str(one.line.round), str(votes.count(True)), str(votes.count(False)), remarks]
