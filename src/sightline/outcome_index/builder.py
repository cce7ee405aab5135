"""Writes the index of a run from its judged groups. Its memory is some bytes for each group."""

from __future__ import annotations

import hashlib
import math
import os
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nsmallest

import msgspec
from msgspec import Struct
from sqlalchemy import insert, select, update

from sightline.engine import index_tables
from sightline.engine.core_connection import plain
from sightline.engine.database import insert as insert_rows
from sightline.engine.database import insert_new
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result
from sightline.outcome_index.blocks import BLOCK, LINES, ROWS
from sightline.outcome_index.group_entry import StoredRow, group_entry
from sightline.outcome_index.image_digests import ImageDigests
from sightline.outcome_index.index_key import MOST_WAITING, Awaited, awaited
from sightline.outcome_index.orders import stored_orders
from sightline.outcome_index.rank_set import encode_ranks, integers_to_bytes
from sightline.outcome_index.stored_body import StoredBody
from sightline.results.folder import Lines, lines_of

ORDER_BLOCK = 4096
"""The groups of a row of the order."""

WRITTEN_TOGETHER = 16
"""The blocks of one transaction: other processes wait for it."""

MOST_LISTED = 50
"""The values of a label that lists of filters show, the most frequent ones."""

ALIVE_SECONDS = 120.0
"""An unfinished index without a step for so long is not shown as one that is being built."""

LEFT_SECONDS = 3600.0
"""One without a step for so long belongs to a process that was killed: measuring similarity takes long."""

FacetName = tuple[str, str, str]
"""The field of a filter, the label, and the value."""

Progress = Callable[[int, int], None]
"""Receives the number of the samples that are judged, and that of all samples."""


class IndexBody(Struct, frozen=True):
    """What an index says of its run: the number of its groups, the result as JSON, and what may change."""

    groups: int
    result: bytes
    awaited: Awaited


BODY = StoredBody(IndexBody, "index_runs")


