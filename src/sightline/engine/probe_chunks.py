"""Chunks of the probes of a run: what the probes are, apart from the keys of their answers.

Runs of other models, and later runs of the same one, have chunks with the same definitions, so that the store
keeps these once. Keys are cut out as bytes, wherever they stand: the JSON put together again is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

KEY_BYTES = 32
"""The bytes of a request key."""

_KEY = re.compile(rb'"key":"([0-9a-f]{64})"')
_HOLE = b"\0"
"""Stands for a key in the definitions. JSON cannot contain this byte."""


class ProbeChunk(NamedTuple):
    """Some probes of a run, in the order of their positions.

    `first` is the position of the first one. `definitions` holds a line of the distances between positions,
    and the JSON of each probe in a line. `keys` are the keys, of partners too, in the order of the holes.
    """

    first: int
    definitions: bytes
    keys: bytes


def as_chunk(numbered: Sequence[tuple[int, bytes]]) -> ProbeChunk:
    ordered = sorted(numbered)
    distances = (later - earlier for (earlier, _), (later, _) in pairwise(ordered))
    pieces = _KEY.split(b"\n".join(body for _, body in ordered))
    positions = ",".join(map(str, distances)).encode()
    keys = bytes.fromhex(b"".join(pieces[1::2]).decode())
    return ProbeChunk(ordered[0][0], positions + b"\n" + _HOLE.join(pieces[::2]), keys)


def split_keys(keys: bytes) -> list[bytes]:
    """The keys of a chunk, one by one."""
    return [keys[start : start + KEY_BYTES] for start in range(0, len(keys), KEY_BYTES)]


def own_keys(chunk: ProbeChunk) -> list[bytes]:
    lines = chunk.definitions.split(b"\n")[1:]
    keys, at = [], 0
    for line in lines:
        keys.append(chunk.keys[at * KEY_BYTES : (at + 1) * KEY_BYTES])
        at += line.count(_HOLE)
    return keys


def probes_of(chunk: ProbeChunk) -> list[tuple[int, bytes]]:
    """The probes of a chunk: the inverse of `as_chunk`.

    Raises:
        ValueError: The keys are not those of the definitions.
    """
    distances, _, definitions = chunk.definitions.partition(b"\n")
    before, *others = definitions.split(_HOLE)
    keys = chunk.keys.hex().encode()
    if len(keys) != 2 * KEY_BYTES * len(others):
        raise ValueError(f"it has {len(chunk.keys)} bytes of keys for {len(others)} answers")
    pieces = [before]
    for start, after in zip(range(0, len(keys), 2 * KEY_BYTES), others, strict=True):
        pieces += (b'"key":"', keys[start : start + 2 * KEY_BYTES], b'"', after)
    bodies = b"".join(pieces).split(b"\n")
    steps = map(int, distances.split(b",")) if distances else ()
    return list(zip(accumulate(steps, initial=chunk.first), bodies, strict=True))
