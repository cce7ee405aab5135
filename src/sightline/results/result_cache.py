"""Judged results that the store keeps, so that the same evaluation is not judged again.

A result is stored with the lines of answers.jsonl and verdicts.jsonl in compressed parts. The key stands for
everything that they depend on, so that nothing has to be invalidated. Most of a line repeats the definition
of its probe, which the store holds anyway: the definitions of a chunk are the dictionary of a part, which
begins with the place of this chunk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.caches import CacheTable
from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.probe_chunks import ProbeChunk
from sightline.metric_types import Result
from sightline.results.folder import Lines

Chunks = Callable[[], Iterator[ProbeChunk]]
"""Reads the chunks of a run's probes in their order."""

PARTS_TOGETHER = 32
"""The number of parts that are stored in one transaction."""

LINES_LEVEL = 3
"""The level of compression of lines. On II-Bench, level 6 takes 2.5 times as long, for 20 bytes a probe."""

_LENGTH, _PLACE = 4, 8


class DamagedResultError(Exception):
    """A cached result, or a part of its lines, does not have the content that was written."""


class CachedResult(Struct, frozen=True):
    """A result, and the first probes without an answer (sample, variant, error).

    `parts` is the number of parts of its lines; None if the lines were not kept.
    """

    result: Result
    unanswered: list[tuple[str, str, str]]
    parts: int | None = None


class ResultCache(NamedTuple):
    """The cached result under one key, if there is one; `chunks` are those of a run with this key."""

    table: CacheTable
    key: bytes
    chunks: Chunks

    def load(self, *, with_lines: bool) -> CachedResult | None:
        """Look the result up.

        Args:
            with_lines: Whether the lines of its files are needed.

        Returns:
            The result; None if it is not stored, or not with all its lines.

        Raises:
            DamagedResultError: It is damaged.
        """
        keys = [self._key("lines"), *([] if with_lines else [self._key("result")])]
        found = self.table.look_up(keys)
        body = next((found[key] for key in keys if key in found), None)
        return None if body is None else decode_cached(_decompressed(body))

    def lines(self, parts: int) -> Iterator[Lines]:
        """Read the lines of a result.

        Args:
            parts: The number of its parts.

        Yields:
            The lines of each part.

        Raises:
            DamagedResultError: A part is damaged or missing.
        """
        chunks = self.chunks()
        chunk = next(chunks, None)
        for number in range(parts):
            key = self._key(f"part {number}")
            body = self.table.look_up([key]).get(key, b"")
            place = int.from_bytes(body[:_PLACE], "big")
            while chunk is not None and chunk.first < place:
                chunk = next(chunks, None)
            definitions = chunk.definitions if chunk is not None and chunk.first == place else b""
            content = _decompressed(body[_PLACE:], definitions)
            end = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
            yield Lines(content[_LENGTH:end], content[end:])

    def add_parts(self, parts: Iterable[bytes]) -> int:
        """Store the parts of the lines; `save` makes them parts of a result.

        Args:
            parts: The parts that a `LineRecorder` makes, in their order.

        Returns:
            Their number.
        """
        number, numbered = 0, enumerate(parts)
        while some := {self._key(f"part {at}"): body for at, body in islice(numbered, PARTS_TOGETHER)}:
            self.table.add(some)
            number += len(some)
        return number

    def save(self, cached: CachedResult) -> None:
        """Store a result, after its parts.

        Args:
            cached: The result.
        """
        body = msgspec.json.encode(cached)
        # The result of a later run must have the same bytes.
        if msgspec.json.encode(decode_cached(body)) == body:
            key = self._key("result" if cached.parts is None else "lines")
            self.table.add({key: Compressor().compress(body)})

    def _key(self, name: str) -> bytes:
        return hashlib.sha256(self.key + name.encode()).digest()


def _decompressed(body: bytes, definitions: bytes = b"") -> bytes:
    try:
        return Compressor(definitions).decompress(body)
    except DamagedBodyError as error:
        raise DamagedResultError(f"a cached result in the store is damaged ({error})") from None


def decode_cached(body: bytes) -> CachedResult:
    """Decode a result.

    Args:
        body: The JSON of a `CachedResult`.

    Returns:
        The result; encoded again, it has the same bytes.

    Raises:
        msgspec.MsgspecError: It is not that of a result.
    """
    cached = msgspec.json.decode(body, type=CachedResult)
    records = msgspec.json.decode(body)["result"]["metrics"]
    # Counts are whole numbers in the files, but the type of their field is float.
    metrics = [
        replace(metric, **{name: value for name, value in record.items() if isinstance(value, int)})
        for metric, record in zip(cached.result.metrics, records, strict=True)
    ]
    return replace(cached, result=replace(cached.result, metrics=metrics))


class LineRecorder:
    """Compresses lines as they come: those of each chunk of probes are a part.

    A group that reaches into the next chunk belongs to the part in which it begins. The run may still grow:
    which chunk is the dictionary of a part matters for its size only.
    """

    def __init__(self, chunks: Iterator[ProbeChunk], keep: Callable[[bytes], None]) -> None:
        """Start without lines.

        Args:
            chunks: The chunks of the run in their order, read as they are needed; at least one with lines.
            keep: Receives each part.
        """
        self._chunks = chunks
        self._keep = keep
        self._chunk: ProbeChunk | None = None
        self._probes_left = 0
        self._answers: list[bytes] = []
        self._verdicts: list[bytes] = []

    def add(self, lines: Lines) -> None:
        """Add the lines of a group.

        Args:
            lines: The lines.
        """
        if not self._answers:
            self._chunk = next(self._chunks, self._chunk)
            assert self._chunk is not None
            self._probes_left += self._chunk.definitions.count(b"\n")
        self._answers.append(lines.answers)
        self._verdicts.append(lines.verdicts)
        self._probes_left -= lines.answers.count(b"\n")
        if self._probes_left <= 0:
            self.finish()

    def finish(self) -> None:
        """Complete the last part."""
        if self._answers:
            assert self._chunk is not None
            answers, verdicts = b"".join(self._answers), b"".join(self._verdicts)
            self._answers, self._verdicts = [], []
            content = len(answers).to_bytes(_LENGTH, "big") + answers + verdicts
            compressed = Compressor(self._chunk.definitions, LINES_LEVEL).compress(content)
            self._keep(self._chunk.first.to_bytes(_PLACE, "big") + compressed)


def recorded(lines: Iterable[Lines], chunks: Iterator[ProbeChunk]) -> Iterator[bytes]:
    """Compress lines.

    Args:
        lines: The lines of each group.
        chunks: The chunks of the run.

    Yields:
        The parts.
    """
    parts: list[bytes] = []
    recorder = LineRecorder(chunks, parts.append)
    for group in lines:
        recorder.add(group)
        yield from parts
        parts.clear()
    recorder.finish()
    yield from parts