class IndexBuilder:
    """An index that is being built; `finish` makes it the index of its run."""

    def __init__(self, store: Store, run: int, key: bytes, total: int, digests: ImageDigests) -> None:
        self._store, self._run = store, run
        self._digests = digests
        self._orders = array("Q")
        self._words = array("I")
        self._similarities = array("d")
        self._facets: defaultdict[FacetName, array[int]] = defaultdict(lambda: array("I"))
        self._judged: list[JudgedGroup] = []
        self._samples = 0
        self._last_sample: str | None = None
        self._waiting: list[str] = []
        self._judges_failed = False
        table = index_tables.indexes
        with store.database.core_write() as connection:
            left = select(table.c.id).where(
                table.c.body.is_(None), table.c.alive < time.time() - LEFT_SECONDS
            )
            index_tables.drop_indexes(connection, connection.scalars(left).all())
            values = {"run": run, "key": key, "done": 0, "total": total, "alive": time.time()}
            found = connection.execute(insert(table).values(values)).inserted_primary_key
        assert found is not None
        self._id = int(found[0])

    @property
    def samples(self) -> int:
        """The number of samples so far."""
        return self._samples

    def add(self, judged: JudgedGroup) -> None:
        group = judged.group
        if group.id != self._last_sample:
            self._samples += 1
            self._last_sample = group.id
        for outcome in group:
            if not outcome.answered and len(self._waiting) < MOST_WAITING:
                self._waiting.append(outcome.key)
        self._judges_failed |= any(
            verdict.verdict == "error" and verdict.kind == "model" for verdict in judged.verdicts
        )
        self._judged.append(judged)
        if len(self._judged) == BLOCK * WRITTEN_TOGETHER:
            self._write()

    def finish(self, result: Result) -> None:
        """Write the order and the filters; the index replaces earlier ones of its run."""
        self._write()
        keys = tuple(dict.fromkeys(self._waiting))
        body = IndexBody(
            len(self._orders),
            msgspec.json.encode(result),
            awaited(self._store, keys, judges_failed=self._judges_failed),
        )
        numbers = sorted(range(len(self._orders)), key=self._orders.__getitem__)
        ranks = array("I", bytes(4 * len(numbers)))
        for rank, number in enumerate(numbers):
            ranks[number] = rank
        table = index_tables.indexes
        with self._store.database.core_write() as connection:
            writer = plain(connection)
            orders = [
                (
                    self._id,
                    start // ORDER_BLOCK,
                    integers_to_bytes(numbers[start : start + ORDER_BLOCK]),
                    integers_to_bytes(ranks[start : start + ORDER_BLOCK]),
                )
                for start in range(0, len(numbers), ORDER_BLOCK)
            ]
            insert_rows(writer, index_tables.orders.name, ("index_id", "block", "numbers", "ranks"), orders)
            sorts = list(self._sort_rows(ranks))
            insert_rows(writer, index_tables.sorts.name, ("index_id", "name", "block", "ranks"), sorts)
            names = ("index_id", "key", "name", "groups", "listed", "ranks")
            insert_rows(writer, index_tables.facets.name, names, list(self._facet_rows(ranks)))
            earlier = select(table.c.id).where(
                table.c.run == self._run, table.c.id < self._id, table.c.body.is_not(None)
            )
            index_tables.drop_indexes(connection, connection.scalars(earlier).all())
            complete = {
                "body": BODY.encode(body),
                "done": self._samples,
                "total": self._samples,
                "alive": time.time(),
            }
            if not connection.execute(update(table).where(table.c.id == self._id).values(complete)).rowcount:
                raise EnvironmentFailedError(
                    f"the index of run {self._run} was dropped while it was built; repeat the command"
                )

    def abandon(self) -> None:
        """Drop what was written."""
        with self._store.database.core_write() as connection:
            index_tables.drop_indexes(connection, [self._id])

    def _write(self) -> None:
        """Write the groups that were added."""
        sent = self._digests(
            [outcome for judged in self._judged for outcome in judged.group if outcome.images]
        )
        images: dict[str, bytes] = {}
        rows: list[StoredRow] = []
        lines: list[Lines] = []
        for judged in self._judged:
            found = dict(_images(judged, sent))
            images |= found
            first = next((path for outcome in judged.group for path in outcome.images), "")
            entry = group_entry(judged.group, judged.verdicts, found.get(first, b""))
            for facet in entry.facets:
                self._facets[facet].append(len(self._orders))
            self._orders.append(entry.order)
            self._words.append(entry.words)
            similarity = entry.row.similarity
            self._similarities.append(math.nan if similarity is None else similarity)
            rows.append(entry.row)
            lines.append(lines_of(judged))
        first_block = (len(self._orders) - len(rows)) // BLOCK
        blocks = [
            (
                self._id,
                first_block + start // BLOCK,
                ROWS.encode(rows[start : start + BLOCK]),
                LINES.encode(lines[start : start + BLOCK]),
            )
            for start in range(0, len(rows), BLOCK)
        ]
        table = index_tables.indexes
        with self._store.database.core_write() as connection:
            writer = plain(connection)
            insert_rows(writer, index_tables.blocks.name, ("index_id", "block", "rows", "lines"), blocks)
            paths = [(os.fsencode(path), self._id, digest) for path, digest in images.items()]
            insert_new(writer, index_tables.images.name, ("path", "index_id", "digest"), paths)
            step = {"done": self._samples, "alive": time.time()}
            connection.execute(update(table).where(table.c.id == self._id).values(step))
        self._judged.clear()

    def _sort_rows(self, ranks: array[int]) -> Iterable[tuple[object, ...]]:
        for name, found in stored_orders(ranks, self._words, self._similarities).items():
            for start in range(0, len(found), ORDER_BLOCK):
                block = integers_to_bytes(found[start : start + ORDER_BLOCK].tolist())
                yield self._id, name, start // ORDER_BLOCK, block

    def _facet_rows(self, ranks: array[int]) -> Iterable[tuple[object, ...]]:
        listed = set(_most_frequent({name: len(numbers) for name, numbers in self._facets.items()}))
        for name, numbers in self._facets.items():
            found = encode_ranks((ranks[number] for number in numbers), len(ranks))
            encoded = msgspec.msgpack.encode(name)
            yield self._id, facet_key(name), encoded, len(numbers), int(name in listed), found


def facet_key(name: FacetName) -> bytes:
    """The key of a value of a filter."""
    return hashlib.sha256(msgspec.msgpack.encode(name)).digest()[:16]


def drop_index(store: Store, run: int) -> None:
    """Drop the indexes of a run, complete or not."""
    table = index_tables.indexes
    with store.database.core_write() as connection:
        found = connection.scalars(select(table.c.id).where(table.c.run == run)).all()
        index_tables.drop_indexes(connection, found)


def _most_frequent(counts: Mapping[FacetName, int]) -> Iterable[FacetName]:
    """The values that are listed, of each field and label."""
    by_label: defaultdict[tuple[str, str], list[FacetName]] = defaultdict(list)
    for name in counts:
        by_label[name[:2]].append(name)
    for names in by_label.values():
        yield from nsmallest(MOST_LISTED, names, key=lambda name: (-counts[name], name))


def _images(judged: JudgedGroup, sent: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, bytes]]:
    """The path and the digest of each image of a group, where both are known."""
    for outcome in judged.group:
        digests = sent.get(outcome.key, ())
        if len(digests) == len(outcome.images):
            for path, digest in zip(outcome.images, digests, strict=True):
                yield path, bytes.fromhex(digest)
