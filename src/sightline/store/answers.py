"""Answers in the store: the key of a request, the encoding of texts, the rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from threading import local
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace
from zstandard import (
    FORMAT_ZSTD1_MAGICLESS,
    ZstdCompressionDict,
    ZstdCompressionParameters,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
    train_dictionary,
)

from sightline.models.base import ServerReport
from sightline.scoring.reasoning import without_reasoning
from sightline.store.claims import Claims
from sightline.store.database import Connection, Database, announce_insert, insert, insert_new, rows_in
from sightline.store.failures import damage, repeat_if_lost, until_kept
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
            _encode(_whole(sampling)),
            KEY_VERSION,
        )

    def keyed(
        self,
        messages: tuple[Message, ...],
        images: Mapping[str, ImageFile],
        draw: int = 0,
        origin: Origin | None = None,
        choices: tuple[str, ...] = (),
    ) -> KeyedRequest:
        start = b'{"choices":%b,' % _encode(choices) if choices else b"{"
        body = b'%b"draw":%d,%b%b%b' % (
            start,
            draw,
            self._before_messages,
            _encode([_message(message, images) for message in messages]),
            self._after_messages,
        )
        return KeyedRequest(
            Request(key_of(body), messages, self._sampling, images, draw, origin, choices), body
        )


def with_key(request: Request, identity: str, fresh: str = "") -> KeyedRequest:
    """Encode a request as canonical JSON: sorted keys, no spaces, whole floats as integers.

    Images enter by digest and transform, never by path. Retries, timeouts and credentials stay out.
    """
    frame = RequestFrame(identity, request.sampling, fresh)
    return frame.keyed(request.messages, request.images, request.draw, request.origin, request.choices)


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


def _whole(value: Any) -> Any:
    """Replace whole floats by integers at any depth: 0.0 and 0 are the same temperature."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(inner) for inner in value]
    return value


# -- How the store holds bodies and texts: zstd with a checksum, and a dictionary where that pays

LEVEL = 6
DICTIONARY_BYTES = 16_384
"""The size of a trained dictionary."""
SEGMENT_BYTES = 500
"""The size of the pieces of texts that a dictionary is made of.

zstd can search for the best size: measured on prompts of II-Bench and CODIS, that takes four times as long
and saves nothing.
"""
MATCH_BYTES = 8
"""The size of the byte sequences that are counted to choose these pieces."""

COMMON_TEXTS = (
    b'"finish_reason":"length","usage":{"prompt_tokens":1024,"completion_tokens":512,"reasoning_tokens":256},'
    b'{"kind":"transient","message":"the server returned ","retry_after":null,"status":500}'
    b'{"draw":0,"messages":[["system",["You are a helpful assistant."]],["user",["Answer:\\n",'
    b'{"image":"","transform":""}]]],"model":"http://127.0.0.1:8000/v1 ","sampling":{"max_tokens":1024,'
    b'"temperature":0,"top_p":1},"v":1}'
    b'{"text":"","reasoning":"","finish_reason":"stop","usage":{"prompt_tokens":1000,"completion_tokens":10},'
    b'"latency":0.1234,"version":"'
)
"""The dictionary that each new store gets. A store keeps its dictionaries, so another text does no harm."""


class DamagedBodyError(Exception):
    """A compressed body does not have the content that was written."""


class Compressor:
    """Compresses and decompresses with one dictionary; several threads may use it."""

    def __init__(self, dictionary: bytes = b"") -> None:
        """A trained dictionary, or common texts with the most frequent last; b'' for none."""
        self._dictionary = ZstdCompressionDict(dictionary) if dictionary else None
        self._contexts = local()

    def compress(self, body: bytes) -> bytes:
        return self._of_this_thread().compressor.compress(body)

    def decompress(self, frame: bytes) -> bytes:
        try:
            return self._of_this_thread().decompressor.decompress(frame)
        except (ZstdError, MemoryError) as error:
            raise DamagedBodyError(str(error)) from None

    def _of_this_thread(self) -> _Contexts:
        contexts: _Contexts | None = getattr(self._contexts, "value", None)
        if contexts is None:
            parameters = ZstdCompressionParameters.from_level(
                LEVEL,
                format=FORMAT_ZSTD1_MAGICLESS,
                write_checksum=True,
                write_content_size=True,
                write_dict_id=False,
            )
            contexts = self._contexts.value = _Contexts(
                ZstdCompressor(dict_data=self._dictionary, compression_params=parameters),
                ZstdDecompressor(dict_data=self._dictionary, format=FORMAT_ZSTD1_MAGICLESS),
            )
        return contexts


class _Contexts(NamedTuple):
    compressor: ZstdCompressor
    decompressor: ZstdDecompressor


def trained_dictionary(texts: list[bytes]) -> bytes:
    try:
        trained = train_dictionary(DICTIONARY_BYTES, [*texts], k=SEGMENT_BYTES, d=MATCH_BYTES)
        return trained.as_bytes()
    except ZstdError:
        return b"".join(texts)[-DICTIONARY_BYTES:]


# -- The dictionaries of a store, and the bodies that are compressed with them

PLAIN = 0
"""The number of no dictionary."""
COMMON = 1
"""The number of the dictionary that every store has."""
MOST = 255
"""The highest number: it is one byte of each body."""


