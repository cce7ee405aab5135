"""Where drawn data are written: folders of ours, which may be drawn anew, and of nobody else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.formats.synthetic_marker import MARKER


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files by their names, images first; returns the folder.

    What an earlier drawing left and this one does not name is removed. Raises UserError where the folder
    holds something else.
    """
    if folder.exists() and not (folder / MARKER).exists() and _holds_anything(folder):
        raise UserError(
            "holds something that was not drawn here", file=folder, expected="an empty or a new folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("a file is in the way", file=folder, expected="a new folder") from None
    drawn_before = (folder / MARKER).read_text().splitlines() if (folder / MARKER).exists() else []
    write_atomically(folder / MARKER, ["\n".join(dict.fromkeys([*drawn_before, *files])).encode()])
    for name in sorted(files, key=lambda name: not name.endswith(".png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, [files[name]])
    for name in set(drawn_before) - set(files):
        (folder / name).unlink(missing_ok=True)
    write_atomically(folder / MARKER, ["\n".join(files).encode()])
    return folder


def json_of(content: Any) -> bytes:
    """A JSON file, indented for people."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _holds_anything(folder: Path) -> bool:
    contents: Iterable[Path] = folder.iterdir() if folder.is_dir() else [folder]
    return any(True for _ in contents)
