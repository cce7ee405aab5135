"""Captions in an image's place: a file that maps image ids to descriptions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.benchmarks.records import refuse_doubles
from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes


def read_captions(file: str | None, needed: bool) -> dict[str, str]:
    """Image id -> caption, from a JSON object, or records of image_id and caption; {} where not needed."""
    if not needed:
        return {}
    if file is None:
        raise UserError(
            "the setting puts captions in the images' place and has none",
            expected="--set captions=FILE, which `sightline build caption` writes",
        )
    path = Path(file)
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and "caption" not in rows[0][1]:
        pairs: list[tuple[Any, Any]] = list(rows[0][1].items())
    else:
        pairs = [(row.get("image_id"), row.get("caption")) for _, row in rows]
    refuse_doubles(path, [name for name, _ in pairs if isinstance(name, str)])
    for name, caption in pairs:
        if not isinstance(name, str) or not isinstance(caption, str):
            raise UserError(
                "is no caption",
                file=path,
                record=name,
                found=caption,
                expected="image_id and caption as texts",
            )
    return dict(pairs)
