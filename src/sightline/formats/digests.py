"""The SHA-256 of files, and which of them are no longer what they were."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

READERS = 4
"""Threads that compute digests; hashing lets them run at once."""


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file's content; OSError where it cannot be read."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest_or_error(path: str | Path) -> str | OSError:
    """The SHA-256 of a file's content, or why it cannot be read."""
    try:
        return file_digest(path)
    except OSError as error:
        return error


def changed_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Those of the files (path in the folder -> SHA-256) that are gone or have another content."""
    with ThreadPoolExecutor(READERS) as pool:
        found = pool.map(file_digest_or_error, (folder / name for name in files))
        return [name for (name, known), digest in zip(files.items(), found, strict=True) if digest != known]
