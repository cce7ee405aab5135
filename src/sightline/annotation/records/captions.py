"""The captions that suffice to answer all questions (CODIS, section 5.1: Table 5)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.records.request import RecordsRequest
from sightline.builders.manifest import indented_json
from sightline.formats.files import write_atomically

SUFFICIENT = "sufficient"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the sufficient captions as a file for `--set captions=FILE`."""
    items = list(request.state.items.values())
    decisions = [(item, request.decision(item)) for item in items]
    captions = {
        str(item.hidden["image"]): str(item.hidden["caption"])
        for item, decision in decisions
        if decision.value == SUFFICIENT
    }
    write_atomically(request.out / "captions.json", [indented_json(captions)])
    yield request.out / "captions.json", f"{len(captions):,} of {len(items):,} captions"
