"""Judged results that the store keeps, so that the same evaluation is not judged again.

A result is stored with the lines of answers.jsonl and verdicts.jsonl in compressed parts. The key stands for
everything that they depend on, so that nothing has to be invalidated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from zstandard import ZstdCompressor, ZstdDecompressor

from sightline.engine.caches import Caches
from sightline.metric_types import Result
from sightline.results.folder import Lines

PART_BYTES = 1 << 20
"""The size of a part before compression."""

_LENGTH = 4


class CachedResult(Struct, frozen=True):
    """A result, and the first probes without an answer (sample, variant, error).

    `parts` is the number of parts of its lines; None if the lines were not kept.
    """

    result: Result
    unanswered: list[tuple[str, str, str]]
    parts: int | None = None


class ResultCache(NamedTuple):
    """The cached result under one key, if there is one."""

    caches: Caches
    key: bytes

    def load(self, *, with_lines: bool) -> CachedResult | None:
        """Look the result up.

        Args:
            with_lines: Whether the lines of its files are needed.

        Returns:
            The result; None if it is not stored, or not with all its lines.
        """
        keys = [self._key("lines"), *([] if with_lines else [self._key("result")])]
        found = self.caches.results(keys)
        body = next((found[key] for key in keys if key in found), None)
        return None if body is None else _decoded(body)

    def lines(self, parts: int) -> Iterator[Lines]:
        """Read the lines of a result.

        Args:
            parts: The number of its parts.

        Yields:
            The lines of each part.
        """
        decompress = ZstdDecompressor().decompress
        for number in range(parts):
            key = self._key(f"part {number}")
            content = decompress(self.caches.results([key])[key])
            end = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
            yield Lines(content[_LENGTH:end], content[end:])

    def add_part(self, number: int, lines: Lines) -> None:
        """Store a part of the lines; `save` makes it part of a result.

        Args:
            number: Its number, from 0.
            lines: The lines.
        """
        length = len(lines.answers).to_bytes(_LENGTH, "big")
        body = ZstdCompressor().compress(length + lines.answers + lines.verdicts)
        self.caches.add_results({self._key(f"part {number}"): body})

    def save(self, cached: CachedResult) -> None:
        """Store a result, after its parts.

        Args:
            cached: The result.
        """
        body = msgspec.json.encode(cached)
        # The result of a later run must have the same bytes.
        if msgspec.json.encode(_decoded(body)) == body:
            self.caches.add_results({self._key("result" if cached.parts is None else "lines"): body})

    def _key(self, name: str) -> bytes:
        return hashlib.sha256(self.key + name.encode()).digest()


def _decoded(body: bytes) -> CachedResult:
    cached = msgspec.json.decode(body, type=CachedResult)
    records = msgspec.json.decode(body)["result"]["metrics"]
    # Counts are whole numbers in the files, but the type of their field is float.
    metrics = [
        replace(metric, **{name: value for name, value in record.items() if isinstance(value, int)})
        for metric, record in zip(cached.result.metrics, records, strict=True)
    ]
    return replace(cached, result=replace(cached.result, metrics=metrics))


class LineRecorder:
    """Collects lines in parts of PART_BYTES, and stores each part when it is full."""

    def __init__(self, cache: ResultCache) -> None:
        """Start without lines.

        Args:
            cache: Where the parts are stored.
        """
        self.parts = 0
        self._cache = cache
        self._answers: list[bytes] = []
        self._verdicts: list[bytes] = []
        self._size = 0

    def add(self, lines: Lines) -> None:
        """Add the lines of a group.

        Args:
            lines: The lines.
        """
        self._answers.append(lines.answers)
        self._verdicts.append(lines.verdicts)
        self._size += len(lines.answers) + len(lines.verdicts)
        if self._size >= PART_BYTES:
            self.finish()

    def finish(self) -> None:
        """Store the last part."""
        if self._size:
            self._cache.add_part(self.parts, Lines(b"".join(self._answers), b"".join(self._verdicts)))
            self.parts += 1
            self._answers, self._verdicts, self._size = [], [], 0
