"""Makes ids of sources from the paths of their images or from names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from sightline.builders.image_io import SUFFIXES
from sightline.formats.digests import text_digest

LONGEST_ID = 120
"""Largest length of an id in characters. File systems take names of 255 bytes; builders append to ids."""


def ids_of(names: Sequence[str]) -> list[str]:
    """Make ids that are readable, safe as file names, and unique even if case is ignored.

    Names that occur more than once get a number. A digest is appended to ids that would otherwise be equal or
    that lost characters which a file name cannot hold.
    """
    often, counted = Counter(names), Counter[str]()
    numbers = []
    for name in names:
        counted[name] += 1
        numbers.append(f"-{counted[name]}" if often[name] > 1 else "")
    plain = [_plain(name) + number for name, number in zip(names, numbers, strict=True)]
    same = Counter(name.casefold() for name in plain)
    return [
        f"{short}-{_digest(name, number)}"
        if same[short.casefold()] > 1 or not _is_lossless(short, name)
        else short
        for short, name, number in zip(plain, names, numbers, strict=True)
    ]


def _plain(path: str) -> str:
    stem = path[: -len(Path(path).suffix)] if path.lower().endswith(SUFFIXES) else path
    return re.sub(r"[^A-Za-z0-9._-]", "_", stem.replace("/", "-")).lstrip(".")[:LONGEST_ID] or "image"


def _is_lossless(name: str, path: str) -> bool:
    return len(name) < LONGEST_ID and re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._/-]*", path) is not None


def _digest(name: str, number: str) -> str:
    # No name holds the null byte, so that the first of two 'x' differs from an 'x-1'.
    key = f"{name}\0{number}" if number else name
    return text_digest(key)[:8]
