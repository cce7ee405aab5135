"""The lines of a cached result are read as they were recorded, even while the run still grew."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.caches import CacheTable
from sightline.engine.probe_chunks import ProbeChunk
from sightline.results import result_cache
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


class GrowingRun:
    """A run to which chunks are added, not always in the order of their places."""

    def __init__(self, chunks: Sequence[ProbeChunk] = ()) -> None:
        self.chunks = list(chunks)

    def read(self, after: int) -> Iterator[ProbeChunk]:
        """As `Runs.chunks`: page by page, until a page is empty."""
        while page := sorted(chunk for chunk in self.chunks if chunk.first > after)[:2]:
            yield from page
            after = page[-1].first


def _cache(table: Table, run: GrowingRun) -> ResultCache:
    return ResultCache(cast(CacheTable, table), b"key", run.read)


def _chunk(first: int, probes: int) -> ProbeChunk:
    lines = (f'{{"sample": "{first + number}", "question": "{first % 7}"}}' for number in range(probes))
    return ProbeChunk(first, b"1,1\n" + "\n".join(lines).encode(), b"")


def _lines(group: int, probes: int) -> Lines:
    answers = b"".join(b'{"sample": "%d", "answer": "%d"}\n' % (group, number) for number in range(probes))
    return Lines(answers, b'{"sample": "%d", "verdict": "right"}\n' % group)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=12),
    st.lists(st.integers(1, 7), min_size=1, max_size=60),
    st.sampled_from([1, 5, 64]),
    st.data(),
)
def test_lines_are_read_back_whatever_the_run_had_when_they_were_recorded(
    sizes: list[tuple[int, int]], groups: list[int], least: int, data: Any
) -> None:
    chunks, first = [], 0
    for gap, probes in sizes:
        chunks.append(_chunk(first, probes))
        first += gap + probes
    lines = [_lines(number, probes) for number, probes in enumerate(groups)]
    table, whole, stored = Table(), GrowingRun(chunks), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result_cache, "LEAST_LINES", least)
        for _ in range(2):
            # Two processes store the lines under one key, each in its own parts.
            growing = GrowingRun()
            left = data.draw(st.permutations(chunks))

            def grow(growing: GrowingRun = growing, left: list[ProbeChunk] = left) -> Iterator[Lines]:
                for line in lines:
                    for _ in range(data.draw(st.integers(0 if growing.chunks else 1, 3))):
                        growing.chunks += [left.pop()] if left else []
                    yield line

            stored.append(_cache(table, growing).add_lines(recorded(grow(), growing.read)))
    assert len(table.bodies) == sum(one.parts for one in stored)
    for one in stored:
        read = list(_cache(table, whole).lines(one))
        for name in Lines._fields:
            assert b"".join(getattr(part, name) for part in read) == b"".join(
                getattr(line, name) for line in lines
            )


def test_a_recorder_that_has_read_all_chunks_goes_on_with_those_that_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(result_cache, "LEAST_LINES", 1)
    table, chunks = Table(), [_chunk(10 * number, 3) for number in range(4)]
    growing = GrowingRun()

    def grow() -> Iterator[Lines]:
        for number, chunk in enumerate(chunks):
            growing.chunks.append(chunk)
            yield _lines(number, 3)

    assert _cache(table, growing).add_lines(recorded(grow(), growing.read)).parts == len(chunks)
    assert {int.from_bytes(body[:8], "big") for body in table.bodies.values()} == {0, 10, 20, 30}


def test_small_chunks_make_no_small_parts() -> None:
    table, run = Table(), GrowingRun([_chunk(10 * number, 1) for number in range(4)])
    lines = [_lines(number, 1) for number in range(1000)]
    stored = _cache(table, run).add_lines(recorded(lines, run.read))
    assert stored.parts == -(-1000 // result_cache.LEAST_LINES)


def test_a_part_whose_chunk_is_missing_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_cache, "LEAST_LINES", 1)
    table, run = Table(), GrowingRun([_chunk(0, 3), _chunk(10, 3)])
    lines = [_lines(number, 3) for number in range(2)]
    stored = _cache(table, run).add_lines(recorded(lines, run.read))
    assert (stored.parts, table.transactions) == (2, 1)
    with pytest.raises(DamagedResultError):
        list(_cache(table, GrowingRun(run.chunks[:1])).lines(stored))
    table.bodies.popitem()
    with pytest.raises(DamagedResultError):
        list(_cache(table, run).lines(stored))
