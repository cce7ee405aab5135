"""Image captions from a file, which a setting sends instead of the images."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sightline.benchmarks.records import refuse_repeated_ids
from sightline.errors import UserError
from sightline.formats.files import json_records, read_bytes


def read_captions(file: str | None, needed: bool) -> dict[str, str]:
    """Read captions: a JSON object {image id: caption}, or records of image_id and caption.

    Args:
        file: The file, or None if the user named none.
        needed: Whether the setting sends captions.

    Returns:
        Image id -> caption; empty if captions are not needed.

    Raises:
        UserError: Captions are needed and there is no file, or a record of it is wrong.
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
        pairs: list[tuple[Any, Any]] = list(rows[0][1].items())
    else:
        pairs = [(row.get("image_id"), row.get("caption")) for _, row in rows]
    refuse_repeated_ids(path, [name for name, _ in pairs if isinstance(name, str)])
    for name, caption in pairs:
        if not isinstance(name, str) or not isinstance(caption, str):
            raise UserError(
                "is not a caption",
                file=path,
                record=name,
                found=caption,
                expected="image_id and caption as texts",
            )
    return dict(pairs)
