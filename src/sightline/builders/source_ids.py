"""Ids of sources, made from the paths of their images or from names."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sightline.builders.image_io import SUFFIXES

LONGEST_ID = 120
"""Characters of an id made from a path; file systems take names of 255 bytes, a builder adds to them."""


def ids_of(names: Sequence[str]) -> list[str]:
    """An id for each path or name: readable, safe as a file name, and unique even where case is lost.

    Names that occur more than once get a number; a digest tells apart what would become the same, and
    marks what could not stand in a file name.
    """
    often, counted = Counter(names), Counter[str]()
    numbers = []
    for name in names:
        counted[name] += 1
        numbers.append(f"-{counted[name]}" if often[name] > 1 else "")
    plain = [_plain(name) + number for name, number in zip(names, numbers, strict=True)]
    alike = Counter(name.casefold() for name in plain)
    return [
        f"{short}-{_digest(name, number)}"
        if alike[short.casefold()] > 1 or not _says_all(short, name)
        else short
        for short, name, number in zip(plain, names, numbers, strict=True)
    ]


def _plain(path: str) -> str:
    stem = path[: -len(Path(path).suffix)] if path.lower().endswith(SUFFIXES) else path
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem.replace("/", "-")).lstrip(".")[:LONGEST_ID] or "image"


def _says_all(name: str, path: str) -> bool:
    return len(name) < LONGEST_ID and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._/-]*", path) is not None


def _digest(name: str, number: str) -> str:
    # The null byte, which no name holds: the first of two 'x' is not an 'x-1'.
    whole = f"{name}\0{number}" if number else name
    return hashlib.sha256(whole.encode()).hexdigest()[:8]
