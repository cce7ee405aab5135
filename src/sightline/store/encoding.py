"""How the store holds bodies and texts: zstd with a checksum, and a dictionary where that pays.

Measured on II-Bench: prompts and probes have about the same size with zlib, which takes 2 to 10 times as
long. Short answers are 15 bytes smaller with zlib, in 3 times the time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from threading import local
from typing import NamedTuple

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

from sightline.store.database import Connection, damage, insert_new, rows_in
from sightline.types import Answer, Failure

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


# -- What can be stored and exported: text that UTF-8 or a database cannot hold is replaced


def storable(result: Answer | Failure) -> Answer | Failure:
    r"""Replace lone surrogates, which libraries of providers take over from JSON such as "\ud800"."""
    match result:
        case Answer():
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
