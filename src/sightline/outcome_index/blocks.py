"""Compressed blocks of groups: rows for lists, and lines of answers.jsonl and verdicts.jsonl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.database_errors import damage
from sightline.engine.store import Store
from sightline.outcome_index.group_entry import StoredRow
from sightline.outcome_index.stored_body import StoredBody
from sightline.results.folder import Lines

BLOCK = 64
"""The groups of a block."""

ROWS = StoredBody(list[StoredRow], "index_blocks")
"""The row of each group of a block."""

LINES = StoredBody(list[Lines], "index_blocks")
"""The lines of each group of a block."""

READ_TOGETHER = 16
"""The blocks that are read by one query."""


class StoredBlocks:
    """The blocks of one index. Several threads may use it."""

    def __init__(self, store: Store, index_id: int) -> None:
        self._store = store
        self._id = index_id

    def rows(self, numbers: Sequence[int]) -> Iterator[StoredRow]:
        """Read rows; their blocks are in memory together."""
        wanted = sorted({(number - 1) // BLOCK for number in numbers})
        blocks = {
            block: ROWS.decode(body, self._store.name, block) for block, body in self._read("rows", wanted)
        }
        for number in numbers:
            block, place = divmod(number - 1, BLOCK)
            yield blocks[block][place]

    def lines(self, numbers: Iterable[int]) -> Iterator[Lines]:
        """Read lines of answers.jsonl and of verdicts.jsonl; few blocks are in memory at a time."""
        by_block = groupby(numbers, key=lambda number: (number - 1) // BLOCK)
        members = ((block, list(several)) for block, several in by_block)
        while together := dict(islice(members, READ_TOGETHER)):
            for block, body in self._read("lines", list(together)):
                lines = LINES.decode(body, self._store.name, block)
                for number in together[block]:
                    yield lines[(number - 1) % BLOCK]

    def _read(self, column: str, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        table = index_tables.blocks.c
        query = select(table.block, table[column]).where(table.index_id == self._id, table.block.in_(wanted))
        with self._store.database.core_read() as connection:
            found = {int(block): bytes(body) for block, body in connection.execute(query)}
        for block in wanted:
            if block not in found:
                raise damage(self._store.name, "index_blocks", block, "it is missing")
            yield block, found[block]
