"""Answers in the store: the key of a request, what is stored of a result, the rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.models.base import ServerReport
from sightline.scoring.reasoning import without_reasoning
from sightline.store.claims import Claims
from sightline.store.database import (
    Connection,
    Database,
    damage,
    insert,
    insert_new,
    repeat_if_lost,
    rows_in,
    until_kept,
)
from sightline.types import Answer, Failure, ImageFile, Message, Origin, Request, Text

KEY_VERSION = 1

_encode = msgspec.json.Encoder(order="sorted").encode


class KeyedRequest(NamedTuple):
    """A request with its key, and the canonical JSON that the store keeps with the answer."""

    request: Request
    canonical: bytes


class RequestFrame:
    """What all requests to one model under the same options share, encoded once: it makes their keys."""

    def __init__(self, identity: str, sampling: Mapping[str, Any], fresh: str = "") -> None:
        self._sampling = sampling
        # The names of the fields are sorted: choices, draw, fresh, messages, model, sampling, v.
        tag = b'"fresh":%b,' % _encode(fresh) if fresh else b""
        self._before_messages = tag + b'"messages":'
        self._after_messages = b',"model":%b,"sampling":%b,"v":%d}' % (
            _encode(identity),
            _encode(whole(sampling)),
            KEY_VERSION,
        )

    def draws(
        self,
        messages: tuple[Message, ...],
        images: Mapping[str, ImageFile],
        choices: tuple[str, ...] = (),
    ) -> Callable[[int, Origin | None], KeyedRequest]:
        """The request of each draw, from its number and origin; the content is encoded once."""
        before = b'{"choices":%b,"draw":' % _encode(choices) if choices else b'{"draw":'
        content = _encode([_message(message, images) for message in messages])
        after = b",%b%b%b" % (self._before_messages, content, self._after_messages)

        def keyed(draw: int, origin: Origin | None) -> KeyedRequest:
            body = b"%b%d%b" % (before, draw, after)
            request = Request(key_of(body), messages, self._sampling, images, draw, origin, choices)
            return KeyedRequest(request, body)

        return keyed


def with_key(request: Request, identity: str, fresh: str = "") -> KeyedRequest:
    """Encode a request as canonical JSON: sorted keys, no spaces, whole floats as integers.

    Images enter by digest and transform, never by path. Retries, timeouts and credentials stay out.
    """
    frame = RequestFrame(identity, request.sampling, fresh)
    keyed = frame.draws(request.messages, request.images, request.choices)
    return keyed(request.draw, request.origin)


def key_of(canonical: bytes) -> str:
    return hashlib.sha256(canonical).hexdigest()


def _message(message: Message, images: Mapping[str, ImageFile]) -> list[Any]:
    parts: list[Any] = []
    for part in message.parts:
        if isinstance(part, Text):
            parts.append(part.text)
        else:
            image = images[part.path]
            parts.append({"image": image.digest, "transform": image.transform})
    return [message.role, parts]


def whole(value: Any) -> Any:
    """Replace whole floats by integers at any depth: 0.0 and 0 are the same temperature."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: whole(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [whole(inner) for inner in value]
    return value


# -- What is stored: answers apart from their reasoning, and text that UTF-8 and a database can hold


def storable(result: Answer | Failure) -> Answer | Failure:
    r"""Cut the reasoning from an answer, and replace lone surrogates.

    Libraries of providers take surrogates over from JSON such as "\ud800".
    """
    match result:
        case Answer():
            result = without_reasoning(result)
            texts = (result.text, result.reasoning, result.finish_reason, result.version)
            if all(map(_is_storable, texts)):
                return result
            text, reasoning, finish_reason, version = map(_replaced, texts)
            return replace(
                result, text=text, reasoning=reasoning, finish_reason=finish_reason, version=version
            )
        case Failure():
            if _is_storable(result.message):
                return result
            return replace(result, message=_replaced(result.message))


def storable_text(text: str) -> str:
    """Replace lone surrogates and NUL characters: PostgreSQL has no NUL character in a column of text."""
    return (text if _is_storable(text) else _replaced(text)).replace("\0", "\ufffd")