class Dictionaries:
    """Compresses and decompresses the bodies of one store, `name`; several threads may use it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._compressors = {PLAIN: Compressor()}

    def newest(self, connection: Connection) -> int:
        self._read_new(connection)
        return max(self._compressors)

    def add(self, connection: Connection, number: int, dictionary: bytes) -> None:
        """Add a dictionary. If another process added one with this number, that one stays."""
        row = (number, self.compress(connection, dictionary, PLAIN))
        insert_new(connection, "dictionaries", ("id", "body"), [row])

    def compress(self, connection: Connection, body: bytes, number: int) -> bytes:
        return bytes((number,)) + self._compressor(connection, number).compress(body)

    def decompress(self, connection: Connection, body: bytes, table: str, row: int) -> bytes:
        try:
            return self._compressor(connection, body[0]).decompress(body[1:])
        # TypeError: SQLite keeps a value of another type in any column.
        except (DamagedBodyError, IndexError, TypeError) as error:
            raise damage(self.name, table, row, str(error)) from None

    def _compressor(self, connection: Connection, number: int) -> Compressor:
        if number not in self._compressors:
            self._read_new(connection)
        if number not in self._compressors:
            raise DamagedBodyError(f"dictionary {number} is missing")
        return self._compressors[number]

    def _read_new(self, connection: Connection) -> None:
        query = "SELECT id, body FROM dictionaries WHERE id > ({}) ORDER BY id"
        for number, body in rows_in(connection, query, [max(self._compressors)]):
            if not (isinstance(body, bytes) and body and body[0] in self._compressors):
                raise damage(self.name, "dictionaries", number, "it is not a dictionary")
            self._compressors[number] = Compressor(self.decompress(connection, body, "dictionaries", number))


def add_common_dictionary(connection: Connection) -> None:
    """Add the dictionary that every store has."""
    Dictionaries("").add(connection, COMMON, COMMON_TEXTS)


# -- Texts of requests, each kept once, by its digest: prompts share instructions, exemplars and options

FIRST_TRAINING = 96
"""The number of texts at which the first dictionary is trained."""
GROWTH = 16
"""The next dictionary is trained when the store has this many times as many texts."""
SAMPLE = 192
"""The latest texts that a dictionary is trained on."""


class Texts:
    """The texts of one store. If `training_due`, the store has enough new ones for another dictionary."""

    def __init__(self, dictionaries: Dictionaries) -> None:
        self._dictionaries = dictionaries
        self.training_due = False

    def add(self, connection: Connection, texts: Iterable[bytes]) -> dict[bytes, int]:
        digests = {text: text_digest(text) for text in texts}
        numbers = self._numbers(connection, list(digests.values()))
        new = [text for text, digest in digests.items() if digest not in numbers]
        if new:
            newest = self._dictionaries.newest(connection)
            rows = [(digests[text], self._dictionaries.compress(connection, text, newest)) for text in new]
            insert_new(connection, "texts", ("digest", "body"), rows)
            numbers |= self._numbers(connection, [digests[text] for text in new])
            self.training_due = max(numbers.values()) >= _texts_before_training(newest)
        return {text: numbers[digest] for text, digest in digests.items()}

    def read(self, connection: Connection, numbers: Iterable[int]) -> dict[int, bytes]:
        rows = rows_in(connection, "SELECT id, body FROM texts WHERE id IN ({})", sorted(set(numbers)))
        return {row: self._dictionaries.decompress(connection, body, "texts", row) for row, body in rows}

    def train(self, connection: Connection) -> None:
        """Train a dictionary on the latest texts, if the store has grown enough since the last one."""
        newest = self._dictionaries.newest(connection)
        self.training_due = False
        rows = connection.rows("SELECT id, body FROM texts ORDER BY id DESC LIMIT ?", (SAMPLE,))
        if newest < MOST and rows[0][0] >= _texts_before_training(newest):
            texts = [self._dictionaries.decompress(connection, body, "texts", row) for row, body in rows]
            self._dictionaries.add(connection, newest + 1, trained_dictionary(texts[::-1]))

    def _numbers(self, connection: Connection, digests: Sequence[bytes]) -> dict[bytes, int]:
        return dict(rows_in(connection, "SELECT digest, id FROM texts WHERE digest IN ({})", digests))


def _texts_before_training(newest: int) -> int:
    return FIRST_TRAINING * int(GROWTH ** (newest - 1))


def text_digest(text: bytes) -> bytes:
    """The digest of a text. It is short: the key of a request proves that its texts are the right ones."""
    return hashlib.sha256(text).digest()[:16]


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


# -- Requests, their answers, and checks of endpoints in the store. Attempts are only added, never changed


class State(IntEnum):
    """What an attempt led to. Failures have a state by their kind."""

    ANSWERED = 1
    TRANSIENT = 2
    PERMANENT = 3
    BLOCKED = 4


_ANSWERED = int(State.ANSWERED)
"""Compared with many rows, where a member of the enumeration takes longer."""

KEY_PART = 8
"""The first bytes of its request's key, which a result in the store begins with."""

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
                key.hex(): self._result(connection, key, row, state, body)
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
                    result = self._result(connection, binary, row, state, body)
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
                    self._dictionaries.compress(connection, _content(attempt), COMMON),
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

    def _result(
        self, connection: Connection, key: bytes, row: int, state: int, body: bytes
    ) -> Answer | Failure:
        content = self._dictionaries.decompress(connection, body, "answers", row)
        try:
            return decode_result(state, result_for(key, content))
        except ValueError as error:
            raise damage(self._database.name, "answers", row, str(error)) from None


def state_of(result: Answer | Failure) -> State:
    return State[result.kind.upper()] if isinstance(result, Failure) else State.ANSWERED


def _content(attempt: Attempt) -> bytes:
    return bytes.fromhex(attempt.key)[:KEY_PART] + msgspec.json.encode(attempt.result)


def result_for(key: bytes, content: bytes) -> bytes:
    """The JSON of a result. ValueError if it is that of another request than the one with this key.

    Rows of two files get mixed where one is copied over the other while a process uses it.
    """
    if content[:KEY_PART] != key[:KEY_PART]:
        raise ValueError("it is the result of another request")
    return content[KEY_PART:]


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
