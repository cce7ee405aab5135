"""Image captions from a file, which a setting sends instead of the images."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sightline.benchmarks.records import refuse_repeated_ids
from sightline.decoding import json_records
from sightline.errors import UserError, did_you_mean
from sightline.formats.content import read_bytes


def read_captions(file: str | None, needed: bool) -> dict[str, str]:
    """Read captions: a JSON object {image id: caption}, or records of image_id and caption.

    Args:
        file: The file, or None if the user named none.
    """
    if not needed:
        return {}
    if file is None:
        raise UserError(
            "the setting sends captions instead of images and has none",
            expected="--set captions=FILE, which `sightline build caption` writes",
        )
    path = Path(file)
    rows = json_records(read_bytes(path), path)
    if len(rows) == 1 and "caption" not in rows[0][1]:
        pairs = [(name, _text(rows[0][1], name, path, name)) for name in rows[0][1]]
    else:
        pairs = [
            (_text(row, "image_id", path, where), _text(row, "caption", path, where)) for where, row in rows
        ]
    refuse_repeated_ids(path, [name for name, _ in pairs])
    return dict(pairs)


def _text(record: Mapping[str, Any], name: str, path: Path, where: str) -> str:
    """A field of a record; UserError if it is missing or is no text."""
    if name not in record:
        raise UserError(
            f"lacks {name}{did_you_mean(name, record)}",
            file=path,
            record=where,
            found=", ".join(record),
            expected="image_id and caption",
        )
    if not isinstance(record[name], str):
        raise UserError(
            "is not a text", file=path, record=where, field=name, found=record[name], expected="a text"
        )
    return str(record[name])
