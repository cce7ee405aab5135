"""The records of the index (runs, groups, facets, comparisons), its filters, and sets and orders of ranks."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from sqlalchemy import select

from sightline.errors import UserError
from sightline.evaluation.runs import RunLine
from sightline.metrics.flips import Change, ChangeCounts
from sightline.store import schema
from sightline.store.runs import compress, decompress
from sightline.store.store import Store
from sightline.types import MetricValue, Outcome, Result, Verdict, VerdictName

RightShare = Literal["all", "some", "none", "undecided", "unscored"]
"""Whether all, some or none of the answers of a group are right; `undecided` if that depends on an undecided
verdict or on a missing answer; `unscored` if an answer is not scored."""

Consistency = Literal["consistent", "inconsistent", "undecided"]
"""Inconsistent: answers differ where the references are equal, or are equal where the references differ.
Consistent: every two answers were compared, and fit together. Undecided: no two answers are known not to fit,
but the comparison of some is undecided, or an answer is missing or empty."""

Comparability = Literal["incomparable"]
"""The group has a single probe."""

INCOMPARABLE: Comparability = "incomparable"

JudgeView = Literal["differ", "human"]
"""`differ`: two judges decide differently about an answer. `human`: a human judged an answer."""

ResponseLength = Literal["empty", "1-5", "6-50", "51-200", "over-200"]
"""The words of the longest response of a group."""

BuildStep = Literal["absent", "building", "stale", "ready", "failed"]
"""`stale`: there is an index, but the answers of the run or the code that judges them changed since."""


class IndexState(Struct, frozen=True):
    """Whether the index of a run can be read."""

    step: BuildStep
    done: int = 0
    total: int = 0
    error: str = ""


class RunSummary(Struct, frozen=True):
    """A run of the store, and the content of its metrics.json; None without an index."""

    line: RunLine
    state: IndexState
    result: Result | None = None
    groups: int = 0

    @property
    def run(self) -> int:
        return self.line.number


class IndexedImage(Struct, frozen=True):
    """An image of an answer.

    `digest` is the SHA-256 of the file when it was sent or indexed, in hexadecimal; '' if not recorded.
    """

    path: str
    digest: str = ""
    is_sent: bool = True


class Mark(Struct, frozen=True):
    """The verdict that counts for one probe of a group; marks are in the order of the variants."""

    variant: str
    draw: int
    verdict: VerdictName

    @property
    def label(self) -> str:
        return f"{self.variant}: {self.verdict}"


class Misfit(Struct, frozen=True):
    """Two answers of a group that do not fit together."""

    first: int
    second: int
    is_same: bool


class GroupFacts(Struct, frozen=True):
    """What lists say of a group.

    Attributes:
        consistency: Whether its answers fit together; None for a group of one probe.
        similarity: The smallest similarity of two of its answers, 0 to 1; None if it was not measured.
    """

    sample: str
    draw: int
    pooled: str
    question: str
    marks: tuple[Mark, ...]
    right: RightShare
    consistency: Consistency | None
    flags: tuple[str, ...]
    similarity: float | None
    labels: tuple[tuple[str, str], ...]


class GroupRow(GroupFacts, frozen=True):
    """A group in a list; rank 0 is the most informative one, `image` the first image (None without)."""

    number: int
    rank: int
    image: IndexedImage | None = None
    misfits: tuple[Misfit, ...] = ()


class GroupPage(Struct, frozen=True):
    """A page of a list of groups.

    Attributes:
        previous: The rank that the page before continues after; None if that is the first page, and on it.
        next: The rank to continue after; None on the last page.
    """

    rows: tuple[GroupRow, ...]
    previous: int | None
    next: int | None
    total: int


class SimilarityMatrix(Struct, frozen=True):
    """The similarity of each pair of answers of a group, 0 to 1; None where it was not measured."""

    variants: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    threshold: float


class GroupDetail(Struct, frozen=True):
    """Everything about a group; `similarity` is None if it was not measured."""

    row: GroupRow
    outcomes: tuple[Outcome, ...]
    verdicts: tuple[Verdict, ...]
    images: tuple[tuple[IndexedImage, ...], ...]
    similarity: SimilarityMatrix | None = None


class Neighbours(Struct, frozen=True):
    """The numbers of the groups before and after a group in a list; None at its ends."""

    previous: int | None
    next: int | None


class FacetValue(Struct, frozen=True):
    """A value that a filter can select, and the number of groups that it selects among the filtered ones."""

    value: str
    count: int


class Facet(Struct, frozen=True):
    """A field of a filter with its values."""

    name: str
    values: tuple[FacetValue, ...]
    label: str = ""


class Facets(Struct, frozen=True):
    """The facets of a run under a filter. `total` is the number of its groups that the filter selects."""

    facets: tuple[Facet, ...]
    total: int


ChangeList = Literal[
    "gained",
    "lost",
    "both_right",
    "both_wrong",
    "flipped",
    "undecided",
    "unanswered",
    "identical",
    "different",
]
"""The groups behind a number of a comparison: the lists of `metrics/flips.py`, and `flipped`: an answer of
the group became right or wrong."""


class ChangedGroup(Struct, frozen=True):
    """A group in two runs, and what became of it from the base run to the other one."""

    change: Change
    base: GroupDetail
    other: GroupDetail


class ChangePage(Struct, frozen=True):
    """A page of changed groups; `next` is the rank to continue after, None on the last page."""

    rows: tuple[ChangedGroup, ...]
    next: int | None
    total: int


class ComparedMetric(Struct, frozen=True):
    """A metric of two runs over the groups that both hold.

    Attributes:
        p: The p-value of the difference; None without a test.
        if_decided: The lowest and the highest difference that undecided verdicts allow; None if the metric
            uses no undecided verdict.
    """

    base: MetricValue
    other: MetricValue
    difference: MetricValue
    p: float | None = None
    if_decided: tuple[float, float] | None = None


class RunComparison(Struct, frozen=True):
    """A comparison of two runs."""

    base: int
    other: int
    counts: Sequence[ChangeCounts]
    lists: Mapping[ChangeList, int]
    metrics: Sequence[ComparedMetric]
    by_label: Sequence[tuple[str, ChangeCounts]]
    groups: int
    notes: Sequence[str] = ()


# -- Which groups of a run a list shows: a filter, and its form in a URL

CHOICES: dict[str, tuple[str, ...]] = {
    "right": get_args(RightShare),
    "consistency": (*get_args(Consistency), *get_args(Comparability)),
    "verdict": get_args(VerdictName),
    "judges": get_args(JudgeView),
    "length": get_args(ResponseLength),
}
"""Field -> its values, in the order of lists."""

LABEL = "label."
"""The start of the name of a label in a URL."""


class GroupFilter(Struct, frozen=True):
    """The groups that fulfil every condition; None and '' are no condition."""

    right: RightShare | None = None
    consistency: Consistency | Comparability | None = None
    verdict: VerdictName | None = None
    judges: JudgeView | None = None
    length: ResponseLength | None = None
    labels: tuple[tuple[str, str], ...] = ()
    search: str = ""

    def to_query(self) -> list[tuple[str, str]]:
        fields = [(name, value) for name in CHOICES if (value := getattr(self, name)) is not None]
        labels = [(LABEL + name, value) for name, value in self.labels]
        return [*fields, *labels, *([("search", self.search)] if self.search else [])]


EVERY = GroupFilter()
"""All groups."""


def filter_of(parameters: Iterable[tuple[str, str]]) -> GroupFilter:
    """Read a filter from the parameters of a URL: the inverse of `GroupFilter.to_query`."""
    fields: dict[str, Any] = {}
    labels: list[tuple[str, str]] = []
    for name, value in parameters:
        if not value:
            continue
        if name.startswith(LABEL):
            labels.append((name.removeprefix(LABEL), value))
        elif name == "search":
            fields[name] = value
        elif name in CHOICES:
            if value not in CHOICES[name]:
                raise UserError(
                    "no such filter", field=name, found=value, expected=" or ".join(CHOICES[name])
                )
            fields[name] = value
    return GroupFilter(**fields, labels=tuple(dict.fromkeys(labels)))


# -- Sets of ranks as whole numbers: bit R is set if rank R is in the set. They are combined with & and |

_LIST, _BITS = b"\0", b"\1"


def set_of(ranks: Sequence[int] | NDArray[np.unsignedinteger[Any]], size: int) -> int:
    bits = np.zeros(size, np.bool_)
    bits[np.asarray(ranks, np.intp)] = True
    return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")


def all_ranks(ranks: int) -> list[int]:
    """All ranks of a set; for many ranks, this is faster than `ranks_after`."""
    body = ranks.to_bytes(ranks.bit_length() // 8 + 1, "little")
    found: list[int] = np.flatnonzero(
        np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
    ).tolist()
    return found


def ranks_after(ranks: int, after: int) -> Iterator[int]:
    """The ranks of a set above a rank."""
    rest, rank = ranks >> (after + 1), after
    while rest:
        zeros = (rest & -rest).bit_length()
        rank += zeros
        yield rank
        rest >>= zeros


def last_before(ranks: int, before: int) -> int | None:
    """The highest rank of a set below a rank; None if there is none."""
    below = ranks & ((1 << before) - 1)
    return below.bit_length() - 1 if below else None


def page_before(ranks: int, after: int, limit: int) -> int | None:
    """The rank after which the page before begins; None if it is the first page."""
    rank: int | None = min(after, ranks.bit_length()) + 1
    for _ in range(limit + 1):
        rank = None if rank is None else last_before(ranks, rank)
    return rank


def encode_ranks(ranks: Iterable[int], size: int) -> bytes:
    """Encode a set: as a list if it is small, otherwise as compressed bits."""
    found = sorted(ranks)
    if len(found) * 32 < size:
        return _LIST + integers_to_bytes(found)
    bits = set_of(found, size)
    return _BITS + compress(bits.to_bytes(size // 8 + 1, "little"))


def decode_ranks(body: bytes, size: int) -> int:
    if body[:1] == _LIST:
        return set_of(integers_of_bytes(body[1:]), size)
    return int.from_bytes(decompress(body[1:]), "little")


def integers_to_bytes(values: Iterable[int]) -> bytes:
    """Encode whole numbers from 0 to 2**32 - 1, each in four bytes, little-endian."""
    return _little(array("I", values)).tobytes()


def integers_of_bytes(body: bytes) -> array[int]:
    """Decode whole numbers: the inverse of `integers_to_bytes`."""
    values = array("I")
    values.frombytes(body)
    return _little(values)


def _little(values: array[int]) -> array[int]:
    if sys.byteorder == "big":
        values.byteswap()
    return values


# -- Other orders of groups than the most informative first: sequences of ranks

Order = Literal["informative", "data", "length", "similarity"]
"""The most informative groups first; in the order of the samples; the longest response first; the least
similar answers first."""


def stored_orders(
    ranks: array[int], words: array[int], similarities: array[float]
) -> Mapping[Order, NDArray[np.uint32]]:
    """Sort the groups by what only the index knows; a similarity that was not measured is NaN."""
    of_group = np.array(ranks, dtype=np.uint32)
    keys: dict[Order, NDArray[np.float64]] = {
        "length": -np.array(words, dtype=np.float64),
        "similarity": np.array(similarities, dtype=np.float64),
    }
    return {
        order: of_group[np.argsort(key, kind="stable")]
        for order, key in keys.items()
        if len(np.unique(key[~np.isnan(key)])) > 1
    }


class OrderedPage(NamedTuple):
    """A page of a set of groups: their ranks, and the places that their neighbours continue after.

    `previous` is None if the page before is the first one, and on the first page; `next` on the last page.
    """

    ranks: list[int]
    previous: int | None
    next: int | None


class StoredOrders:
    """The other orders of the groups of an index. Several threads may use it."""

    def __init__(self, store: Store, index_id: int, ranks: Callable[[], array[int]]) -> None:
        self._store = store
        self._id = index_id
        self._ranks = ranks
        self._read: dict[Order, array[int]] = {}

    @cached_property
    def names(self) -> tuple[Order, ...]:
        """The orders that the index has: one by similarity only where that was measured."""
        table = schema.sorts.c
        query = select(table.name).where(table.index_id == self._id).distinct()
        with self._store.database.core_read() as connection:
            stored = {"informative", "data", *connection.scalars(query)}
        return tuple(order for order in get_args(Order) if order in stored)

    def page(self, order: Order, chosen: int, after: int | None, limit: int) -> OrderedPage:
        """Read a page of a set of groups, after the place of the last group before it; None for the first."""
        sequence = self._sequence(order)
        places = _places_of(sequence, chosen)
        begin = 0 if after is None else int(np.searchsorted(places, after, side="right"))
        end = begin + limit
        return OrderedPage(
            [sequence[place] for place in places[begin:end].tolist()],
            int(places[begin - limit - 1]) if begin > limit else None,
            int(places[end - 1]) if end < len(places) else None,
        )

    def neighbours(self, order: Order, chosen: int, rank: int) -> tuple[int | None, int | None]:
        """Find the ranks of the groups before and after a group; None at the ends of the list."""
        sequence = self._sequence(order)
        places = _places_of(sequence, chosen)
        place = int(np.flatnonzero(np.asarray(sequence) == rank)[0])
        before, behind = places[places < place][-1:].tolist(), places[places > place][:1].tolist()
        return (sequence[before[0]] if before else None, sequence[behind[0]] if behind else None)

    def _sequence(self, order: Order) -> array[int]:
        if order == "data":
            return self._ranks()
        if order not in self.names:
            raise UserError(
                "the groups of this run have no such order",
                field="order",
                found=order,
                expected=" or ".join(self.names),
            )
        if order not in self._read:
            table = schema.sorts.c
            query = select(table.ranks).where(table.index_id == self._id, table.name == order)
            with self._store.database.core_read() as connection:
                blocks = connection.scalars(query.order_by(table.block))
                self._read[order] = integers_of_bytes(b"".join(map(bytes, blocks)))
        return self._read[order]


def _places_of(sequence: array[int], chosen: int) -> NDArray[np.intp]:
    """The places of the groups of a set in an order, in ascending order."""
    bits = np.frombuffer(chosen.to_bytes(len(sequence) // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")[np.asarray(sequence)])