def _is_storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _replaced(text: str) -> str:
    """The text with U+FFFD for each lone surrogate; a pair becomes the character that it stands for."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


# -- Requests and their answers in the store: a row each attempt. Attempts are only added, never changed


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

COLUMNS = ("key", "state", "created", "request", "result")


class Attempt(Struct, frozen=True):
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

    def __init__(self, database: Database, claims: Claims, clock: Callable[[], float]) -> None:
        self._database = database
        self._claims = claims
        self._clock = clock
        self._models: set[str] = set()

    @repeat_if_lost
    def settled(self, keys: Sequence[str], *, retry_errors: bool) -> set[str]:
        """Find the requests that need no new call. Their results are not read."""
        with self._database.read() as connection:
            found = _counting(connection, "key, state", _binary(keys))
        return {key.hex() for key, state in found if is_settled(state, retry_errors=retry_errors)}

    @repeat_if_lost
    def look_up(self, keys: Sequence[str]) -> dict[str, Answer | Failure]:
        with self._database.read() as connection:
            found = _counting(connection, "key, state, id, result", _binary(keys))
        return {key.hex(): self._result(row, state, result) for key, state, row, result in found}

    @repeat_if_lost
    def counting(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, float]]:
        """Find the attempts whose results `look_up` returns, by keys as bytes. Results are not read."""
        with self._database.read() as connection:
            found = _counting(connection, "key, state, id, created", keys)
        return {key: (row, created) for key, _, row, created in found}

    @repeat_if_lost
    def answers_before(self, keys: Sequence[str], time: float) -> dict[str, CachedAnswer]:
        """Look up answers that were stored before a time in seconds since 1970."""
        found: dict[str, CachedAnswer] = {}
        with self._database.read() as connection:
            for key, row, state, result, created in _attempts(
                connection, "key, id, state, result, created", _binary(keys)
            ):
                if state == _ANSWERED and created < time and key.hex() not in found:
                    answer = self._result(row, state, result)
                    assert isinstance(answer, Answer)
                    found[key.hex()] = CachedAnswer(answer, created)
        return found

    def add(self, attempts: Sequence[Attempt]) -> None:
        """Add attempts in one transaction, which also ends the claims on their keys."""
        now = self._clock()
        rows = [
            (
                bytes.fromhex(attempt.key),
                state_of(attempt.result),
                now,
                attempt.request.decode(),
                msgspec.json.encode(attempt.result).decode(),
            )
            for attempt in attempts
        ]
        models = {storable_text(model_of(attempt.request)) for attempt in attempts} - self._models
        until_kept(lambda is_repeat: self._add(rows, models, is_repeat=is_repeat))
        self._models |= models

    def _add(self, rows: Sequence[tuple[Any, ...]], models: set[str], *, is_repeat: bool) -> None:
        """Add attempts, unless the lost transaction that is repeated did so."""
        keys = list(dict.fromkeys(row[0] for row in rows))
        with self._database.write() as connection:
            if not (is_repeat and _are_added(connection, keys, rows[0][2])):
                insert(connection, "answers", COLUMNS, rows)
            insert_new(connection, "models", ("identity",), [(model,) for model in models])
            self._claims.end(connection, keys)

    @repeat_if_lost
    def images(self, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Look up the digests of the images that requests show."""
        with self._database.read() as connection:
            rows = list(_attempts(connection, "key, id, request", _binary(keys)))
        return {key.hex(): self._images(row, request) for key, row, request in rows}

    @repeat_if_lost
    def last_attempt(self) -> int:
        with self._database.read() as connection:
            return connection.rows("SELECT max(id) FROM answers")[0][0] or 0

    @repeat_if_lost
    def request(self, key: str) -> bytes | None:
        """The canonical JSON of a request; None if the store has no attempt of it."""
        with self._database.read() as connection:
            for _, request in _attempts(connection, "key, request", _binary([key])):
                return str(request).encode()
        return None

    def _result(self, row: int, state: int, result: str) -> Answer | Failure:
        try:
            return decode_result(state, result)
        except (ValueError, TypeError) as error:
            raise damage(self._database.name, "answers", row, str(error)) from None

    def _images(self, row: int, request: str) -> tuple[str, ...]:
        try:
            messages = _MESSAGES.decode(request).messages
        except (ValueError, TypeError) as error:
            raise damage(self._database.name, "answers", row, str(error)) from None
        return tuple(part["image"] for _, parts in messages for part in parts if isinstance(part, dict))


def state_of(result: Answer | Failure) -> State:
    return State[result.kind.upper()] if isinstance(result, Failure) else State.ANSWERED


def decode_result(state: int, result: str) -> Answer | Failure:
    return _ANSWER.decode(result) if state == _ANSWERED else _FAILURE.decode(result)


def is_settled(state: int, *, retry_errors: bool) -> bool:
    return state == State.ANSWERED or (state != State.TRANSIENT and not retry_errors)


class _Messages(Struct):
    """The messages of a request's canonical JSON: roles with their texts and images."""

    messages: list[tuple[str, list[str | dict[str, str]]]] = []


_MESSAGES = msgspec.json.Decoder(_Messages)


class _ModelOfRequest(Struct):
    """The part of a request's canonical JSON that says which model it is for."""

    model: str = ""


_MODEL = msgspec.json.Decoder(_ModelOfRequest)


def model_of(request: bytes | str) -> str:
    """The identity of the model that a stored request is for; '' if the JSON has none."""
    return _MODEL.decode(request).model


def _binary(keys: Sequence[str]) -> list[bytes]:
    return [bytes.fromhex(key) for key in keys]


def _are_added(connection: Connection, keys: Sequence[bytes], now: float) -> bool:
    """Whether the requests have attempts of this time."""
    return {key for key, created in _attempts(connection, "key, created", keys) if created == now} == {*keys}


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
    return rows_in(connection, f"SELECT {columns} FROM answers WHERE key IN ({{}}) ORDER BY id", keys)


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
