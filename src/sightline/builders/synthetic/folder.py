"""Writes synthetic data, only into folders that hold nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.formats.synthetic_marker import MARKER


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files of a synthetic data set, images first.

    Files of an earlier data set in the folder are removed, unless they are written again.

    Args:
        folder: Where to write.
        files: Path in the folder -> content.

    Returns:
        `folder`.

    Raises:
        UserError: The folder holds files that are not synthetic data.
    """
    if folder.exists() and not (folder / MARKER).exists() and _is_not_empty(folder):
        raise UserError(
            "holds files that are not synthetic data", file=folder, expected="an empty or a new folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("is a file", file=folder, expected="a new folder") from None
    earlier = (folder / MARKER).read_text().splitlines() if (folder / MARKER).exists() else []
    write_atomically(folder / MARKER, ["\n".join(dict.fromkeys([*earlier, *files])).encode()])
    for name in sorted(files, key=lambda name: not name.endswith(".png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, [files[name]])
    for name in set(earlier) - set(files):
        (folder / name).unlink(missing_ok=True)
    write_atomically(folder / MARKER, ["\n".join(files).encode()])
    return folder


def json_bytes(content: Any) -> bytes:
    """Encode an indented JSON file.

    Args:
        content: Plain data.

    Returns:
        The content of the file.
    """
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _is_not_empty(folder: Path) -> bool:
    contents: Iterable[Path] = folder.iterdir() if folder.is_dir() else [folder]
    return any(True for _ in contents)
