"""Judged results that the store keeps, so that the same evaluation is not judged again.

A result is stored with the lines of answers.jsonl and verdicts.jsonl in compressed parts. The key stands for
everything that they depend on, so that nothing has to be invalidated. Most of a line repeats the definition
of its probe, which the store holds anyway: the definitions of a chunk are the dictionary of a part, which
begins with the place of this chunk.
"""

from __future__ import annotations

import hashlib
import secrets
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

Chunks = Callable[[int], Iterator[ProbeChunk]]
"""Reads the chunks of a run's probes after a place, in the order of their places; -1 for all."""

LEAST_LINES = 64
"""A part has at least so many lines of answers, also where a chunk is smaller, unless it is the last one."""

PARTS_TOGETHER = 32
"""The number of parts that are stored in one transaction."""

LINES_LEVEL = 3
"""The level of compression of lines. On II-Bench, level 6 takes 2.5 times as long, for 20 bytes a probe."""

_LENGTH, _PLACE = 4, 8


class DamagedResultError(Exception):
    """A cached result, or a part of its lines, does not have the content that was written."""


class StoredLines(Struct, frozen=True):
    """The lines of a result: the number of their parts, and the name under which these were stored.

    The same lines may be stored twice, in other parts, for example by two processes.
    """

    name: str
    parts: int


class CachedResult(Struct, frozen=True):
    """A result, and the first probes without an answer (sample, variant, error).

    `lines` is None if the lines were not kept.
    """

    result: Result
    unanswered: list[tuple[str, str, str]]
    lines: StoredLines | None = None


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

    def lines(self, stored: StoredLines) -> Iterator[Lines]:
        """Read the lines of a result.

        Args:
            stored: Where they are.

        Yields:
            The lines of each part.

        Raises:
            DamagedResultError: A part is damaged or missing.
        """
        chunks = self.chunks(-1)
        chunk = next(chunks, None)
        for number in range(stored.parts):
            key = self._key(f"part {stored.name} {number}")
            body = self.table.look_up([key]).get(key, b"")
            place = int.from_bytes(body[:_PLACE], "big")
            while chunk is not None and chunk.first < place:
                chunk = next(chunks, None)
            definitions = chunk.definitions if chunk is not None and chunk.first == place else b""
            content = _decompressed(body[_PLACE:], definitions)
            end = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
            yield Lines(content[_LENGTH:end], content[end:])

    def add_lines(self, parts: Iterable[bytes]) -> StoredLines:
        """Store lines; `save` makes them those of a result.

        Args:
            parts: The parts that a `LineRecorder` makes, in their order.

        Returns:
            Where they are.
        """
        name, count, numbered = secrets.token_hex(8), 0, enumerate(parts)
        while some := {
            self._key(f"part {name} {number}"): body for number, body in islice(numbered, PARTS_TOGETHER)
        }:
            self.table.add(some)
            count += len(some)
        return StoredLines(name, count)

    def save(self, cached: CachedResult) -> None:
        """Store a result, after its parts.

        Args:
            cached: The result.
        """
        body = msgspec.json.encode(cached)
        # The result of a later run must have the same bytes.
        if msgspec.json.encode(decode_cached(body)) == body:
            key = self._key("result" if cached.lines is None else "lines")
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
    the parts depend on the chunks that it has when they begin.
    """

    def __init__(self, chunks: Chunks, keep: Callable[[bytes], None]) -> None:
        """Start without lines.

        Args:
            chunks: The chunks of the run, which has one before it has lines.
            keep: Receives each part.
        """
        self._read = chunks
        self._chunks = chunks(-1)
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
            self._chunk = self._next_chunk()
            self._probes_left += max(LEAST_LINES, self._chunk.definitions.count(b"\n"))
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

    def _next_chunk(self) -> ProbeChunk:
        """The next chunk that the run has now; the last one again if there is none."""
        chunk = next(self._chunks, None)
        if chunk is None and self._chunk is not None:
            self._chunks = self._read(self._chunk.first)
            chunk = next(self._chunks, self._chunk)
        assert chunk is not None
        return chunk


def recorded(lines: Iterable[Lines], chunks: Chunks) -> Iterator[bytes]:
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
