"""Sets of ranks as whole numbers: bit R is set if rank R is in the set. They are combined with & and |."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.engine.compression import Compressor

_LIST, _BITS = b"\0", b"\1"
_compressor = Compressor()


def set_of(ranks: Sequence[int] | NDArray[np.unsignedinteger[Any]], size: int) -> int:
    bits = np.zeros(size, np.bool_)
    bits[np.asarray(ranks, np.intp)] = True
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def all_ranks(ranks: int) -> list[int]:
    """All ranks of a set; for many ranks, this is faster than `ranks_after`."""
    body = ranks.to_bytes(ranks.bit_length() // 8 + 1, "little")
    found: list[int] = np.flatnonzero(
        np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
    ).tolist()
    return found


def ranks_after(ranks: int, after: int) -> Iterator[int]:
    """The ranks of a set above a rank."""
    rest, rank = ranks >> (after + 1), after
    while rest:
        zeros = (rest & -rest).bit_length()
        rank += zeros
        yield rank
        rest >>= zeros


def last_before(ranks: int, before: int) -> int | None:
    """The highest rank of a set below a rank.

    Returns:
        The rank; None if there is none.
    """
    below = ranks & ((1 << before) - 1)
    return below.bit_length() - 1 if below else None


def page_before(ranks: int, after: int, limit: int) -> int | None:
    """Where the page before begins.

    Returns:
        The rank that it continues after; None if it is the first page.
    """
    rank: int | None = min(after, ranks.bit_length()) + 1
    for _ in range(limit + 1):
        rank = None if rank is None else last_before(ranks, rank)
    return rank


def encode_ranks(ranks: Iterable[int], size: int) -> bytes:
    """Encode a set: as a list if it is small, otherwise as compressed bits.

    Returns:
        The set as bytes.
    """
    found = sorted(ranks)
    if len(found) * 32 < size:
        return _LIST + integers_to_bytes(found)
    bits = set_of(found, size)
    return _BITS + _compressor.compress(bits.to_bytes(size // 8 + 1, "little"))


def decode_ranks(body: bytes, size: int) -> int:
    """Decode a set: the inverse of `encode_ranks`.

    Args:
        body: The set as bytes.
    """
    if body[:1] == _LIST:
        return set_of(integers_of_bytes(body[1:]), size)
    return int.from_bytes(_compressor.decompress(body[1:]), "little")


def integers_to_bytes(values: Iterable[int]) -> bytes:
    """Encode whole numbers from 0 to 2**32 - 1.

    Returns:
        Four bytes for each, little-endian.
    """
    return _little(array("I", values)).tobytes()


def integers_of_bytes(body: bytes) -> array[int]:
    """Decode whole numbers: the inverse of `integers_to_bytes`.

    Args:
        body: Four bytes for each number.
    """
    values = array("I")
    values.frombytes(body)
    return _little(values)


def _little(values: array[int]) -> array[int]:
    if sys.byteorder == "big":
        values.byteswap()
    return values
