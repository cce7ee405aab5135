"""Requests in the store: each is a row of numbers of texts, from which its canonical JSON is put together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Raw, Struct

from sightline.store.database import Connection, announce_insert, damage, insert_new, rows_in
from sightline.store.encoding import Dictionaries, Texts

_DECODER = msgspec.msgpack.Decoder(list[int | bytes])
"""The body of a request: the number of its frame, then for each part the number of a text, or a digest."""


class StoredRequest(NamedTuple):
    """A request of the store: its key and its canonical JSON."""

    key: bytes
    canonical: bytes


class Requests:
    """The requests of one store, and their texts."""

    def __init__(self, dictionaries: Dictionaries) -> None:
        self.texts = Texts(dictionaries)
        self._name = dictionaries.name

    def add(self, connection: Connection, requests: Mapping[bytes, bytes]) -> dict[bytes, int]:
        """Add the requests that the store does not have."""
        announce_insert(connection, "texts")
        numbers = self.numbers(connection, list(requests))
        new = {key: divide(canonical) for key, canonical in requests.items() if key not in numbers}
        if new:
            pieces = (piece for frame, parts in new.values() for piece in (frame, *parts))
            texts = self.texts.add(connection, (piece for piece in pieces if isinstance(piece, bytes)))
            bodies = {}
            for key, (frame, parts) in new.items():
                refs = [texts[part] if isinstance(part, bytes) else part.digest for part in parts]
                bodies[key] = msgspec.msgpack.encode([texts[frame], *refs])
            insert_new(connection, "requests", ("key", "body"), bodies.items())
            numbers |= self.numbers(connection, list(new))
        return numbers

    def numbers(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, int]:
        """Look up the numbers of requests."""
        return dict(rows_in(connection, "SELECT key, id FROM requests WHERE key IN ({})", keys))

    def images(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, ...]]:
        """Look up which images requests show."""
        rows = rows_in(connection, "SELECT id, key, body FROM requests WHERE key IN ({})", keys)
        return {
            bytes(key): tuple(part for part in self.references(number, body) if isinstance(part, bytes))
            for number, key, body in rows
        }

    def canonical(self, connection: Connection, key: bytes) -> bytes | None:
        """Read a request.

        Returns:
            Its canonical JSON; None if the store has no attempt of it.
        """
        for row, body in rows_in(connection, "SELECT id, body FROM requests WHERE key IN ({})", [key]):
            return self.read(connection, {row: body})[row]
        return None

    def by_number(self, connection: Connection, numbers: Iterable[int]) -> dict[int, StoredRequest]:
        query = "SELECT id, key, body FROM requests WHERE id IN ({})"
        rows = list(rows_in(connection, query, sorted(set(numbers))))
        canonical = self.read(connection, {number: body for number, _, body in rows})
        return {number: StoredRequest(key, canonical[number]) for number, key, _ in rows}

    def read(self, connection: Connection, bodies: Mapping[int, bytes]) -> dict[int, bytes]:
        """Put requests together."""
        references = {number: self.references(number, body) for number, body in bodies.items()}
        named = {one for several in references.values() for one in several if isinstance(one, int)}
        texts = self.texts.read(connection, named)
        return {number: self._put_together(number, several, texts) for number, several in references.items()}

    def references(self, number: int, body: bytes) -> list[int | bytes]:
        """Find what a request consists of."""
        try:
            return _DECODER.decode(body)
        except (msgspec.DecodeError, TypeError) as error:
            raise damage(self._name, "requests", number, str(error)) from None

    def _put_together(
        self, number: int, references: Sequence[int | bytes], texts: Mapping[int, bytes]
    ) -> bytes:
        try:
            frame, *parts = references
            return put_together(
                texts[int(frame)],
                [texts[one] if isinstance(one, int) else ImageDigest(one) for one in parts],
            )
        except (KeyError, ValueError):
            raise damage(self._name, "requests", number, "its texts are not those of a request") from None


# -- The parts of a request's canonical JSON: its texts and image digests, and the frame around them

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
