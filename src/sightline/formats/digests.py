"""The SHA-256 of files, and the files whose content has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

READERS = 4
"""The number of threads that compute digests; hashing releases the interpreter lock."""


def file_digest(path: str | Path) -> str:
    """The SHA-256 of the content of a file.

    Args:
        path: The file.

    Returns:
        The digest in hexadecimal.

    Raises:
        OSError: The file cannot be read.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest_or_error(path: str | Path) -> str | OSError:
    """The SHA-256 of the content of a file, or the error of reading it.

    Args:
        path: The file.

    Returns:
        The digest in hexadecimal, or the error.
    """
    try:
        return file_digest(path)
    except OSError as error:
        return error


def changed_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The files that are missing or have another content.

    Args:
        folder: The folder of the files.
        files: Path in the folder -> expected SHA-256.

    Returns:
        The paths of the changed files, in the same order.
    """
    with ThreadPoolExecutor(READERS) as pool:
        digests = pool.map(file_digest_or_error, (folder / name for name in files))
        return [
            name
            for (name, expected), digest in zip(files.items(), digests, strict=True)
            if digest != expected
        ]
