"""The index of a run, or of a comparison: a SQLite file that is written once, and then only read."""

from __future__ import annotations

import os
import re
import sqlite3
import time
import unicodedata
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, NoSuchRecordError, UserError
from sightline.evaluation.folder import Lines, lines_of
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.run_images import ImageDigests, ImageError
from sightline.metrics.flips import Change
from sightline.store.runs import DamagedBodyError, compress, decompress
from sightline.store.store import Store
from sightline.types import Outcome, Result
from sightline.viewer.index_entry import (
    MOST_WAITING,
    Awaited,
    FacetName,
    GroupEntry,
    IndexKey,
    awaited,
    group_detail,
    group_entry,
    read_lines,
)
from sightline.viewer.index_types import (
    CHOICES,
    EVERY,
    ChangedGroup,
    ChangeList,
    ChangePage,
    Facet,
    Facets,
    FacetValue,
    GroupDetail,
    GroupFilter,
    GroupPage,
    GroupRow,
    IndexedImage,
    Neighbours,
    Order,
    RunComparison,
)

PAGE = 25
"""The groups of a page."""

Body = TypeVar("Body", bound=Struct)

# -- The tables

VERSION = 1
"""Files of another version are made again."""

TOKENIZER = "unicode61 remove_diacritics 2"
"""How SQLite divides texts into words."""

# `about` holds an IndexBody as JSON. Groups of one kind have the same values in all filters: few kinds are
# counted instead of many groups. Of the columns of an order, the least value comes first. `bodies` holds a
# GroupRow as JSON, and the lines of answers.jsonl and verdicts.jsonl with zstd. Several paths of images can
# have one digest, a SHA-256 in hexadecimal.
_TABLES = f"""
CREATE TABLE about (body TEXT NOT NULL);
CREATE TABLE groups (
    number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, sample TEXT NOT NULL,
    information INTEGER NOT NULL, length INTEGER NOT NULL, similarity REAL NOT NULL);
CREATE TABLE kinds (kind INTEGER PRIMARY KEY, facets TEXT NOT NULL UNIQUE, groups INTEGER NOT NULL);
CREATE TABLE facets (
    field TEXT NOT NULL, label TEXT NOT NULL, value TEXT NOT NULL, kind INTEGER NOT NULL,
    PRIMARY KEY (field, label, value, kind)) WITHOUT ROWID;
CREATE TABLE bodies (
    number INTEGER PRIMARY KEY, row TEXT NOT NULL, answers BLOB NOT NULL, verdicts BLOB NOT NULL);
CREATE TABLE images (path BLOB PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE words USING fts5 (text, content='', tokenize='{TOKENIZER}');
"""

_INDEXES = """
CREATE INDEX groups_by_information ON groups (information, number, kind);
CREATE INDEX groups_by_length ON groups (length, number, kind);
CREATE INDEX groups_by_similarity ON groups (similarity, number, kind);
CREATE INDEX groups_by_sample ON groups (sample);
CREATE INDEX images_by_digest ON images (digest);
"""

# Of a comparison, `about` holds a RunComparison as JSON. `number` is that of a group in the other run, `base`
# that in the base run, and `information` orders the groups as in the other run.
_COMPARISON_TABLES = """
CREATE TABLE about (body TEXT NOT NULL);
CREATE TABLE changed (
    list TEXT NOT NULL, information INTEGER NOT NULL, number INTEGER NOT NULL, base INTEGER NOT NULL,
    change TEXT NOT NULL, PRIMARY KEY (list, information, number)) WITHOUT ROWID;
"""

COLUMNS: Mapping[Order, str] = {
    "informative": "information",
    "data": "number",
    "length": "length",
    "similarity": "similarity",
}
"""Order of groups -> the column that they are sorted by."""

SEARCHES = 64
"""The filters whose counts an index remembers: the file never changes, and each page of a list counts."""

MOST_LISTED = 50
"""The values of a label that lists of filters show, the most frequent ones."""

UNFINISHED = ".new"
"""The end of the name of a file that is being written."""

LEFT_SECONDS = 3600.0
"""A file that was not written to for so long belongs to a process that was killed."""


