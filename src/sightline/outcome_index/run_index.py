"""The index of one run, as it is read: pages of groups, their order, filters and search."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from threading import Lock

import msgspec
import numpy as np
from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.store import Store
from sightline.errors import NoSuchRecordError
from sightline.metric_types import Result
from sightline.outcome_index.blocks import BLOCK, StoredBlocks
from sightline.outcome_index.builder import IndexBody, Progress
from sightline.outcome_index.filter_sets import FilterSets
from sightline.outcome_index.group_detail import group_detail, read_lines
from sightline.outcome_index.group_entry import StoredRow
from sightline.outcome_index.group_filter import EVERY, GroupFilter
from sightline.outcome_index.indexed_images import IndexedImages
from sightline.outcome_index.orders import Order, OrderedPage, StoredOrders
from sightline.outcome_index.rank_set import (
    all_ranks,
    integers_of_bytes,
    last_before,
    page_before,
    ranks_after,
    set_of,
)
from sightline.outcome_index.text_search import TextIndex, searched_text
from sightline.outcome_index.types import (
    Facets,
    GroupDetail,
    GroupFacts,
    GroupPage,
    GroupRow,
    IndexedImage,
    Neighbours,
)

PAGE = 25
"""The groups of a page."""

WORDS_TOGETHER = 1024
"""The groups whose words are written in one transaction: other processes wait for it."""


class RunIndex:
    """A complete index. Its groups have numbers from 1, in the order of the samples. Threads may share it."""

    def __init__(self, store: Store, run: int, index_id: int, key: bytes, body: IndexBody) -> None:
        self.store = store
        self.run = run
        self.id = index_id
        self.key = key
        self.groups = body.groups
        self.awaited = body.awaited
        self.images = IndexedImages(store, run, index_id)
        self.blocks = StoredBlocks(store, index_id)
        self.result_json = body.result
        self._words = TextIndex(store.database, index_id)
        self._words_made = Lock()
        self._sets = FilterSets(store, index_id, body.groups, self._search)
        self._orders = StoredOrders(store, index_id, lambda: self.ranks)

    @cached_property
    def result(self) -> Result:
        """The content of metrics.json."""
        return msgspec.json.decode(self.result_json, type=Result)

    def page(
        self,
        wanted: GroupFilter = EVERY,
        after: int | None = None,
        limit: int = PAGE,
        order: Order = "informative",
    ) -> GroupPage:
        """Read a page of the groups.

        Args:
            after: `next` of the page before; None for the first page.
        """
        chosen = self.select(wanted)
        if order == "informative":
            return self.page_of(chosen, after, limit)
        return self._page(self._orders.page(order, chosen, after, limit), chosen)

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders in which the groups can be read."""
        return self._orders.names

    def page_of(self, chosen: int, after: int | None, limit: int) -> GroupPage:
        """Read a page of a set of groups.

        Args:
            after: The rank of the last group of the page before; None for the first page.
        """
        ranks = list(islice(ranks_after(chosen, -1 if after is None else after), limit + 1))
        previous = None if after is None else page_before(chosen, after, limit)
        following = ranks[limit - 1] if len(ranks) > limit else None
        return self._page(OrderedPage(ranks[:limit], previous, following), chosen)

    def neighbours(
        self, number: int, wanted: GroupFilter = EVERY, order: Order = "informative"
    ) -> Neighbours:
        """Find the groups beside a group in a list."""
        self._check(number)
        chosen, rank = self.select(wanted), self.ranks[number - 1]
        if order == "informative":
            before, behind = last_before(chosen, rank), next(ranks_after(chosen, rank), None)
        else:
            before, behind = self._orders.neighbours(order, chosen, rank)
        return Neighbours(*(None if one is None else self.numbers[one] + 1 for one in (before, behind)))

    def select(self, wanted: GroupFilter) -> int:
        """Find the groups that fulfil a filter."""
        return self._sets.select(wanted)

    def count(self, wanted: GroupFilter) -> int:
        """Count the groups that fulfil a filter."""
        return self.select(wanted).bit_count()

    def numbers_of(self, wanted: GroupFilter) -> list[int]:
        """Find the groups that fulfil a filter."""
        return sorted(self.numbers[rank] + 1 for rank in all_ranks(self.select(wanted)))

    def facets(self, wanted: GroupFilter = EVERY) -> Facets:
        """Count the groups of each value of a filter."""
        return self._sets.facets(wanted)

    def group(self, number: int) -> GroupDetail:
        self._check(number)
        (detail,) = self.details(self.rows([number]))
        return detail

    def details(self, rows: Sequence[GroupRow]) -> list[GroupDetail]:
        """Read the answers and verdicts of groups."""
        numbers = sorted({row.number for row in rows})
        read = dict(zip(numbers, map(read_lines, self.blocks.lines(numbers)), strict=True))
        images = self.images.of([one for outcomes, _ in read.values() for one in outcomes])
        return [group_detail(row, *read[row.number], images) for row in rows]

    def rows(self, numbers: Sequence[int]) -> list[GroupRow]:
        stored = zip(self.blocks.rows(numbers), numbers, strict=True)
        return [_row(one, number, self.ranks[number - 1]) for one, number in stored]

    def answer_lines(self, wanted: GroupFilter) -> Iterator[bytes]:
        """Read the lines of answers.jsonl of the groups that a filter selects."""
        lines = self.blocks.lines(self.numbers_of(wanted))
        while several := list(islice(lines, BLOCK)):
            yield b"".join(one.answers for one in several)

    def facts(self) -> Iterator[GroupFacts]:
        for first in range(1, self.groups + 1, BLOCK):
            yield from self.blocks.rows(range(first, min(first + BLOCK, self.groups + 1)))

    @cached_property
    def numbers(self) -> array[int]:
        """The position of the group of each rank, from 0."""
        return self._order("numbers")

    @cached_property
    def ranks(self) -> array[int]:
        """The rank of the group at each position."""
        return self._order("ranks")

    def make_words(self, progress: Progress = lambda done, total: None) -> None:
        """Make the full-text index, unless it exists. A search makes it too.

        What a process adds, others need not add: an interrupted one is continued, and several share the work.
        """
        with self._words_made:
            while (done := self._words.added()) < self.groups:
                numbers = range(done + 1, min(done + WORDS_TOGETHER, self.groups) + 1)
                texts = [searched_text(read_lines(lines)[0]) for lines in self.blocks.lines(numbers)]
                self._words.add(done, texts)
                progress(numbers[-1], self.groups)

    def _page(self, page: OrderedPage, chosen: int) -> GroupPage:
        numbers = [self.numbers[rank] + 1 for rank in page.ranks]
        return GroupPage(tuple(self.rows(numbers)), page.previous, page.next, chosen.bit_count())

    def _check(self, number: int) -> None:
        if not 1 <= number <= self.groups:
            raise NoSuchRecordError(
                f"run {self.run} has no such group",
                record=number,
                expected=f"a number from 1 to {self.groups}",
            )

    def _search(self, search: str) -> int:
        self.make_words()
        found = np.array(self._words.find(search), np.intp)
        return set_of(np.asarray(self.ranks)[found], self.groups)

    def _order(self, column: str) -> array[int]:
        table = index_tables.orders.c
        query = select(table[column]).where(table.index_id == self.id).order_by(table.block)
        with self.store.database.core_read() as connection:
            return integers_of_bytes(b"".join(map(bytes, connection.scalars(query))))


def _row(stored: StoredRow, number: int, rank: int) -> GroupRow:
    facts = {name: getattr(stored, name) for name in GroupFacts.__struct_fields__}
    image = IndexedImage(stored.image, stored.digest.hex()) if stored.image else None
    return GroupRow(**facts, number=number, rank=rank, image=image, misfits=stored.misfits)
