"""Other orders of groups than the most informative first: sequences of ranks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.outcome_index.rank_set import integers_of_bytes

Order = Literal["informative", "data", "length", "similarity"]
"""The most informative groups first; in the order of the samples; the longest response first; the least
similar answers first."""


def stored_orders(
    ranks: array[int], words: array[int], similarities: array[float]
) -> Mapping[Order, NDArray[np.uint32]]:
    """Sort the groups of a run by what only its index knows.

    Args:
        similarities: The smallest similarity of two of its answers; NaN if it was not measured.
    """
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
        table = index_tables.sorts.c
        query = select(table.name).where(table.index_id == self._id).distinct()
        with self._store.database.core_read() as connection:
            stored = {"informative", "data", *connection.scalars(query)}
        return tuple(order for order in get_args(Order) if order in stored)

    def page(self, order: Order, chosen: int, after: int | None, limit: int) -> OrderedPage:
        """Read a page of a set of groups.

        Args:
            after: The place of the last group of the page before; None for the first page.
        """
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
        """Find the groups beside a group.

        Returns:
            The ranks of the groups before and after it; None at the ends of the list.
        """
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
            table = index_tables.sorts.c
            query = select(table.ranks).where(table.index_id == self._id, table.name == order)
            with self._store.database.core_read() as connection:
                blocks = connection.scalars(query.order_by(table.block))
                self._read[order] = integers_of_bytes(b"".join(map(bytes, blocks)))
        return self._read[order]


def _places_of(sequence: array[int], chosen: int) -> NDArray[np.intp]:
    """The places of the groups of a set in an order, in ascending order."""
    bits = np.frombuffer(chosen.to_bytes(len(sequence) // 8 + 1, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(bits, bitorder="little")[np.asarray(sequence)])
