"""The index of one run, as it is read: rows of lists, filters, and the lines of groups."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from threading import Lock

import msgspec
from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.compression import DamagedBodyError
from sightline.engine.database_errors import damage
from sightline.engine.store import Store
from sightline.metric_types import Result
from sightline.outcome_index.blocks import BLOCK, decode_lines, decode_rows
from sightline.outcome_index.builder import FacetName, IndexBody, Progress, facet_key
from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.group_entry import StoredRow
from sightline.outcome_index.group_filter import CHOICES, GroupFilter
from sightline.outcome_index.rank_set import (
    decode_ranks,
    integers_of_bytes,
    last_before,
    ranks_after,
    set_of,
)
from sightline.outcome_index.text_search import TextIndex, searched_text
from sightline.outcome_index.types import (
    Facet,
    Facets,
    FacetValue,
    GroupPage,
    GroupRow,
    IndexedImage,
    Neighbours,
)
from sightline.results.folder import Lines
from sightline.results.result_cache import decode_cached

KEPT_SETS = 128
"""The sets of ranks that a process keeps, an eighth of a byte for each group."""

WORDS_TOGETHER = 1024
"""The groups whose words are written in one transaction: other processes wait for it."""


class RunIndex:
    """A complete index. Several threads may use it."""

    def __init__(self, store: Store, index_id: int, key: bytes, body: IndexBody) -> None:
        """Prepare it; nothing is read yet.

        Args:
            store: The store.
            index_id: The number of the index.
            key: What it depends on.
            body: What the index says of its run.
        """
        self.id = index_id
        self.key = key
        self.groups = body.groups
        self.awaited = body.awaited
        self.store = store
        self._result = body.result
        self._words = TextIndex(store.database, index_id)
        self._words_made = Lock()
        self._facet = lru_cache(KEPT_SETS)(self._read_facet)
        self._found = lru_cache(KEPT_SETS)(self._search)

    @cached_property
    def result(self) -> Result:
        """The content of metrics.json."""
        return decode_cached(self._result).result

    def page(self, wanted: GroupFilter, after: int | None, limit: int) -> GroupPage:
        """Read a page of groups.

        Args:
            wanted: Which groups are listed.
            after: The rank of the last group of the page before; None for the first page.
            limit: The number of groups of a page.

        Returns:
            The page.
        """
        chosen = self.select(wanted)
        return self.page_of(chosen, after, limit)

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
        numbers = [self.numbers[rank] for rank in ranks[:limit]]
        return GroupPage(tuple(self.rows(numbers)), following, chosen.bit_count())

    def neighbours(self, number: int, wanted: GroupFilter) -> Neighbours:
        """Find the groups beside a group in a list.

        Args:
            number: The position of the group in the run, from 0.
            wanted: Which groups are listed.

        Returns:
            The numbers of the groups before and after it, from 1.
        """
        chosen, rank = self.select(wanted), self.ranks[number]
        before, behind = last_before(chosen, rank), next(ranks_after(chosen, rank), None)
        return Neighbours(*(None if one is None else self.numbers[one] + 1 for one in (before, behind)))

    def select(self, wanted: GroupFilter) -> int:
        """Find the groups that fulfil a filter.

        Args:
            wanted: The filter.

        Returns:
            Their ranks.
        """
        chosen = (1 << self.groups) - 1
        for name in _conditions(wanted):
            chosen &= self._facet(name)
        return chosen & self._found(wanted.search) if wanted.search else chosen

    def facets(self, wanted: GroupFilter) -> Facets:
        """Count the groups of each value of a filter.

        Args:
            wanted: The filter. The values of a field are counted under its other conditions.

        Returns:
            The fields that the run has, with their values.
        """
        listed: dict[tuple[str, str], list[str]] = {}
        for field, label, value in self._listed:
            listed.setdefault((field, label), []).append(value)
        found = []
        for field, label in sorted(listed, key=_facet_order):
            others = self.select(_without(wanted, field, label))
            counts = {
                value: (others & self._facet((field, label, value))).bit_count()
                for value in listed[field, label]
            }
            values = CHOICES.get(field) or sorted(counts, key=lambda value: (-counts[value], value))
            shown = tuple(FacetValue(value, counts[value]) for value in values if value in counts)
            found.append(Facet(field, shown, label))
        return Facets(tuple(found), self.select(wanted).bit_count())

    def rows(self, numbers: Sequence[int]) -> Iterator[GroupRow]:
        """Read rows.

        Args:
            numbers: The positions of groups in the run, from 0.

        Yields:
            Their rows, in the same order.
        """
        blocks = {
            number: decode_rows(body, self.store.name, number)
            for number, body in self._blocks("rows", numbers)
        }
        for number in numbers:
            yield _row(blocks[number // BLOCK][number % BLOCK], number, self.ranks[number])

    def lines(self, number: int) -> Lines:
        """Read the lines of a group.

        Args:
            number: The position of the group in the run, from 0.

        Returns:
            Its lines of answers.jsonl and of verdicts.jsonl.
        """
        ((block, body),) = self._blocks("lines", [number])
        return decode_lines(body, self.store.name, block)[number % BLOCK]

    def all_lines(self) -> Iterator[Lines]:
        """Read the lines of all groups.

        Yields:
            The lines of each group, in the order of the run.
        """
        for block in range(-(-self.groups // BLOCK)):
            ((_, body),) = self._blocks("lines", [block * BLOCK])
            yield from decode_lines(body, self.store.name, block)

    def all_rows(self) -> Iterator[GroupRow]:
        """Read the rows of all groups.

        Yields:
            The rows in the order of the run.
        """
        for start in range(0, self.groups, BLOCK):
            yield from self.rows(range(start, min(start + BLOCK, self.groups)))

    @cached_property
    def numbers(self) -> array[int]:
        """The position of the group of each rank."""
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
        return self._words.exists()

    def make_words(self, progress: Progress = lambda done, total: None) -> None:
        """Make the full-text index, unless it exists. A search makes it too.

        Args:
            progress: Receives the number of groups that are done, and that of all groups.
        """
        with self._words_made:
            if self._words.exists():
                return
            self._words.start()
            groups = enumerate(self.all_lines())
            while page := list(islice(groups, WORDS_TOGETHER)):
                self._words.add(page[0][0], [searched_text(read_lines(lines)[0]) for _, lines in page])
                progress(page[-1][0] + 1, self.groups)
            self._words.finish()

    def image_path(self, digest: str) -> bytes | None:
        """Look up where an image is.

        Args:
            digest: The SHA-256 of the image.

        Returns:
            The path in the data folder as the file system has it; None if the run has no such image.
        """
        table = index_tables.images.c
        query = select(table.path).where(table.index_id == self.id, table.digest == bytes.fromhex(digest))
        with self.store.database.read() as connection:
            path = connection.scalar(query)
        return None if path is None else bytes(path)

    def digests(self, paths: Sequence[str]) -> dict[str, str]:
        """Look up images.

        Args:
            paths: Paths in the data folder.

        Returns:
            Path -> the SHA-256 of the file when it was sent, where it is recorded.
        """
        table = index_tables.images.c
        encoded = [os.fsencode(path) for path in paths]
        query = select(table.path, table.digest).where(table.index_id == self.id, table.path.in_(encoded))
        with self.store.database.read() as connection:
            found = connection.execute(query).all()
        return {os.fsdecode(bytes(path)): bytes(digest).hex() for path, digest in found}

    @cached_property
    def _listed(self) -> list[FacetName]:
        table = index_tables.facets.c
        query = select(table.name).where(table.index_id == self.id, table.listed == 1)
        with self.store.database.read() as connection:
            names = connection.scalars(query).all()
        return [msgspec.msgpack.decode(name, type=FacetName) for name in names]

    def _read_facet(self, name: FacetName) -> int:
        table = index_tables.facets.c
        key = facet_key(name)
        query = select(table.ranks).where(table.index_id == self.id, table.key == key)
        with self.store.database.read() as connection:
            body = connection.scalar(query)
        try:
            return 0 if body is None else decode_ranks(bytes(body), self.groups)
        except DamagedBodyError as error:
            raise damage(self.store.name, "index_facets", self.id, str(error)) from None

    def _search(self, search: str) -> int:
        self.make_words()
        return set_of((self.ranks[number] for number in self._words.find(search)), self.groups)

    def _order(self, column: str) -> array[int]:
        table = index_tables.orders.c
        query = select(table[column]).where(table.index_id == self.id).order_by(table.block)
        with self.store.database.read() as connection:
            return integers_of_bytes(b"".join(map(bytes, connection.scalars(query))))

    def _blocks(self, column: str, numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
        table = index_tables.blocks.c
        wanted = sorted({number // BLOCK for number in numbers})
        query = select(table.block, table[column]).where(table.index_id == self.id, table.block.in_(wanted))
        with self.store.database.read() as connection:
            found = {int(block): bytes(body) for block, body in connection.execute(query)}
        for block in wanted:
            if block not in found:
                raise damage(self.store.name, "index_blocks", block, "it is missing")
            yield block, found[block]


def _conditions(wanted: GroupFilter) -> Iterator[FacetName]:
    for field in CHOICES:
        value = getattr(wanted, field)
        if value is not None:
            yield field, "", value
    for label, value in wanted.labels:
        yield "label", label, value


def _without(wanted: GroupFilter, field: str, label: str) -> GroupFilter:
    """The filter without its conditions on a field."""
    if field == "label":
        others = tuple(condition for condition in wanted.labels if condition[0] != label)
        return msgspec.structs.replace(wanted, labels=others)
    return msgspec.structs.replace(wanted, **{field: None})


def _facet_order(name: tuple[str, str]) -> tuple[int, str]:
    field, label = name
    return (list(CHOICES).index(field) if field in CHOICES else len(CHOICES), label)


def _row(stored: StoredRow, number: int, rank: int) -> GroupRow:
    image = IndexedImage(stored.image, stored.digest.hex()) if stored.image else None
    return GroupRow(
        number=number + 1,
        rank=rank,
        sample=stored.sample,
        draw=stored.draw,
        pooled=stored.pooled,
        question=stored.question,
        marks=stored.marks,
        right=stored.right,
        consistency=stored.consistency,
        flags=stored.flags,
        similarity=stored.similarity,
        labels=stored.labels,
        image=image,
    )
