"""Temporary files and folders: their process locks them; what nobody locks is left over from a killed one."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from sightline.errors import EnvironmentFailedError

try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is removed there.
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_path(path: Path) -> Path:
    """A new name in the same folder for what becomes `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a folder beside `path` for what becomes it, which may be renamed, and remove it at the end."""
    remove_leftovers(path)
    folder = temporary_path(path)
    try:
        folder.mkdir()
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise EnvironmentFailedError(f"{path}: cannot be written: {error.strerror or error}") from None
    try:
        hold(descriptor)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process writes the files of a folder together."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def hold(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, which the end of the process does too."""
    if fcntl is not None:
        # A file system without locks keeps its leftovers.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of a file or folder. What a live process has is locked, and stays."""
    for name in _found(str(path.parent)).pop(path.name, ()):
        _remove_unless_held(path.with_name(name))


@lru_cache(maxsize=64)
def _found(folder: str) -> dict[str, list[str]]:
    """Name -> its temporary files when this process first wrote there: a folder may have many files."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    with suppress(OSError):
        for name in os.listdir(folder):
            if match := _TEMPORARY.fullmatch(name):
                names[match["name"]].append(name)
    return names


def _remove_unless_held(path: Path) -> None:
    if fcntl is None:
        return
    # OSError: it is locked, it is gone, or it belongs to another user.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)
