"""The index of one run, as it is read: pages of groups, their order, filters and search."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import islice
from threading import Lock

import msgspec
import numpy as np
from sqlalchemy import Connection, select

from sightline.errors import NoSuchRecordError
from sightline.store import schema
from sightline.store.database import Database
from sightline.store.schema import WORDS, existing
from sightline.store.store import Store
from sightline.types import Outcome, Result
from sightline.viewer.index_builder import (
    BLOCK,
    FacetName,
    IndexBody,
    Progress,
    StoredBlocks,
    StoredRow,
    facet_key,
    group_detail,
    read_lines,
    reading,
)
from sightline.viewer.index_images import IndexedImages
from sightline.viewer.index_types import (
    CHOICES,
    EVERY,
    Facet,
    Facets,
    FacetValue,
    GroupDetail,
    GroupFacts,
    GroupFilter,
    GroupPage,
    GroupRow,
    IndexedImage,
    Neighbours,
    Order,
    OrderedPage,
    StoredOrders,
    all_ranks,
    decode_ranks,
    integers_of_bytes,
    last_before,
    page_before,
    ranks_after,
    set_of,
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
        return msgspec.json.decode(self.result_json, type=Result)

    def page(
        self,
        wanted: GroupFilter = EVERY,
        after: int | None = None,
        limit: int = PAGE,
        order: Order = "informative",
    ) -> GroupPage:
        """Read a page of the groups, after `next` of the page before; None for the first page."""
        chosen = self.select(wanted)
        if order == "informative":
            return self.page_of(chosen, after, limit)
        return self._page(self._orders.page(order, chosen, after, limit), chosen)

    @property
    def orders(self) -> tuple[Order, ...]:
        return self._orders.names

    def page_of(self, chosen: int, after: int | None, limit: int) -> GroupPage:
        """Read a page of a set of groups, after the last rank of the page before; None for the first page."""
        ranks = list(islice(ranks_after(chosen, -1 if after is None else after), limit + 1))
        previous = None if after is None else page_before(chosen, after, limit)
        following = ranks[limit - 1] if len(ranks) > limit else None
        return self._page(OrderedPage(ranks[:limit], previous, following), chosen)

    def neighbours(
        self, number: int, wanted: GroupFilter = EVERY, order: Order = "informative"
    ) -> Neighbours:
        self._check(number)
        chosen, rank = self.select(wanted), self.ranks[number - 1]
        if order == "informative":
            before, behind = last_before(chosen, rank), next(ranks_after(chosen, rank), None)
        else:
            before, behind = self._orders.neighbours(order, chosen, rank)
        return Neighbours(*(None if one is None else self.numbers[one] + 1 for one in (before, behind)))

    def select(self, wanted: GroupFilter) -> int:
        return self._sets.select(wanted)

    def count(self, wanted: GroupFilter) -> int:
        return self.select(wanted).bit_count()

    def numbers_of(self, wanted: GroupFilter) -> list[int]:
        return sorted(self.numbers[rank] + 1 for rank in all_ranks(self.select(wanted)))

    def facets(self, wanted: GroupFilter = EVERY) -> Facets:
        return self._sets.facets(wanted)

    def group(self, number: int) -> GroupDetail:
        self._check(number)
        (detail,) = self.details(self.rows([number]))
        return detail

    def details(self, rows: Sequence[GroupRow]) -> list[GroupDetail]:
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
        table = schema.orders.c
        query = select(table[column]).where(table.index_id == self.id).order_by(table.block)
        with self.store.database.core_read() as connection:
            return integers_of_bytes(b"".join(map(bytes, connection.scalars(query))))


def _row(stored: StoredRow, number: int, rank: int) -> GroupRow:
    facts = {name: getattr(stored, name) for name in GroupFacts.__struct_fields__}
    image = IndexedImage(stored.image, stored.digest.hex()) if stored.image else None
    return GroupRow(**facts, number=number, rank=rank, image=image, misfits=stored.misfits)


# -- The groups that filters select, as sets of ranks, and how many each value of a filter would select

KEPT_SETS = 128
"""The sets of ranks that a process keeps, an eighth of a byte for each group."""


class FilterSets:
    """The sets of one index. Several threads may use it."""

    def __init__(self, store: Store, index_id: int, groups: int, search: Callable[[str], int]) -> None:
        self._store = store
        self._id = index_id
        self._groups = groups
        self._facet = lru_cache(KEPT_SETS)(self._read_facet)
        self._found = lru_cache(KEPT_SETS)(search)

    def select(self, wanted: GroupFilter) -> int:
        chosen = (1 << self._groups) - 1
        for name in _conditions(wanted):
            chosen &= self._facet(name)
        return chosen & self._found(wanted.search) if wanted.search else chosen

    def facets(self, wanted: GroupFilter) -> Facets:
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

    @cached_property
    def _listed(self) -> list[FacetName]:
        table = schema.facets.c
        query = select(table.name).where(table.index_id == self._id, table.listed == 1)
        with self._store.database.core_read() as connection:
            names = connection.scalars(query).all()
        return [msgspec.msgpack.decode(name, type=FacetName) for name in names]

    def _read_facet(self, name: FacetName) -> int:
        table = schema.facets.c
        query = select(table.ranks).where(table.index_id == self._id, table.key == facet_key(name))
        with self._store.database.core_read() as connection:
            body = connection.scalar(query)
        if body is None:
            return 0
        with reading(self._store.name, "index_facets", self._id):
            return decode_ranks(bytes(body), self._groups)


def _conditions(wanted: GroupFilter) -> Iterator[FacetName]:
    for field in CHOICES:
        value = getattr(wanted, field)
        if value is not None:
            yield field, "", value
    for label, value in wanted.labels:
        yield "label", label, value


def _without(wanted: GroupFilter, field: str, label: str) -> GroupFilter:
    if field == "label":
        others = tuple(condition for condition in wanted.labels if condition[0] != label)
        return msgspec.structs.replace(wanted, labels=others)
    return msgspec.structs.replace(wanted, **{field: None})


def _facet_order(name: tuple[str, str]) -> tuple[int, str]:
    field, label = name
    return (list(CHOICES).index(field) if field in CHOICES else len(CHOICES), label)


# -- Full-text search over question, prompt, context and responses: FTS5 in SQLite, a GIN index in
#    PostgreSQL

MOST_CHARACTERS = 200_000
"""Of longer texts of a group, the beginning can be found; PostgreSQL accepts less than a megabyte."""

MOST_LETTERS = 200
"""The most characters of a word; what follows is ignored."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")


