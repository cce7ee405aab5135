"""Digests: the SHA-256 of JSON, of texts, of files and of sets of texts, all in hexadecimal."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

READERS = 4
"""The number of threads that compute digests; hashing releases the interpreter lock."""


def json_digest(content: Any, unknown: Callable[[Any], Any] | None = None) -> str:
    """The SHA-256 of plain data as JSON with sorted keys.

    `unknown`: makes plain data of any other object; None refuses those.
    """
    return hashlib.sha256(msgspec.json.encode(content, order="sorted", enc_hook=unknown)).hexdigest()


def text_digest(text: str) -> str:
    """The SHA-256 of a text in UTF-8, whose surrogates without a partner count too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest_or_error(path: str | Path) -> str | OSError:
    """The SHA-256 of the content of a file, or the error of reading it."""
    try:
        return file_digest(path)
    except OSError as error:
        return error


def changed_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The files that are missing or have another content."""
    with ThreadPoolExecutor(READERS) as pool:
        digests = pool.map(file_digest_or_error, (folder / name for name in files))
        return [
            name
            for (name, expected), digest in zip(files.items(), digests, strict=True)
            if digest != expected
        ]


_DIGITS = 32
"""Hexadecimal digits of a digest."""

_BETWEEN = "-"
"""Stands between the digest of the texts and that of the first images."""


class SetDigest:
    """The digest of texts in any order: the sum of their SHA-256, so that memory does not grow.

    >>> first, second = SetDigest(), SetDigest()
    >>> for text in (b"a", b"b"):
    ...     first.add(text)
    >>> for text in (b"b", b"a"):
    ...     second.add(text)
    >>> first.hexdigest() == second.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._sum = 0

    def add(self, text: bytes) -> None:
        self._sum += int.from_bytes(hashlib.sha256(text).digest())

    def hexdigest(self) -> str:
        return f"{self._sum % 16**_DIGITS:0{_DIGITS}x}"


def data_digest(texts: str, images: str) -> str:
    """Join the digest of the texts of all samples and that of their first images."""
    return texts + _BETWEEN + images


def texts_of_data_digest(digest: str) -> str:
    """Take the digest of the texts from that of a run or of a result."""
    texts = digest.partition(_BETWEEN)[0]
    return texts if len(texts) == _DIGITS else ""
