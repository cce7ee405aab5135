"""Requests, their answers, and checks of endpoints in the store. Attempts are only added, never changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from sightline.models.base import ServerReport
from sightline.store.claims import Claims
from sightline.store.database import (
    Connection,
    Database,
    announce_insert,
    damage,
    insert,
    insert_new,
    repeat_if_lost,
    rows_in,
    until_kept,
)
from sightline.store.encoding import COMMON, Dictionaries, Texts, storable_text
from sightline.types import Answer, Failure


class State(IntEnum):
    """What an attempt led to. Failures have a state by their kind."""

    ANSWERED = 1
    TRANSIENT = 2
    PERMANENT = 3
    BLOCKED = 4


_ANSWERED = int(State.ANSWERED)
"""Compared with many rows, where a member of the enumeration takes longer."""

_ANSWER = msgspec.json.Decoder(Answer)
_FAILURE = msgspec.json.Decoder(Failure)


class Attempt(msgspec.Struct, frozen=True):
    """One call to be stored: the request's key and canonical JSON, and its result."""

    key: str
    request: bytes
    result: Answer | Failure


class CachedAnswer(NamedTuple):
    """The answer that the store gives to a request, and when it was stored (seconds since 1970)."""

    answer: Answer
    created: float


class Answers:
    """All requests that were sent, with their results. Use it as `store.answers`."""

    def __init__(
        self, database: Database, dictionaries: Dictionaries, claims: Claims, clock: Callable[[], float]
    ) -> None:
        """`clock` returns the seconds since 1970."""
        self._database = database
        self._dictionaries = dictionaries
        self._requests = Requests(dictionaries)
        self._claims = claims
        self._clock = clock

    @repeat_if_lost
    def settled(self, keys: Sequence[str], *, retry_errors: bool) -> set[str]:
        """Find the requests that need no new call. Their results are not read."""
        with self._database.read() as connection:
            found = _counting(connection, "requests.key, answers.state", _binary(keys))
        return {key.hex() for key, state in found if is_settled(state, retry_errors=retry_errors)}

    @repeat_if_lost
    def look_up(self, keys: Sequence[str]) -> dict[str, Answer | Failure]:
        columns = "requests.key, answers.state, answers.id, answers.body"
        with self._database.read() as connection:
            return {
                key.hex(): self._result(connection, row, state, body)
                for key, state, row, body in _counting(connection, columns, _binary(keys))
            }

    @repeat_if_lost
    def counting(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, float]]:
        """Find the attempts whose results `look_up` returns, by keys as bytes. Results are not read."""
        columns = "requests.key, answers.state, answers.id, answers.created"
        with self._database.read() as connection:
            found = _counting(connection, columns, keys)
        return {key: (row, created) for key, _, row, created in found}

    @repeat_if_lost
    def answers_before(self, keys: Sequence[str], time: float) -> dict[str, CachedAnswer]:
        """Look up answers that were stored before a time in seconds since 1970."""
        found: dict[str, CachedAnswer] = {}
        with self._database.read() as connection:
            columns = "requests.key, answers.id, answers.state, answers.body, answers.created"
            for binary, row, state, body, created in _attempts(connection, columns, _binary(keys)):
                key = binary.hex()
                if created < time and key not in found:
                    result = self._result(connection, row, state, body)
                    if isinstance(result, Answer):
                        found[key] = CachedAnswer(result, created)
        return found

    def add(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts in one transaction, which also ends the claims on their keys."""
        now = self._clock()
        until_kept(lambda is_repeat: self._add(attempts, now, is_repeat=is_repeat))
        if self._requests.texts.training_due:
            self._train()

    def _add(self, attempts: Sequence[Attempt], now: float, *, is_repeat: bool) -> None:
        """Add attempts, unless the lost transaction that is repeated did so."""
        requests = {bytes.fromhex(attempt.key): attempt.request for attempt in attempts}
        with self._database.write() as connection:
            numbers = self._requests.add(connection, requests)
            list_models(connection, requests.values())
            rows = [
                (
                    numbers[bytes.fromhex(attempt.key)],
                    state_of(attempt.result),
                    self._dictionaries.compress(connection, msgspec.json.encode(attempt.result), COMMON),
                    now,
                )
                for attempt in attempts
            ]
            if not (is_repeat and _are_added(connection, [row[:2] for row in rows], now)):
                insert(connection, "answers", ("request", "state", "body", "created"), rows)
            self._claims.end(connection, list(requests))

    @repeat_if_lost
    def images(self, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
        with self._database.read() as connection:
            found = self._requests.images(connection, _binary(keys))
        return {key.hex(): tuple(map(bytes.hex, digests)) for key, digests in found.items()}

    @repeat_if_lost
    def last_attempt(self) -> int:
        with self._database.read() as connection:
            return connection.rows("SELECT max(id) FROM answers")[0][0] or 0

    @repeat_if_lost
    def request(self, key: str) -> bytes | None:
        """The canonical JSON of a request; None if the store has no attempt of it."""
        with self._database.read() as connection:
            return self._requests.canonical(connection, bytes.fromhex(key))

    @repeat_if_lost
    def _train(self) -> None:
        with self._database.write() as connection:
            self._requests.texts.train(connection)

    def _result(self, connection: Connection, row: int, state: int, body: bytes) -> Answer | Failure:
        content = self._dictionaries.decompress(connection, body, "answers", row)
        try:
            return decode_result(state, content)
        except msgspec.MsgspecError as error:
            raise damage(self._database.name, "answers", row, str(error)) from None


def state_of(result: Answer | Failure) -> State:
    return State[result.kind.upper()] if isinstance(result, Failure) else State.ANSWERED


def decode_result(state: int, content: bytes) -> Answer | Failure:
    return _ANSWER.decode(content) if state == _ANSWERED else _FAILURE.decode(content)


def is_settled(state: int, *, retry_errors: bool) -> bool:
    return state == State.ANSWERED or (state != State.TRANSIENT and not retry_errors)


def _binary(keys: Sequence[str]) -> list[bytes]:
    return [bytes.fromhex(key) for key in keys]


def _are_added(connection: Connection, rows: Sequence[tuple[int, int]], now: float) -> bool:
    """Whether the requests have attempts of this time and these states."""
    query = "SELECT request, state, created FROM answers WHERE request IN ({})"
    found = rows_in(connection, query, [request for request, _ in rows])
    return {(request, state) for request, state, created in found if created == now}.issuperset(rows)


def _counting(connection: Connection, columns: str, keys: Sequence[bytes]) -> Iterable[Any]:
    """The attempt of each request that counts: its first answer, or its latest failure.

    The columns begin with the key and the state.
    """
    found: dict[bytes, Any] = {}
    for row in _attempts(connection, columns, keys):
        earlier = found.get(row[0])
        if earlier is None or earlier[1] != _ANSWERED:
            found[row[0]] = row
    return found.values()


def _attempts(connection: Connection, columns: str, keys: Sequence[bytes]) -> Iterator[tuple[Any, ...]]:
    """Columns of the attempts of some requests, in the order in which they were made."""
    query = (
        f"SELECT {columns} FROM requests JOIN answers ON answers.request = requests.id "
        "WHERE requests.key IN ({}) ORDER BY answers.id"
    )
    return rows_in(connection, query, keys)


# -- What the store holds about endpoints: checks, and reports of servers

CheckResult = Literal["first contact", "same", "changed", "unsure", "incomplete", "by name", "not checked"]


class EndpointRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One check of an endpoint, or its first contact; `report` is what the server says of itself."""

    identity: str
    host: str
    result: CheckResult
    detail: str = ""
    asked: int = 0
    report: ServerReport | None = None


def list_models(connection: Connection, requests: Iterable[bytes]) -> None:
    identities = {storable_text(model_of(canonical)) for canonical in requests}
    insert_new(connection, "models", ("identity",), ((identity,) for identity in identities))


class EndpointLog:
    """The endpoints in one open store. Its methods block, like those of the store."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def now(self) -> float:
        """The time of the store's clock in seconds since 1970."""
        return self._clock()

    def add(self, record: EndpointRecord) -> None:
        self._add_once(record.identity, msgspec.json.encode(record), self._clock())

    @repeat_if_lost
    def _add_once(self, identity: str, body: bytes, created: float) -> None:
        """Add a record, unless an attempt whose connection was lost added it."""
        row = (storable_text(identity), body, created)
        added = "SELECT id FROM endpoints WHERE identity = ? AND body = ? AND created = ?"
        with self._database.write() as connection:
            if not connection.rows(added, row):
                connection.change("INSERT INTO endpoints (identity, body, created) VALUES (?, ?, ?)", row)

    @repeat_if_lost
    def records(self, identity: str | None = None) -> list[tuple[float, EndpointRecord]]:
        """The records of a model, None for all, in order, each with its time (seconds since 1970)."""
        of_model = "" if identity is None else "WHERE identity = ?"
        values = () if identity is None else (storable_text(identity),)
        query = f"SELECT id, created, body FROM endpoints {of_model} ORDER BY created, id"
        with self._database.read() as connection:
            rows = connection.rows(query, values)
        return [(created, self._decode(number, body)) for number, created, body in rows]

    def _decode(self, row: int, body: bytes) -> EndpointRecord:
        try:
            return msgspec.json.decode(body, type=EndpointRecord)
        except (ValueError, TypeError) as error:
            raise damage(self._database.name, "endpoints", row, str(error)) from None

    @repeat_if_lost
    def has_requests(self, identity: str) -> bool:
        query = "SELECT identity FROM models WHERE identity = ?"
        with self._database.read() as connection:
            return bool(connection.rows(query, (storable_text(identity),)))


# -- Requests in the store: each is a row of numbers of texts, from which its canonical JSON is put
#    together

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
        return dict(rows_in(connection, "SELECT key, id FROM requests WHERE key IN ({})", keys))

    def images(self, connection: Connection, keys: Sequence[bytes]) -> dict[bytes, tuple[bytes, ...]]:
        rows = rows_in(connection, "SELECT id, key, body FROM requests WHERE key IN ({})", keys)
        return {
            bytes(key): tuple(part for part in self.references(number, body) if isinstance(part, bytes))
            for number, key, body in rows
        }

    def canonical(self, connection: Connection, key: bytes) -> bytes | None:
        """The canonical JSON of a request; None if the store has no attempt of it."""
        for row, body in rows_in(connection, "SELECT id, body FROM requests WHERE key IN ({})", [key]):
            return self.read(connection, {row: body})[row]
        return None

    def by_number(self, connection: Connection, numbers: Iterable[int]) -> dict[int, StoredRequest]:
        query = "SELECT id, key, body FROM requests WHERE id IN ({})"
        rows = list(rows_in(connection, query, sorted(set(numbers))))
        canonical = self.read(connection, {number: body for number, _, body in rows})
        return {number: StoredRequest(key, canonical[number]) for number, key, _ in rows}

    def read(self, connection: Connection, bodies: Mapping[int, bytes]) -> dict[int, bytes]:
        references = {number: self.references(number, body) for number, body in bodies.items()}
        named = {one for several in references.values() for one in several if isinstance(one, int)}
        texts = self.texts.read(connection, named)
        return {number: self._put_together(number, several, texts) for number, several in references.items()}

    def references(self, number: int, body: bytes) -> list[int | bytes]:
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
    """The identity of the model that a stored request is for; '' if the JSON has none."""
    return msgspec.json.decode(body, type=_ModelOfRequest).model
