"""The index of one run, as it is read: rows of lists, filters, and the lines of groups."""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from threading import Lock

from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.database_errors import damage
from sightline.engine.store import Store
from sightline.errors import NoSuchRecordError
from sightline.metric_types import Result
from sightline.outcome_index.blocks import BLOCK, LINES, ROWS
from sightline.outcome_index.builder import IndexBody, Progress
from sightline.outcome_index.filter_sets import FilterSets
from sightline.outcome_index.group_detail import group_detail, read_lines
from sightline.outcome_index.group_entry import StoredRow
from sightline.outcome_index.group_filter import EVERY, GroupFilter
from sightline.outcome_index.images import ImageError
from sightline.outcome_index.orders import Order, StoredOrders
from sightline.outcome_index.rank_set import all_ranks, integers_of_bytes, last_before, ranks_after, set_of
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
from sightline.results.folder import Lines
from sightline.results.result_cache import decode_cached
from sightline.types import Outcome

PAGE = 25
"""The groups of a page."""

READ_TOGETHER = 16
"""The blocks that are read by one query."""

WORDS_TOGETHER = 1024
"""The groups whose words are written in one transaction: other processes wait for it."""

_DIGEST = re.compile("[0-9a-f]{64}")


class RunIndex:
    """A complete index. Its groups have numbers from 1, in the order of the samples. Threads may share it."""

    def __init__(self, store: Store, run: int, index_id: int, key: bytes, body: IndexBody) -> None:
        """Prepare it; nothing is read yet.

        Args:
            store: The store.
            run: The number of the run.
            index_id: The number of the index.
            key: What it depends on.
            body: What the index says of its run.
        """
        self.store = store
        self.run = run
        self.id = index_id
        self.key = key
        self.groups = body.groups
        self.awaited = body.awaited
        self._result = body.result
        self._words = TextIndex(store.database, index_id)
        self._words_made = Lock()
        self._sets = FilterSets(store, index_id, body.groups, self._search)
        self._orders = StoredOrders(store, index_id, lambda: self.ranks)

    @cached_property
    def result(self) -> Result:
        """The content of metrics.json."""
        return decode_cached(self._result).result

    def page(
        self,
        wanted: GroupFilter = EVERY,
        after: int | None = None,
        limit: int = PAGE,
        order: Order = "informative",
    ) -> GroupPage:
        """Read a page of the groups.

        Args:
            wanted: Which groups are listed.
            after: `next` of the page before; None for the first page.
            limit: The number of groups of a page.
            order: The order of the groups, one of `orders`.

        Returns:
            The page.
        """
        chosen = self.select(wanted)
        if order == "informative":
            return self.page_of(chosen, after, limit)
        ranks, following = self._orders.page(order, chosen, after, limit)
        numbers = [self.numbers[rank] + 1 for rank in ranks]
        return GroupPage(tuple(self.rows(numbers)), following, chosen.bit_count())

    @property
    def orders(self) -> tuple[Order, ...]:
        """The orders in which the groups can be read."""
        return self._orders.names

    def page_of(self, chosen: int, after: int | None, limit: int) -> GroupPage:
        """Read a page of a set of groups.

        Args:
            chosen: The ranks of the groups.
            after: The rank of the last group of the page before; None for the first page.
            limit: The number of groups of a page.

        Returns:
            The page.
        """
        ranks = list(islice(ranks_after(chosen, -1 if after is None else after), limit + 1))
        following = ranks[limit - 1] if len(ranks) > limit else None
        numbers = [self.numbers[rank] + 1 for rank in ranks[:limit]]
        return GroupPage(tuple(self.rows(numbers)), following, chosen.bit_count())

    def neighbours(
        self, number: int, wanted: GroupFilter = EVERY, order: Order = "informative"
    ) -> Neighbours:
        """Find the groups beside a group in a list.

        Args:
            number: The number of the group.
            wanted: Which groups are listed.
            order: The order of the list, one of `orders`.

        Returns:
            Their numbers.

        Raises:
            NoSuchRecordError: The run has no such group.
        """
        self._check(number)
        chosen, rank = self.select(wanted), self.ranks[number - 1]
        if order == "informative":
            before, behind = last_before(chosen, rank), next(ranks_after(chosen, rank), None)
        else:
            before, behind = self._orders.neighbours(order, chosen, rank)
        return Neighbours(*(None if one is None else self.numbers[one] + 1 for one in (before, behind)))

    def select(self, wanted: GroupFilter) -> int:
        """Find the groups that fulfil a filter.

        Args:
            wanted: The filter.

        Returns:
            Their ranks.
        """
        return self._sets.select(wanted)

    def numbers_of(self, wanted: GroupFilter) -> list[int]:
        """Find the groups that fulfil a filter.

        Args:
            wanted: The filter.

        Returns:
            Their numbers, in ascending order.
        """
        return sorted(self.numbers[rank] + 1 for rank in all_ranks(self.select(wanted)))

    def facets(self, wanted: GroupFilter = EVERY) -> Facets:
        """Count the groups of each value of a filter.

        Args:
            wanted: The filter. The values of a field are counted under its other conditions.

        Returns:
            The fields that the run has, with their values.
        """
        return self._sets.facets(wanted)

    def group(self, number: int) -> GroupDetail:
        """Read a group.

        Args:
            number: The number of the group.

        Returns:
            The group.

        Raises:
            NoSuchRecordError: The run has no such group.
        """
        self._check(number)
        (detail,) = self.details([number])
        return detail

    def details(self, numbers: Sequence[int]) -> list[GroupDetail]:
        """Read groups.

        Args:
            numbers: The numbers of groups of the run.

        Returns:
            The groups, in the same order.
        """
        ascending = sorted(set(numbers))
        read = dict(zip(ascending, map(read_lines, self.lines(ascending)), strict=True))
        images = self._images([one for outcomes, _ in read.values() for one in outcomes if one.images])
        return [group_detail(row, *read[row.number], images) for row in self.rows(numbers)]

    def rows(self, numbers: Sequence[int]) -> Iterator[GroupRow]:
        """Read rows.

        Args:
            numbers: The numbers of groups of the run.

        Yields:
            Their rows, in the same order.
        """
        wanted = sorted({(number - 1) // BLOCK for number in numbers})
        blocks = {
            block: ROWS.decode(body, self.store.name, block) for block, body in self._blocks("rows", wanted)
        }
        for number in numbers:
            block, place = divmod(number - 1, BLOCK)
            yield _row(blocks[block][place], number, self.ranks[number - 1])

    def lines(self, numbers: Sequence[int]) -> Iterator[Lines]:
        """Read lines of answers.jsonl and of verdicts.jsonl; few blocks of groups are in memory at a time.

        Args:
            numbers: The numbers of groups of the run, in ascending order.

        Yields:
            The lines of each group.
        """
        by_block = groupby(numbers, key=lambda number: (number - 1) // BLOCK)
        members = ((block, list(several)) for block, several in by_block)
        while together := dict(islice(members, READ_TOGETHER)):
            for block, body in self._blocks("lines", list(together)):
                lines = LINES.decode(body, self.store.name, block)
                for number in together[block]:
                    yield lines[(number - 1) % BLOCK]

    def answer_lines(self, wanted: GroupFilter) -> Iterator[bytes]:
        """Read the lines of answers.jsonl of the groups that a filter selects.

        Args:
            wanted: The filter.

        Yields:
            The lines of some groups together, in the order of the samples.
        """
        lines = self.lines(self.numbers_of(wanted))
        while several := list(islice(lines, BLOCK)):
            yield b"".join(one.answers for one in several)

    def facts(self) -> Iterator[GroupFacts]:
        """Read what lists say of all groups.

        Yields:
            The facts of each group, in the order of the samples.
        """
        for block in range(-(-self.groups // BLOCK)):
            ((_, body),) = self._blocks("rows", [block])
            yield from ROWS.decode(body, self.store.name, block)

    @cached_property
    def numbers(self) -> array[int]:
        """The position of the group of each rank, from 0."""
        return self._order("numbers")

    @cached_property
    def ranks(self) -> array[int]:
        """The rank of the group at each position."""
        return self._order("ranks")

    def has_words(self) -> bool:
        """Say whether the texts of the run can be searched at once.

        Returns:
            Whether `make_words` has nothing to do.
        """
        return self._words.added() == self.groups

    def make_words(self, progress: Progress = lambda done, total: None) -> None:
        """Make the full-text index, unless it exists. A search makes it too.

        What a process adds, others need not add: an interrupted one is continued, and several share the work.

        Args:
            progress: Receives the number of groups that are done, and that of all groups.
        """
        with self._words_made:
            while (done := self._words.added()) < self.groups:
                numbers = range(done + 1, min(done + WORDS_TOGETHER, self.groups) + 1)
                texts = [searched_text(read_lines(lines)[0]) for lines in self.lines(numbers)]
                self._words.add(done, texts)
                progress(numbers[-1], self.groups)

    def image_path(self, digest: str) -> str:
        """Look up where an image is.

        Args:
            digest: The SHA-256 of the image, in hexadecimal.

        Returns:
            The path in the data folder.

        Raises:
            ImageError: The run has no such image.
        """
        path = self._image_path(bytes.fromhex(digest)) if _DIGEST.fullmatch(digest) else None
        if path is None:
            raise ImageError(
                f"run {self.run} has no such image", found=digest, expected="an image of its groups"
            )
        return os.fsdecode(path)

    def _image_path(self, digest: bytes) -> bytes | None:
        table = index_tables.images.c
        query = select(table.path).where(table.index_id == self.id, table.digest == digest)
        with self.store.database.read() as connection:
            path = connection.scalar(query)
        return None if path is None else bytes(path)

    def _images(self, outcomes: Sequence[Outcome]) -> dict[str, IndexedImage]:
        """Path -> the image of some outcomes."""
        if not outcomes:
            return {}
        paths = {path for outcome in outcomes for path in outcome.images}
        digests = self._digests(paths)
        held = self.store.answers.images(sorted({outcome.key for outcome in outcomes}))
        sent = {digest for of_request in held.values() for digest in of_request}
        return {
            path: IndexedImage(path, found := digests.get(path, ""), is_sent=found in sent) for path in paths
        }

    def _digests(self, paths: Collection[str]) -> dict[str, str]:
        """Path in the data folder -> the SHA-256 of the file, where it is recorded."""
        table = index_tables.images.c
        encoded = [os.fsencode(path) for path in paths]
        query = select(table.path, table.digest).where(table.index_id == self.id, table.path.in_(encoded))
        with self.store.database.read() as connection:
            found = connection.execute(query).all()
        return {os.fsdecode(bytes(path)): bytes(digest).hex() for path, digest in found}

    def _check(self, number: int) -> None:
        if not 1 <= number <= self.groups:
            raise NoSuchRecordError(
                f"run {self.run} has no such group",
                record=number,
                expected=f"a number from 1 to {self.groups}",
            )

    def _search(self, search: str) -> int:
        self.make_words()
        return set_of((self.ranks[number] for number in self._words.find(search)), self.groups)

    def _order(self, column: str) -> array[int]:
        table = index_tables.orders.c
        query = select(table[column]).where(table.index_id == self.id).order_by(table.block)
        with self.store.database.read() as connection:
            return integers_of_bytes(b"".join(map(bytes, connection.scalars(query))))

    def _blocks(self, column: str, wanted: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        table = index_tables.blocks.c
        query = select(table.block, table[column]).where(table.index_id == self.id, table.block.in_(wanted))
        with self.store.database.read() as connection:
            found = {int(block): bytes(body) for block, body in connection.execute(query)}
        for block in wanted:
            if block not in found:
                raise damage(self.store.name, "index_blocks", block, "it is missing")
            yield block, found[block]


def _row(stored: StoredRow, number: int, rank: int) -> GroupRow:
    facts = {name: getattr(stored, name) for name in GroupFacts.__struct_fields__}
    image = IndexedImage(stored.image, stored.digest.hex()) if stored.image else None
    return GroupRow(**facts, number=number, rank=rank, image=image, misfits=stored.misfits)
