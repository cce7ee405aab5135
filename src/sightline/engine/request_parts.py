"""The parts of a request's canonical JSON: its texts and image digests, and the frame around them.

Requests share texts (instructions, exemplars) and frames (model, sampling), so the store keeps each once.
Parts are cut out as bytes: the JSON that is put together again is the same, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

_HOLE = b"\0"
"""Stands for a part in a frame. JSON cannot contain this byte."""
_IMAGE = re.compile(rb'"image":"([0-9a-f]{64})"')


class RequestParts(NamedTuple):
    """A divided request. `frame` has a hole for each part; a part is a text, or the digest of an image."""

    frame: bytes
    parts: tuple[bytes | ImageDigest, ...]


class ImageDigest(NamedTuple):
    """The SHA-256 of an image that a request shows."""

    digest: bytes


class _Messages(Struct):
    messages: list[tuple[str, list[Raw]]] = []


def divide(canonical: bytes) -> RequestParts:
    """Divide canonical JSON."""
    frame: list[bytes] = []
    parts: list[bytes | ImageDigest] = []
    done = 0
    for raw in _raw_parts(canonical):
        # The same bytes may stand earlier, as a role: the JSON is the same, whichever is cut out.
        start = canonical.index(raw, done)
        part: bytes | ImageDigest = raw
        if image := _IMAGE.search(raw) if raw[:1] == b"{" else None:
            part, raw = ImageDigest(bytes.fromhex(image[1].decode())), image[1]
            start = canonical.index(raw, start)
        frame.append(canonical[done:start])
        parts.append(part)
        done = start + len(raw)
    frame.append(canonical[done:])
    return RequestParts(_HOLE.join(frame), tuple(parts))


def put_together(frame: bytes, parts: Sequence[bytes | ImageDigest]) -> bytes:
    """Put canonical JSON together: the inverse of `divide`."""
    if not parts:
        return frame
    first, *others = frame.split(_HOLE)
    pieces = [first]
    for part, after in zip(parts, others, strict=True):
        pieces += (part.digest.hex().encode() if isinstance(part, ImageDigest) else part, after)
    return b"".join(pieces)


def _raw_parts(canonical: bytes) -> Iterator[bytes]:
    """The parts of the messages: texts as JSON, and other parts as they are."""
    try:
        messages = msgspec.json.decode(canonical, type=_Messages).messages
    except msgspec.DecodeError:
        return
    for _, parts in messages:
        yield from map(bytes, parts)


class _ModelOfRequest(Struct):
    """The part of a request's canonical JSON that says which model it is for."""

    model: str = ""


def model_of(body: bytes) -> str:
    """Read which model a stored request is for.

    Returns:
        The identity of the model; '' if the JSON has none.
    """
    return msgspec.json.decode(body, type=_ModelOfRequest).model