def words_of(text: str) -> set[str]:
    """Divide a text into words.

    >>> sorted(words_of("The café's CAFE, 図書館-2"))
    ['2', 'cafe', 's', 'the', '図', '書', '館']
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKD", text.casefold())
        text = "".join(letter for letter in plain if not unicodedata.combining(letter))
        text = unicodedata.normalize("NFC", text)
    return {word[:MOST_LETTERS] for word in _WORD.findall(text.casefold())}


def searched_text(outcomes: Iterable[Outcome]) -> str:
    texts = dict.fromkeys(
        text
        for one in outcomes
        for text in (one.sample, one.question, one.context, one.response, one.prompt, *one.options)
    )
    return "\n".join(texts)[:MOST_CHARACTERS]


class TextIndex:
    """The words of the groups of one index. The number of a group is its position in the run, from 0."""

    def __init__(self, database: Database, index_id: int) -> None:
        self._database = database
        self._id = index_id
        self._sqlite_table = f"{WORDS}_{index_id}"

    def added(self) -> int:
        """Count the groups whose words were added; they are added in the order of their numbers."""
        with self._database.core_read() as connection:
            table = self._sqlite_table if connection.dialect.name == "sqlite" else WORDS
            return self._added(connection) if table in existing(connection) else 0

    def add(self, first: int, texts: Sequence[str]) -> None:
        """Add groups, unless another process added them meanwhile."""
        numbered = [(number, sorted(words_of(text))) for number, text in enumerate(texts, start=first)]
        with self._database.core_write() as connection:
            self._create(connection)
            there = self._added(connection)
            self._insert(connection, [row for row in numbered if row[0] >= there])

    def find(self, search: str) -> list[int]:
        """Find the numbers of the groups with all words of a search; none for a search without a word."""
        words = sorted(words_of(search))
        if not words:
            return []
        with self._database.core_read() as connection:
            if connection.dialect.name == "sqlite":
                table = self._sqlite_table
                query = f"SELECT rowid FROM {table} WHERE {table} MATCH ? ORDER BY rowid"
                values: tuple[object, ...] = (" ".join(f'"{word}"' for word in words),)
            else:
                query = (
                    f"SELECT number FROM {WORDS} WHERE words @@ %s::tsquery AND index_id = %s ORDER BY number"
                )
                values = (" & ".join(f"'{word}'" for word in words), self._id)
            rows = connection.exec_driver_sql(
                query, values
            ).cursor.fetchall()  # `scalars` takes twice as long.
            return [number for (number,) in rows]

    def _create(self, connection: Connection) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(
                f"CREATE VIRTUAL TABLE IF NOT EXISTS {self._sqlite_table} USING "
                "fts5(words, content='', detail=none, tokenize='ascii')"
            )
            return
        # One process at a time, also while the table does not exist yet.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext(%s))", (WORDS,))
        connection.exec_driver_sql(
            f"CREATE TABLE IF NOT EXISTS {WORDS} (index_id bigint NOT NULL, number bigint NOT NULL, "
            "words tsvector NOT NULL, PRIMARY KEY (index_id, number))"
        )
        connection.exec_driver_sql(f"CREATE INDEX IF NOT EXISTS {WORDS}_by_word ON {WORDS} USING gin (words)")

    def _added(self, connection: Connection) -> int:
        if connection.dialect.name == "sqlite":
            # FTS5 keeps a row here for each row of the virtual table.
            query = f"SELECT max(id) FROM {self._sqlite_table}_docsize"
            last = connection.exec_driver_sql(query).scalar()
        else:
            query = f"SELECT max(number) FROM {WORDS} WHERE index_id = %s"
            last = connection.exec_driver_sql(query, (self._id,)).scalar()
        return 0 if last is None else int(last) + 1

    def _insert(self, connection: Connection, numbered: Sequence[tuple[int, list[str]]]) -> None:
        if not numbered:
            return
        if connection.dialect.name == "sqlite":
            statement = f"INSERT INTO {self._sqlite_table} (rowid, words) VALUES (?, ?)"
            rows: list[tuple[object, ...]] = [(number, " ".join(words)) for number, words in numbered]
        else:
            values = "(%s, %s, array_to_tsvector(%s::text[]))"
            statement = f"INSERT INTO {WORDS} (index_id, number, words) VALUES {values}"
            rows = [(self._id, number, words) for number, words in numbered]
        connection.exec_driver_sql(statement, rows)
