"""The groups that filters select, as sets of ranks, and how many each value of a filter would select."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache

import msgspec
from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.store import Store
from sightline.outcome_index.builder import FacetName, facet_key
from sightline.outcome_index.group_filter import CHOICES, GroupFilter
from sightline.outcome_index.rank_set import decode_ranks
from sightline.outcome_index.stored_body import reading
from sightline.outcome_index.types import Facet, Facets, FacetValue

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
        """Find the groups that fulfil a filter."""
        chosen = (1 << self._groups) - 1
        for name in _conditions(wanted):
            chosen &= self._facet(name)
        return chosen & self._found(wanted.search) if wanted.search else chosen

    def facets(self, wanted: GroupFilter) -> Facets:
        """Count the groups of each value of a filter."""
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
        table = index_tables.facets.c
        query = select(table.name).where(table.index_id == self._id, table.listed == 1)
        with self._store.database.core_read() as connection:
            names = connection.scalars(query).all()
        return [msgspec.msgpack.decode(name, type=FacetName) for name in names]

    def _read_facet(self, name: FacetName) -> int:
        table = index_tables.facets.c
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
