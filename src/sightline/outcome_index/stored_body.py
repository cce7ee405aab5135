"""Bodies of rows of the index: msgpack, compressed. One that is damaged names its row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec

from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.database_errors import damage

T = TypeVar("T")

_compressor = Compressor()


class StoredBody(Generic[T]):
    """How the bodies of a column are encoded; several threads may use it."""

    def __init__(self, kind: type[T], table: str) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._table = table

    def encode(self, content: T) -> bytes:
        """Encode a body."""
        return _compressor.compress(msgspec.msgpack.encode(content))

    def decode(self, body: bytes, store: str, row: int) -> T:
        """Decode a body: the inverse of `encode`."""
        with reading(store, self._table, row):
            return self._decoder.decode(_compressor.decompress(body))


@contextmanager
def reading(store: str, table: str, row: int) -> Iterator[None]:
    """Report a row that cannot be decoded as damage of the store."""
    try:
        yield
    except (DamagedBodyError, msgspec.MsgspecError) as error:
        raise damage(store, table, row, str(error)) from None
