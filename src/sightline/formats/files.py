"""Writing files atomically, and checks before writing."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicFile


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file under a temporary name, then rename it: readers see the old file or the complete new one."""
    with AtomicFile(path) as file:
        for piece in pieces:
            file.write(piece)


def json_list(entries: Iterable[Any]) -> Iterator[bytes]:
    """Encode a JSON list entry by entry, as `json.dumps` with an indentation of 4 does.

    >>> b"".join(json_list([{"a": 1}, 2])) == json.dumps([{"a": 1}, 2], indent=4).encode()
    True
    """
    mark = b"["
    for entry in entries:
        # Line breaks within texts are escaped, so that all others are those of the layout.
        yield mark + b"\n    " + json.dumps(entry, indent=4).replace("\n", "\n    ").encode()
        mark = b","
    yield b"[]" if mark == b"[" else b"\n]"


def refuse_overwriting(
    path: Path, force: bool | None, option: str = "--out", *, read: Iterable[Path] = ()
) -> None:
    """Check that a command can write a file without replacing another one.

    Args:
        force: Whether the file may be replaced; None: the command has no --force.
    """
    if path.is_dir():
        raise UserError("is a folder", file=path, expected=f"a file for {option}")
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UserError(
            "is an input of this command and would be replaced", file=path, expected=f"another {option}"
        )
    if path.exists() and not force:
        or_force = "" if force is None else ", or --force"
        raise UserError("exists already", file=path, expected=f"another {option}{or_force}")
    if not path.parent.is_dir():
        raise UserError("there is no such folder", file=path.parent, expected=f"an existing one for {option}")
    refuse_unwritable(path.parent, option)


def refuse_unwritable(folder: Path, option: str = "--out") -> None:
    """Check that a folder, or the folder in which it must be created, can be written.

    A file is created on trial, because permissions do not show a read-only file system.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file", file=folder, expected=f"a folder for {option}")
    existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        expected = f"a writable folder for {option}"
        raise UserError(f"cannot be written: {error.strerror}", file=folder, expected=expected) from None
