"""Compression of the bodies in the store: zstd with a checksum, and with a dictionary where that pays.

Measured on II-Bench: prompts and probes have about the same size with zlib, which takes 2 to 10 times as
long.
Short answers are 15 bytes smaller with zlib, in 3 times the time.
"""

from __future__ import annotations

from threading import local
from typing import NamedTuple

from zstandard import (
    FORMAT_ZSTD1_MAGICLESS,
    ZstdCompressionDict,
    ZstdCompressionParameters,
    ZstdCompressor,
    ZstdDecompressor,
    ZstdError,
    train_dictionary,
)

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

    def __init__(self, dictionary: bytes = b"", level: int = LEVEL) -> None:
        """Prepare it.

        Args:
            dictionary: A trained dictionary, or common texts with the most frequent last; b'' for none.
        """
        self._level = level
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
                self._level,
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
