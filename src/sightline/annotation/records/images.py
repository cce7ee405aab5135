"""The images that annotators keep (CODIS 3.4, II-Bench 3.2, ConTextual 2.3), and a table of all decisions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.judgements import name_of
from sightline.annotation.records.request import RecordsRequest
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes

KEEP = "keep"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Copy the kept images, and write the decisions."""
    rows = [["image", "decision", "votes", "reasons"]]
    kept = 0
    for item in request.state.items.values():
        decision, name = request.decision(item), str(item.hidden["image"])
        if decision.value == KEEP:
            request.copy(item.images["image"][0], f"kept/{name}")
            kept += 1
        votes = ", ".join(f"{name_of(request.annotators, by)}: {vote}" for by, vote in decision.votes.items())
        rows.append(
            [
                name,
                decision.value or "",
                votes,
                _reasons(request, item.number),
            ]
        )
    counts = Counter(row[1] or "undecided" for row in rows[1:])
    write_atomically(request.out / "decisions.csv", [csv_bytes(rows)])
    yield (
        request.out / "decisions.csv",
        ", ".join(f"{count:,} {word}" for word, count in sorted(counts.items())),
    )
    yield request.out / "kept", f"{kept:,} images"


def _reasons(request: RecordsRequest, item: int) -> str:
    values = [entry.values.get("reason", "") for entry in request.state.of_item(item).values()]
    return "; ".join(dict.fromkeys(value for value in values if isinstance(value, str) and value))