class IndexBody(Struct, frozen=True):
    """What an index says of its run; `id` is its own, and `facets` are those of all groups."""

    id: str
    key: IndexKey
    groups: int
    result: msgspec.Raw
    awaited: Awaited
    orders: tuple[Order, ...]
    facets: tuple[Facet, ...]


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a finished file, which never changes: another one takes its place."""
    try:
        url = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        # A streamed page is read by several threads, one after the other.
        with closing(sqlite3.connect(url, uri=True, check_same_thread=False)) as connection:
            yield connection
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, reason: Exception) -> EnvironmentFailedError:
    return EnvironmentFailedError(
        f"{path}: the index cannot be read ({reason}); delete this file, and it is made again"
    )


def read_about(path: Path, kind: type[Body]) -> Body | None:
    """Read what a file says of itself; None if there is no file of this version."""
    with suppress(EnvironmentFailedError, msgspec.MsgspecError), _opened(path) as connection:
        if path.exists() and connection.execute("PRAGMA user_version").fetchone() == (VERSION,):
            return msgspec.json.decode(connection.execute("SELECT body FROM about").fetchone()[0], type=kind)
    return None


class _NewFile:
    """A file that is being written: nobody reads it before `finish`, and it is gone after `abandon`."""

    def __init__(self, path: Path, tables: str) -> None:
        self._path = path
        self._draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}{UNFINISHED}")
        with self.errors():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in path.parent.glob(f"*{UNFINISHED}"):
                if left.stat().st_mtime < time.time() - LEFT_SECONDS:
                    left.unlink(missing_ok=True)
            self.connection = sqlite3.connect(self._draft, isolation_level=None, check_same_thread=False)
            # A file without an end is never read, so that nothing needs to be rolled back.
            self.connection.executescript(
                f"PRAGMA journal_mode = OFF; PRAGMA user_version = {VERSION}; BEGIN; {tables}"
            )

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            raise EnvironmentFailedError(f"{self._path}: the index cannot be written: {error}") from None

    def finish(self, body: Struct) -> None:
        with self.errors():
            self.connection.execute("INSERT INTO about VALUES (?)", (msgspec.json.encode(body).decode(),))
            self.connection.execute("COMMIT")
            self.connection.close()
            self._draft.replace(self._path)

    def abandon(self) -> None:
        self.connection.close()
        self._draft.unlink(missing_ok=True)


# -- The words of the groups

# Scripts without spaces between words: each character is a word, and a search for several finds them side by
# side. Thai to Khmer, kana, ideographs, Hangul.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff])"
)


def spaced_words(text: str) -> str:
    """Prepare a text for SQLite, which divides it at all but letters and digits.

    >>> spaced_words("ＣＡＦＥ 図書館")
    'cafe  図  書  館 '
    """
    storable = text.encode(errors="replace").decode().replace("\0", " ")
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", storable.casefold()))


def matched_words(search: str) -> str:
    """The query for all words of a search; a word with a sign inside, as in "9-11", is a phrase."""
    return " ".join('"{}"'.format(spaced_words(word).replace('"', " ")) for word in search.split())


def searched_text(outcomes: Iterable[Outcome]) -> str:
    return "\n".join(
        dict.fromkeys(
            text
            for one in outcomes
            for text in (one.sample, one.question, one.context, one.response, one.prompt, *one.options)
        )
    )


# -- Writing

WRITTEN_TOGETHER = 256
"""The groups whose images are looked up together."""

Progress = Callable[[int, int], None]
"""Receives the number of the samples that are judged, and that of all samples."""


class IndexBuilder:
    """Writes the index of a run group by group."""

    def __init__(self, store: Store, path: Path, key: IndexKey, digests: ImageDigests) -> None:
        self._store, self._key, self._digests = store, key, digests
        self._file = _NewFile(path, _TABLES)
        self._judged: list[JudgedGroup] = []
        self._groups = self.samples = 0
        self._last_sample: str | None = None
        self._waiting: dict[str, None] = {}
        self._judges_failed = False

    def add(self, judged: JudgedGroup) -> None:
        if judged.group.id != self._last_sample:
            self.samples += 1
            self._last_sample = judged.group.id
        for outcome in judged.group:
            if not outcome.answered and len(self._waiting) < MOST_WAITING:
                self._waiting[outcome.key] = None
        self._judges_failed |= any(
            verdict.verdict == "error" and verdict.kind == "model" for verdict in judged.verdicts
        )
        self._judged.append(judged)
        if len(self._judged) == WRITTEN_TOGETHER:
            self._write()

    def finish(self, result: Result) -> None:
        self._write()
        with self._file.errors():
            for statement in _INDEXES.split(";"):
                self._file.connection.execute(statement)
        self._file.finish(
            IndexBody(
                id=uuid.uuid4().hex,
                key=self._key,
                groups=self._groups,
                result=msgspec.Raw(msgspec.json.encode(result)),
                awaited=awaited(self._store, list(self._waiting), judges_failed=self._judges_failed),
                orders=tuple(self._orders()),
                facets=tuple(self._facets()),
            )
        )

    def abandon(self) -> None:
        self._file.abandon()

    def _write(self) -> None:
        with_images = [outcome for judged in self._judged for outcome in judged.group if outcome.images]
        sent = self._digests(with_images)
        with self._file.errors():
            for judged in self._judged:
                self._groups += 1
                images = dict(_images(judged, sent))
                self._insert(group_entry(judged.group, judged.verdicts, self._groups, images), judged)
                paths = [(os.fsencode(path), digest) for path, digest in images.items()]
                self._file.connection.executemany("INSERT OR IGNORE INTO images VALUES (?, ?)", paths)
        self._judged.clear()

    def _insert(self, entry: GroupEntry, judged: JudgedGroup) -> None:
        execute, number = self._file.connection.execute, entry.row.number
        execute(
            "INSERT INTO groups VALUES (?, ?, ?, ?, ?, ?)",
            (
                number,
                self._kind(sorted(entry.facets)),
                entry.row.sample,
                entry.information,
                entry.length,
                entry.similarity,
            ),
        )
        row, lines = msgspec.json.encode(entry.row).decode(), lines_of(judged)
        bodies = (number, row, *map(compress, lines))
        execute("INSERT INTO bodies VALUES (?, ?, ?, ?)", bodies)
        text = spaced_words(searched_text(judged.group))
        execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))

    def _kind(self, facets: Sequence[FacetName]) -> int:
        """The number of the kind of a group, which is counted."""
        connection = self._file.connection
        added = (
            "INSERT INTO kinds (facets, groups) VALUES (?, 1) ON CONFLICT DO UPDATE SET groups = groups + 1"
        )
        encoded = msgspec.json.encode(facets).decode()
        connection.execute(added, (encoded,))
        kind, groups = connection.execute(
            "SELECT kind, groups FROM kinds WHERE facets = ?", (encoded,)
        ).fetchone()
        if groups == 1:
            rows = [(*name, kind) for name in facets]
            connection.executemany("INSERT INTO facets VALUES (?, ?, ?, ?)", rows)
        return int(kind)

    def _orders(self) -> Iterator[Order]:
        """The orders that the run has: by similarity only where that was measured."""
        for order, column in COLUMNS.items():
            differ = f"SELECT min({column}) < max({column}) FROM groups WHERE {column} < 9e999"
            if order in ("informative", "data") or self._file.connection.execute(differ).fetchone()[0]:
                yield order

    def _facets(self) -> Iterator[Facet]:
        summed = "SELECT field, label, value, sum(groups) AS n"
        counted = f"{summed} FROM facets JOIN kinds USING (kind) GROUP BY 1, 2, 3"
        rank = "row_number() OVER (PARTITION BY field, label ORDER BY n DESC, value)"
        listed = f"SELECT * FROM (SELECT *, {rank} AS place FROM ({counted})) WHERE place <= {MOST_LISTED}"
        found: dict[tuple[str, str], dict[str, int]] = {}
        for field, label, value, groups, _ in self._file.connection.execute(listed):
            found.setdefault((field, label), {})[value] = groups
        for field, label in sorted(found, key=_facet_order):
            yield _facet(field, label, found[field, label])


def _images(judged: JudgedGroup, sent: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, str]]:
    """The path and the digest of each image of a group, where both are known."""
    for outcome in judged.group:
        digests = sent.get(outcome.key, ())
        if len(digests) == len(outcome.images):
            yield from zip(outcome.images, digests, strict=True)


def _facet(field: str, label: str, counts: Mapping[str, int]) -> Facet:
    values = CHOICES.get(field) or sorted(counts, key=lambda value: (-counts[value], value))
    return Facet(field, tuple(FacetValue(one, counts[one]) for one in values if one in counts), label)


def _facet_order(name: tuple[str, str]) -> tuple[int, str]:
    field, label = name
    return (list(CHOICES).index(field) if field in CHOICES else len(CHOICES), label)


# -- Reading

_row = msgspec.json.Decoder(GroupRow)


class RunIndex:
    """The finished index of a run. Threads may share it."""

    def __init__(self, store: Store, run: int, path: Path, body: IndexBody) -> None:
        self.store, self.run, self.path = store, run, path
        self.id, self.key, self.awaited = body.id, body.key, body.awaited
        self.groups, self.orders = body.groups, body.orders
        self.result_json = bytes(body.result)
        self._facets = body.facets
        self._counts = lru_cache(SEARCHES)(self._facet_counts)

    @cached_property
    def result(self) -> Result:
        return msgspec.json.decode(self.result_json, type=Result)

    def page(
        self,
        wanted: GroupFilter = EVERY,
        after: int | None = None,
        limit: int = PAGE,
        order: Order = "informative",
        also: Collection[int] = (),
    ) -> GroupPage:
        """Read a page of groups that a filter selects or `also` names, after `next` of the page before."""
        column = self._column(order)
        found = _where(wanted)
        if also:
            filtered = f"SELECT number FROM {found.source} WHERE {found.condition}"
            condition = f"(number IN ({filtered}) OR number IN (SELECT value FROM json_each(?)))"
            found = _Where(condition, [*found.values, msgspec.json.encode(sorted(also)).decode()])
        before, numbers = [], self._beside(column, found, after, limit + 1)
        if after is not None:
            before = self._beside(column, found, after, limit + 1, "<=", "DESC")
        return GroupPage(
            tuple(self.rows(numbers[:limit])),
            before[limit] if len(before) > limit else None,
            numbers[limit - 1] if len(numbers) > limit else None,
            self._count(found) if also else self.count(wanted),
        )

    def neighbours(
        self, number: int, wanted: GroupFilter = EVERY, order: Order = "informative"
    ) -> Neighbours:
        column, found = self._column(order), _where(wanted)
        before = self._beside(column, found, number, 1, "<", "DESC")
        return Neighbours(
            *(next(iter(one), None) for one in (before, self._beside(column, found, number, 1)))
        )

    def count(self, wanted: GroupFilter) -> int:
        if wanted.search:  # which takes the longest, and whose filters are counted beside it
            return _groups_in(self._counts(wanted))
        found = _where(wanted)
        query = f"SELECT coalesce(sum(groups), 0) FROM kinds WHERE {found.condition}"
        return int(self.rows_of(query, found.values)[0][0])

    def numbers_of(self, wanted: GroupFilter) -> list[int]:
        found = _where(wanted)
        query = f"SELECT number FROM {found.source} WHERE {found.condition} ORDER BY number"
        return [number for (number,) in self.rows_of(query, found.values)]

    def numbers_of_samples(self, samples: Collection[str]) -> list[int]:
        query = "SELECT number FROM groups WHERE sample IN (SELECT value FROM json_each(?)) ORDER BY number"
        names = msgspec.json.encode(sorted(samples)).decode()
        return [number for (number,) in self.rows_of(query, [names])]

    def find(self, sample: str, draw: int, pooled: str) -> GroupRow:
        """Find a group by its identity; without draw and variant (0 and ''), the first one of its sample."""
        rows = self.rows(self.numbers_of_samples([sample]))
        for row in rows:
            if row.key == (sample, draw, pooled) or not (draw or pooled):
                return row
        raise NoSuchRecordError(
            f"run {self.run} has no such group", record=sample, expected="the id of one of its groups"
        )

    def facets(self, wanted: GroupFilter = EVERY) -> Facets:
        """Count the groups of each value of a filter under the other conditions."""
        if wanted == EVERY:
            return Facets(self._facets, self.groups)
        counts = dict(self._counts(wanted))
        total = _groups_in(counts)
        chosen = {(field, label) for field, label, _ in _conditions(wanted)}
        for field, label in chosen:
            others = self._counts(_without(wanted, field, label))
            counts |= {name: groups for name, groups in others.items() if name[:2] == (field, label)}
        listed = [
            _facet(
                one.name,
                one.label,
                {of.value: counts.get((one.name, one.label, of.value), 0) for of in one.values},
            )
            for one in self._facets
        ]
        return Facets(tuple(listed), total)

    def group(self, number: int) -> GroupDetail:
        self._check(number)
        (detail,) = self.details(self.rows([number]))
        return detail

    def details(self, rows: Sequence[GroupRow]) -> list[GroupDetail]:
        numbers = [row.number for row in rows]
        read = dict(zip(numbers, map(read_lines, self.lines(numbers)), strict=True))
        images = self._images_of([one for outcomes, _ in read.values() for one in outcomes])
        return [group_detail(row, *read[row.number], images) for row in rows]

    def rows(self, numbers: Sequence[int]) -> list[GroupRow]:
        return [_row.decode(row) for (row,) in self._bodies("row", numbers)]

    def lines(self, numbers: Iterable[int] | None = None) -> Iterator[Lines]:
        """Read the lines of answers.jsonl and verdicts.jsonl of some groups; None for all."""
        for several in self._bodies("answers, verdicts", numbers):
            try:
                yield Lines(*map(decompress, several))
            except DamagedBodyError as error:
                raise _unreadable(self.path, error) from None

    def answer_lines(self, wanted: GroupFilter) -> Iterator[bytes]:
        """Read the lines of answers.jsonl of the groups that a filter selects."""
        return (lines.answers for lines in self.lines(self.numbers_of(wanted)))

    def facts(self) -> Iterator[GroupRow]:
        """All groups, in the order of their numbers."""
        return (_row.decode(row) for (row,) in self._bodies("row", None))

    def place(self, number: int, column: str = "information") -> float:
        """The place of a group in an order."""
        self._check(number)
        found = self.rows_of(f"SELECT {column} FROM groups WHERE number = ?", [number])
        return float(found[0][0]) if column == "similarity" else int(found[0][0])

    def image_path(self, digest: str) -> str:
        """Look up where an image of the run is by its SHA-256 in hexadecimal."""
        found = self.rows_of("SELECT path FROM images WHERE digest = ?", [digest])
        if not found:
            raise ImageError(
                f"run {self.run} has no such image", found=digest, expected="an image of its groups"
            )
        return os.fsdecode(found[0][0])

    def _images_of(self, outcomes: Sequence[Outcome]) -> dict[str, IndexedImage]:
        shown = [outcome for outcome in outcomes if outcome.images]
        held = self.store.answers.images(sorted({outcome.key for outcome in shown})) if shown else {}
        sent = {digest for of_request in held.values() for digest in of_request}
        paths = sorted({path for outcome in shown for path in outcome.images})
        query = f"SELECT path, digest FROM images WHERE path IN ({', '.join('?' * len(paths))})"
        found = self.rows_of(query, list(map(os.fsencode, paths)))
        digests = {os.fsdecode(path): digest for path, digest in found}
        return {
            path: IndexedImage(path, digests.get(path, ""), is_sent=digests.get(path) in sent)
            for path in paths
        }

    def rows_of(self, query: str, values: Sequence[object] = ()) -> list[Any]:
        with _opened(self.path) as connection:
            return connection.execute(query, values).fetchall()

    def _bodies(self, columns: str, numbers: Iterable[int] | None) -> Iterator[Any]:
        with _opened(self.path) as connection:
            if numbers is None:
                yield from connection.execute(f"SELECT {columns} FROM bodies ORDER BY number")
                return
            for number in numbers:
                query = f"SELECT {columns} FROM bodies WHERE number = ?"
                yield connection.execute(query, (number,)).fetchone()

    def _beside(
        self, column: str, found: _Where, number: int | None, limit: int, sign: str = ">", way: str = "ASC"
    ) -> list[int]:
        """The first groups after another one in an order, or before it; None for the first of all."""
        condition, values, source = found
        if number is not None:
            condition = f"({column}, number) {sign} (?, ?) AND {condition}"
            values = [self.place(number, column), number, *values]
        ordered = f"ORDER BY {column} {way}, number {way} LIMIT {limit}"
        query = f"SELECT number FROM {source} WHERE {condition} {ordered}"
        return [number for (number,) in self.rows_of(query, values)]

    def _count(self, found: _Where) -> int:
        query = f"SELECT count(*) FROM {found.source} WHERE {found.condition}"
        return int(self.rows_of(query, found.values)[0][0])

    def _facet_counts(self, wanted: GroupFilter) -> dict[FacetName, int]:
        condition, values, source = _where(wanted)
        counted = f"SELECT kind, groups FROM kinds WHERE {condition}"
        if wanted.search:
            counted = f"SELECT kind, count(*) AS groups FROM {source} WHERE {condition} GROUP BY kind"
        summed = "SELECT field, label, value, sum(groups)"
        query = f"{summed} FROM facets JOIN ({counted}) USING (kind) GROUP BY 1, 2, 3"
        return {(field, label, value): groups for field, label, value, groups in self.rows_of(query, values)}

    def _column(self, order: Order) -> str:
        if order not in self.orders:
            raise UserError(
                "the groups of this run have no such order",
                field="order",
                found=order,
                expected=" or ".join(self.orders),
            )
        return COLUMNS[order]

    def _check(self, number: int) -> None:
        if not 1 <= number <= self.groups:
            raise NoSuchRecordError(
                f"run {self.run} has no such group",
                record=number,
                expected=f"a number from 1 to {self.groups}",
            )


class _Where(NamedTuple):
    """A condition of SQL on groups, its values, and the tables that it is on."""

    condition: str
    values: Sequence[object]
    source: str = "groups"


def _groups_in(counts: Mapping[FacetName, int]) -> int:
    """The number of the groups that are counted: each has one value of `right`."""
    return sum(groups for (field, _, _), groups in counts.items() if field == "right")


def _where(wanted: GroupFilter) -> _Where:
    parts: list[str] = []
    values: list[object] = []
    for name in _conditions(wanted):
        parts.append("kind IN (SELECT kind FROM facets WHERE field = ? AND label = ? AND value = ?)")
        values += name
    source = "groups"
    if words := matched_words(wanted.search or ""):  # blanks alone look for nothing
        # From the words to their groups: `number IN (...)` first makes a list of all that are found.
        source = "words CROSS JOIN groups ON number = words.rowid"
        parts.append("words MATCH ?")
        values.append(words)
    return _Where(" AND ".join(parts) or "TRUE", values, source)


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
        return replace(wanted, labels=others)
    return replace(wanted, **{field: None})


# -- Comparisons of two runs


class ListedChange(NamedTuple):
    """A group of a list of changes: its numbers in both runs, and what became of it."""

    list: ChangeList
    base: int
    other: int
    change: Change


class ComparedRuns:
    """A comparison of two indexed runs."""

    def __init__(self, base: RunIndex, other: RunIndex, path: Path, summary: RunComparison) -> None:
        self.summary = summary
        self._base, self._other, self._path = base, other, path

    def page(
        self, name: ChangeList, wanted: GroupFilter = EVERY, after: int | None = None, limit: int = PAGE
    ) -> ChangePage:
        """Read a page of the groups behind a number, after `next` of the page before; None for the first."""
        condition = "list = ?"
        values: list[object] = [name]
        if wanted != EVERY:
            condition += " AND number IN (SELECT value FROM json_each(?))"
            values.append(msgspec.json.encode(self._other.numbers_of(wanted)).decode())
        with _opened(self._path) as connection:
            total = connection.execute(f"SELECT count(*) FROM changed WHERE {condition}", values).fetchone()[
                0
            ]
            if after is not None:
                condition += " AND (information, number) > (?, ?)"
                values += [self._other.place(after), after]
            query = f"SELECT base, number, change FROM changed WHERE {condition}"
            paged = f"{query} ORDER BY information, number LIMIT {limit + 1}"
            found = connection.execute(paged, values).fetchall()
        shown = found[:limit]
        sides = [
            index.details(index.rows([numbers[place] for numbers in shown]))
            for place, index in enumerate((self._base, self._other))
        ]
        rows = tuple(
            ChangedGroup(one[2], *pair) for one, pair in zip(shown, zip(*sides, strict=True), strict=True)
        )
        return ChangePage(rows, shown[-1][1] if len(found) > limit else None, total)


def write_comparison(
    path: Path, summary: RunComparison, other: RunIndex, changes: Iterable[ListedChange]
) -> None:
    """Write a comparison: the numbers, and the groups behind each of them."""
    file = _NewFile(path, _COMPARISON_TABLES)
    try:
        information = dict(other.rows_of("SELECT number, information FROM groups"))
        with file.errors():
            file.connection.executemany(
                "INSERT INTO changed VALUES (?, ?, ?, ?, ?)",
                ((one.list, information[one.other], one.other, one.base, one.change) for one in changes),
            )
        file.finish(summary)
    except BaseException:
        file.abandon()
        raise
