"""The digest of the code of the package: what it computed may be used again only by the same code."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import sightline

_NUMERIC = ("numpy", "scipy")
"""The libraries that compute numbers of a result; another version may change their last digits."""


def code_digest() -> bytes:
    """The digest of the code that plans, judges and counts.

    Returns:
        A SHA-256 of path, size and time of all files of the package, and of the versions of Python and of
        the libraries that compute numbers. Hidden and temporary files of editors are left out.
    """
    digest = hashlib.sha256(sys.version.encode())
    folder = os.path.dirname(sightline.__file__)
    stamps = [_stamp(entry.path, entry.stat()) for entry in _files(folder)]
    stamps += [_stamp(path, os.stat(path)) for path in _numeric_libraries()]
    digest.update("".join(sorted(stamps)).encode())
    return digest.digest()


def unchanged_code() -> bytes | None:
    """The digest of the code, if it did not change since this process loaded it.

    Returns:
        The digest; None where modules may have been loaded before and after a change, so that nobody knows
        which code they are.
    """
    return _LOADED_CODE if code_digest() == _LOADED_CODE else None


def is_own(part: object) -> bool:
    """Tell whether the code of an object is covered by the digest.

    Args:
        part: The object; None has no code.

    Returns:
        False for code of a plugin.
    """
    return part is None or type(part).__module__.partition(".")[0] == sightline.__name__


def _stamp(path: str, info: os.stat_result) -> str:
    return f"{path} {info.st_size} {info.st_mtime_ns}\n"


def _files(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.name != "__pycache__":
                    yield from _files(entry.path)
            elif not entry.name.startswith((".", "#")):
                yield entry


def _numeric_libraries() -> Iterable[str]:
    found = map(importlib.util.find_spec, _NUMERIC)
    return [str(Path(spec.origin).parent / "version.py") for spec in found if spec and spec.origin]


_LOADED_CODE = code_digest()
