"""The lines of a cached result are read as they were recorded, even while the run still grew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.caches import CacheTable
from sightline.engine.probe_chunks import ProbeChunk
from sightline.results.folder import Lines
from sightline.results.result_cache import DamagedResultError, ResultCache, recorded


class Table:
    """A table of bodies in memory."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}
        self.transactions = 0

    def look_up(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self.bodies[key] for key in keys if key in self.bodies}

    def add(self, bodies: Mapping[bytes, bytes]) -> None:
        self.bodies |= bodies
        self.transactions += 1


def _cache(table: Table, chunks: Sequence[ProbeChunk]) -> ResultCache:
    return ResultCache(cast(CacheTable, table), b"key", lambda: iter(chunks))


def _chunk(first: int, probes: int) -> ProbeChunk:
    lines = (f'{{"sample": "{first + number}", "question": "{first % 7}"}}' for number in range(probes))
    return ProbeChunk(first, b"1,1\n" + "\n".join(lines).encode(), b"")


def _lines(group: int, probes: int) -> Lines:
    answers = b"".join(b'{"sample": "%d", "answer": "%d"}\n' % (group, number) for number in range(probes))
    return Lines(answers, b'{"sample": "%d", "verdict": "right"}\n' % group)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=12),
    st.lists(st.integers(1, 7), min_size=1, max_size=60),
    st.data(),
)
def test_lines_are_read_back_whichever_chunks_there_were_when_they_were_recorded(
    sizes: list[tuple[int, int]], groups: list[int], data: Any
) -> None:
    chunks, first = [], 0
    for gap, probes in sizes:
        chunks.append(_chunk(first, probes))
        first += gap + probes
    seen = data.draw(st.sets(st.sampled_from(chunks), min_size=1).map(sorted))
    lines = [_lines(number, probes) for number, probes in enumerate(groups)]
    table = Table()
    parts = _cache(table, []).add_parts(recorded(lines, iter(seen)))
    assert len(table.bodies) == parts
    read = list(_cache(table, chunks).lines(parts))
    for name in Lines._fields:
        assert b"".join(getattr(one, name) for one in read) == b"".join(getattr(one, name) for one in lines)


def test_a_part_whose_chunk_is_missing_is_damaged() -> None:
    table, chunks = Table(), [_chunk(0, 3), _chunk(10, 3)]
    lines = [_lines(number, 3) for number in range(2)]
    parts = _cache(table, []).add_parts(recorded(lines, iter(chunks)))
    assert (parts, table.transactions) == (2, 1)
    with pytest.raises(DamagedResultError):
        list(_cache(table, chunks[:1]).lines(parts))
    table.bodies.popitem()
    with pytest.raises(DamagedResultError):
        list(_cache(table, chunks).lines(parts))
