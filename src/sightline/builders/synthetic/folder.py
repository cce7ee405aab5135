"""Writes synthetic data, only into folders that hold nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

import msgspec

from sightline.errors import UserError
from sightline.formats.files import write_atomically
from sightline.formats.synthetic_marker import MARKER


def write_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write the files of a synthetic data set, images first.

    Files of an earlier data set in the folder are removed, unless they are written again.
    """
    if folder.exists() and not (folder / MARKER).exists() and _is_not_empty(folder):
        raise UserError(
            "holds files that are not synthetic data", file=folder, expected="an empty or a new folder"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UserError("is a file", file=folder, expected="a new folder") from None
    earlier = _written_earlier(folder)
    write_atomically(folder / MARKER, ["\n".join(dict.fromkeys([*earlier, *files])).encode()])
    for name in sorted(files, key=lambda name: not name.endswith(".png")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, [files[name]])
    for name in set(earlier) - set(files):
        (folder / name).unlink(missing_ok=True)
    write_atomically(folder / MARKER, ["\n".join(files).encode()])
    return folder


def _written_earlier(folder: Path) -> list[str]:
    """The files that the marker lists, which are removed; UserError if one is outside the folder."""
    marker = folder / MARKER
    try:
        names = marker.read_text(encoding="utf-8").splitlines() if marker.exists() else []
    except (OSError, UnicodeDecodeError):
        raise UserError("cannot be read", file=marker, expected="an empty or a new folder") from None
    for name in names:
        path = PurePath(name)
        if not name.isprintable() or path.is_absolute() or ".." in path.parts:
            raise UserError("names a file outside its folder", file=marker, found=name)
    return names


def json_bytes(content: Any) -> bytes:
    """Encode an indented JSON file."""
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def _is_not_empty(folder: Path) -> bool:
    contents: Iterable[Path] = folder.iterdir() if folder.is_dir() else [folder]
    return any(True for _ in contents)
