"""Writes the index of a run: what it keeps of each judged group, its key, its bodies and blocks.

Its memory is some bytes for each group.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from itertools import combinations, groupby, islice
from math import comb
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import func, insert, select, update

import sightline
from sightline.errors import EnvironmentFailedError
from sightline.evaluation.folder import Lines, lines_of
from sightline.evaluation.judges import JudgedGroup
from sightline.formats.groups import right_positions
from sightline.formats.jsonl import decode_verdict
from sightline.metrics.consistency import normalised_answers
from sightline.scoring.similarity import SIMILAR, THRESHOLD
from sightline.store import schema
from sightline.store.database import Connection, insert_new
from sightline.store.database import insert as insert_rows
from sightline.store.failures import damage
from sightline.store.runs import DamagedBodyError, compress, decompress, no_run
from sightline.store.store import Store
from sightline.types import Group, Outcome, Result, Verdict, VerdictName
from sightline.viewer.index_images import ImageDigests
from sightline.viewer.index_types import (
    INCOMPARABLE,
    Consistency,
    GroupDetail,
    GroupFacts,
    GroupRow,
    IndexedImage,
    Mark,
    Misfit,
    ResponseLength,
    RightShare,
    SimilarityMatrix,
    encode_ranks,
    integers_to_bytes,
    stored_orders,
)

# -- What the index keeps of a judged group: a row for lists, its place in the order, the values of
#    filters

QUESTION_CHARACTERS = 200
"""The most characters of a question that lists show."""

COMPARED = (SIMILAR, "same_meaning")
"""The questions of verdicts that say whether two answers are the same, in the order in which they count."""

_SHARES: tuple[RightShare, ...] = ("none", "some", "undecided", "unscored", "all")
"""The order of lists."""

_UNKNOWN: tuple[VerdictName, ...] = ("undecided", "error")
"""Verdicts that leave open whether the answer is right."""

_SIMILARITY_STEPS = 1 << 20


class StoredRow(GroupFacts, frozen=True, array_like=True):
    """A row of a list as a block has it; `digest` is the raw SHA-256 of the image."""

    image: str
    digest: bytes
    misfits: tuple[Misfit, ...] = ()


class GroupEntry(NamedTuple):
    """A group in the index.

    `order` is smaller for a more informative group; `facets` holds field, label and value; `words` is the
    number of words of the longest response.
    """

    row: StoredRow
    order: int
    facets: frozenset[tuple[str, str, str]]
    words: int


class _Agreement(NamedTuple):
    """Two answers of a group: their positions, whether they are the same, and whether they should be."""

    first: int
    second: int
    same: bool
    expected: bool


def group_entry(group: Group, verdicts: list[Verdict], digest: bytes = b"") -> GroupEntry:
    pairs = list(_agreements(group))
    wrong = [pair for pair in pairs if pair.same != pair.expected]
    consistency = _consistency(group, pairs)
    right, similarity = _right_share(group), _least_similarity(group)
    views = _judge_views(verdicts)
    flags = (
        *(["inconsistent"] if any(pair.expected for pair in wrong) else []),
        *(["same answer twice"] if any(pair.same for pair in wrong) else []),
        *(["judges differ"] if "differ" in views else []),
        *(["truncated"] if any(outcome.truncated for outcome in group) else []),
    )
    labels = tuple(dict.fromkeys(label for outcome in group for label in _labels(outcome)))
    row = StoredRow(
        sample=group.id,
        draw=group.draw,
        pooled=group.pooled,
        question=_shortened(group.outcomes[0].question),
        marks=tuple(Mark(one.variant, one.draw, one.verdict) for one in group),
        right=right,
        consistency=consistency,
        flags=flags,
        similarity=similarity,
        labels=labels,
        image=next((path for outcome in group for path in outcome.images), ""),
        digest=digest,
        misfits=tuple(Misfit(pair.first, pair.second, pair.same) for pair in wrong),
    )
    words = max(len(outcome.response.split()) for outcome in group)
    facets = {
        ("right", "", right),
        ("consistency", "", consistency or INCOMPARABLE),
        ("length", "", response_length(words)),
        *(("verdict", "", outcome.verdict) for outcome in group),
        *(("judges", "", view) for view in views),
        *(("label", name, value) for name, value in labels),
    }
    return GroupEntry(row, _order(group, row), frozenset(facets), words)


def response_length(words: int) -> ResponseLength:
    if words <= 5:
        return "1-5" if words else "empty"
    if words <= 50:
        return "6-50"
    return "51-200" if words <= 200 else "over-200"


def same_answer(group: Group, first: int, second: int) -> bool | None:
    """Whether two answers are the same: by a verdict on them, else by their normalised texts.

    None if an answer is missing or empty, or the verdict on them is undecided.
    """
    one, other = group.outcomes[first], group.outcomes[second]
    if not (one.answered and other.answered):
        return None
    if one.key == other.key:
        return True
    verdict = _verdicts_on_pairs(group).get(frozenset((one.key, other.key)))
    if verdict is not None:
        return {"right": True, "wrong": False}.get(verdict.verdict)
    texts = normalised_answers(group)
    return texts[first] == texts[second] if texts[first] and texts[second] else None


def _verdicts_on_pairs(group: Group) -> dict[frozenset[str], Verdict]:
    def derive(judged: Group) -> dict[frozenset[str], Verdict]:
        return {
            frozenset(verdict.targets): verdict
            for question in reversed(COMPARED)
            for verdict in judged.judgements
            if verdict.question == question and len(verdict.targets) == 2
        }

    return group.once("verdicts on pairs", derive)


def _agreements(group: Group) -> Iterator[_Agreement]:
    expected = [_expected(outcome) for outcome in group]
    for first, second in combinations(range(len(group)), 2):
        same = same_answer(group, first, second)
        if same is not None:
            yield _Agreement(first, second, same, expected[first] == expected[second])


def _expected(outcome: Outcome) -> frozenset[str]:
    """The references; a letter stands for its option, which may have another letter in another variant."""
    right = right_positions(outcome.references, outcome.options)
    return frozenset(outcome.options[position] for position in right) or frozenset(outcome.references)


def _consistency(group: Group, pairs: Sequence[_Agreement]) -> Consistency | None:
    if len(group) < 2:
        return None
    if any(pair.same != pair.expected for pair in pairs):
        return "inconsistent"
    return "consistent" if len(pairs) == comb(len(group), 2) else "undecided"


def _right_share(group: Group) -> RightShare:
    if not all(outcome.scored for outcome in group):
        return "unscored"
    right = sum(outcome.right for outcome in group)
    unknown = sum(outcome.verdict in _UNKNOWN for outcome in group)
    if right == len(group):
        return "all"
    if right and right + unknown < len(group):
        return "some"
    return "undecided" if unknown else "none"


def _least_similarity(group: Group) -> float | None:
    values = [
        verdict.value
        for verdict in group.judgements
        if verdict.question == SIMILAR and verdict.value is not None
    ]
    return min(values, default=None)


def judges_differ(verdicts: Iterable[Verdict]) -> bool:
    """Whether one judge calls an answer right, and another one wrong."""
    decided: dict[tuple[tuple[str, ...], str], set[str]] = {}
    for verdict in verdicts:
        if verdict.question == "correct" and verdict.verdict in ("right", "wrong"):
            decided.setdefault((verdict.targets, verdict.variant), set()).add(verdict.verdict)
    return any(len(names) > 1 for names in decided.values())


def _judge_views(verdicts: list[Verdict]) -> set[str]:
    views = {"human"} if any(verdict.kind == "human" for verdict in verdicts) else set()
    return views | {"differ"} if judges_differ(verdicts) else views


def _labels(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for name, values in outcome.labels.items():
        for value in (values,) if isinstance(values, str) else values:
            yield name, value


def _order(group: Group, row: StoredRow) -> int:
    """Complete groups first; of these, inconsistent ones; then by right answers, then the least similar."""
    similarity = 1.0 if row.similarity is None else row.similarity
    step = round((max(-1.0, min(1.0, similarity)) + 1) / 2 * (_SIMILARITY_STEPS - 1))
    classes = ((not group.complete) * 2 + (row.consistency != "inconsistent")) * len(_SHARES)
    return (classes + _SHARES.index(row.right)) * _SIMILARITY_STEPS + step


def _shortened(question: str) -> str:
    line = " ".join(question[: 4 * QUESTION_CHARACTERS].split())
    return line if len(line) <= QUESTION_CHARACTERS else line[: QUESTION_CHARACTERS - 1] + "…"


# -- A group with everything about it, from its lines of answers.jsonl and verdicts.jsonl

_outcome = msgspec.json.Decoder(Outcome)


def read_lines(lines: Lines) -> tuple[tuple[Outcome, ...], tuple[Verdict, ...]]:
    # In JSON, line breaks within texts are escaped.
    outcomes = tuple(map(_outcome.decode, lines.answers.splitlines()))
    return outcomes, tuple(map(decode_verdict, lines.verdicts.splitlines()))


def group_detail(
    row: GroupRow,
    outcomes: tuple[Outcome, ...],
    verdicts: tuple[Verdict, ...],
    images: Mapping[str, IndexedImage],
) -> GroupDetail:
    shown = tuple(tuple(images[path] for path in outcome.images) for outcome in outcomes)
    return GroupDetail(row, outcomes, verdicts, shown, similarity_matrix(outcomes, verdicts))


def similarity_matrix(outcomes: Sequence[Outcome], verdicts: Sequence[Verdict]) -> SimilarityMatrix | None:
    """Arrange the similarities of the answers of a group; None if none was measured."""
    measured = {
        frozenset(verdict.targets): verdict.value
        for verdict in verdicts
        if verdict.question == SIMILAR and verdict.value is not None
    }
    if not measured:
        return None
    pools = len({outcome.variant for outcome in outcomes}) < len(outcomes)
    names = tuple(f"{one.variant} {one.draw}" if pools else one.variant for one in outcomes)
    values = tuple(
        tuple(
            measured.get(frozenset((one.key, other.key))) if one is not other else None for other in outcomes
        )
        for one in outcomes
    )
    return SimilarityMatrix(names, values, THRESHOLD)


# -- The key of an index: what it depends on, in a form that is quick to compute at each visit

MOST_WAITING = 500
"""Of more requests without an answer, only the first ones are watched."""


class Awaited(Struct, frozen=True):
    """Requests without an answer when a run was indexed; `last_attempt` is None unless judges failed."""

    keys: tuple[str, ...] = ()
    attempts: bytes = b""
    last_attempt: int | None = None


def index_key(store: Store, run: int) -> bytes:
    runs, probes = schema.runs.c, schema.probes.c
    with store.database.core_read() as connection:
        row = connection.execute(select(runs.body, runs.finished).where(runs.id == run)).one_or_none()
        if row is None:
            raise no_run(run, store.name)
        extent = select(func.count(), func.max(probes.place)).where(probes.run == run)
        chunks, last = connection.execute(extent).one()
    body, finished = row
    goes_on = store.answers.last_attempt() if finished is None else None
    digest = hashlib.sha256(sightline.__version__.encode())
    digest.update(bytes(body))
    digest.update(msgspec.json.encode([finished, chunks, last, goes_on]))
    return digest.digest()


def awaited(store: Store, keys: tuple[str, ...], *, judges_failed: bool) -> Awaited:
    last = store.answers.last_attempt() if judges_failed else None
    return Awaited(keys, _attempts(store, keys), last)


def is_current(store: Store, earlier: Awaited) -> bool:
    """Say whether nothing was answered since."""
    if earlier.last_attempt is not None and earlier.last_attempt != store.answers.last_attempt():
        return False
    return not earlier.keys or earlier.attempts == _attempts(store, earlier.keys)


def _attempts(store: Store, keys: tuple[str, ...]) -> bytes:
    counting = store.answers.counting([bytes.fromhex(key) for key in keys])
    numbers = sorted((key, number) for key, (number, _) in counting.items())
    return hashlib.sha256(msgspec.msgpack.encode(numbers)).digest()


# -- Bodies of rows of the index: msgpack, compressed. One that is damaged names its row

T = TypeVar("T")


class StoredBody(Generic[T]):
    """How the bodies of a column are encoded; several threads may use it."""

    def __init__(self, kind: type[T], table: str) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._table = table

    def encode(self, content: T) -> bytes:
        return compress(msgspec.msgpack.encode(content))

    def decode(self, body: bytes, store: str, row: int) -> T:
        with reading(store, self._table, row):
            return self._decoder.decode(decompress(body))


@contextmanager
def reading(store: str, table: str, row: int) -> Iterator[None]:
    """Report a row that cannot be decoded as damage of the store."""
    try:
        yield
    except (DamagedBodyError, msgspec.MsgspecError) as error:
        raise damage(store, table, row, str(error)) from None


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
        table = schema.indexes
        with store.database.core_write() as connection:
            left = select(table.c.id).where(
                table.c.body.is_(None), table.c.alive < time.time() - LEFT_SECONDS
            )
            schema.drop_indexes(connection, connection.scalars(left).all())
            values = {"run": run, "key": key, "done": 0, "total": total, "alive": time.time()}
            found = connection.execute(insert(table).values(values)).inserted_primary_key
        assert found is not None
        self._id = int(found[0])

    @property
    def samples(self) -> int:
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
        table = schema.indexes
        with self._store.database.core_write() as connection:
            writer = Connection(connection)
            orders = [
                (
                    self._id,
                    start // ORDER_BLOCK,
                    integers_to_bytes(numbers[start : start + ORDER_BLOCK]),
                    integers_to_bytes(ranks[start : start + ORDER_BLOCK]),
                )
                for start in range(0, len(numbers), ORDER_BLOCK)
            ]
            insert_rows(writer, schema.orders.name, ("index_id", "block", "numbers", "ranks"), orders)
            sorts = list(self._sort_rows(ranks))
            insert_rows(writer, schema.sorts.name, ("index_id", "name", "block", "ranks"), sorts)
            names = ("index_id", "key", "name", "groups", "listed", "ranks")
            insert_rows(writer, schema.facets.name, names, list(self._facet_rows(ranks)))
            earlier = select(table.c.id).where(
                table.c.run == self._run, table.c.id < self._id, table.c.body.is_not(None)
            )
            schema.drop_indexes(connection, connection.scalars(earlier).all())
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
        with self._store.database.core_write() as connection:
            schema.drop_indexes(connection, [self._id])

    def _write(self) -> None:
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
        table = schema.indexes
        with self._store.database.core_write() as connection:
            writer = Connection(connection)
            insert_rows(writer, schema.blocks.name, ("index_id", "block", "rows", "lines"), blocks)
            paths = [(os.fsencode(path), self._id, digest) for path, digest in images.items()]
            insert_new(writer, schema.index_images.name, ("path", "index_id", "digest"), paths)
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
    return hashlib.sha256(msgspec.msgpack.encode(name)).digest()[:16]


def _most_frequent(counts: Mapping[FacetName, int]) -> Iterable[FacetName]:
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


# -- Compressed blocks of groups: rows for lists, and lines of answers.jsonl and verdicts.jsonl

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
        table = schema.blocks.c
        query = select(table.block, table[column]).where(table.index_id == self._id, table.block.in_(wanted))
        with self._store.database.core_read() as connection:
            found = {int(block): bytes(body) for block, body in connection.execute(query)}
        for block in wanted:
            if block not in found:
                raise damage(self._store.name, "index_blocks", block, "it is missing")
            yield block, found[block]
