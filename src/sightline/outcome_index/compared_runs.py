"""The comparisons of indexed runs: made once, kept in the store, read with the groups behind each number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from threading import Lock

from sqlalchemy import select

from sightline.engine import index_tables
from sightline.engine.database import insert_new
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED
from sightline.outcome_index.comparisons import CHANGES, ComparisonBody, make_comparison
from sightline.outcome_index.group_filter import EVERY, GroupFilter
from sightline.outcome_index.rank_set import decode_ranks, integers_of_bytes
from sightline.outcome_index.run_index import PAGE, RunIndex
from sightline.outcome_index.stored_body import StoredBody, reading
from sightline.outcome_index.types import ChangedGroup, ChangeList, ChangePage, RunComparison
from sightline.results.run_names import name_or_number
from sightline.results.stored_run import read_stored_run

_BODY = StoredBody(ComparisonBody, "index_comparisons")


class ComparedRuns:
    """A comparison of two indexed runs."""

    def __init__(self, base: RunIndex, other: RunIndex, body: ComparisonBody) -> None:
        self._base, self._other = base, other
        self._body = body

    @property
    def summary(self) -> RunComparison:
        """Its numbers."""
        return self._body.summary

    def page(
        self, name: ChangeList, wanted: GroupFilter = EVERY, after: int | None = None, limit: int = PAGE
    ) -> ChangePage:
        """Read a page of the groups behind a number.

        Args:
            after: `next` of the page before; None for the first page.
        """
        with reading(self._other.store.name, "index_comparisons", self._base.id):
            listed = decode_ranks(self._body.lists[name], self._other.groups)
        page = self._other.page_of(listed & self._other.select(wanted), after, limit)
        places = [self._places[row.number - 1] for row in page.rows]
        base_rows = self._base.rows([self._positions[place] + 1 for place in places])
        sides = self._base.details(base_rows), self._other.details(page.rows)
        rows = (
            ChangedGroup(CHANGES[self._body.changes[place]], base, other)
            for place, base, other in zip(places, *sides, strict=True)
        )
        return ChangePage(tuple(rows), page.next, page.total)

    @cached_property
    def _places(self) -> dict[int, int]:
        """The place of a pair of groups by its position in the other run."""
        return {number: place for place, number in enumerate(integers_of_bytes(self._body.other))}

    @cached_property
    def _positions(self) -> Sequence[int]:
        """The position in the base run of each pair."""
        return integers_of_bytes(self._body.base)


class RunComparisons:
    """The comparisons of a store. Its methods block; several threads may use it."""

    def __init__(self, store: Store, index_of: Callable[[int], RunIndex]) -> None:
        self._store = store
        self._index_of = index_of
        self._kept: dict[tuple[int, int], ComparedRuns] = {}
        self._making = Lock()

    def find(self, base: int, other: int) -> ComparedRuns | None:
        """Find the comparison of two runs.

        Returns:
            The comparison; None before it is made.
        """
        return self._find(self._index_of(base), self._index_of(other))

    def build(self, base: int, other: int) -> ComparedRuns:
        """Compare two runs, unless they are compared."""
        with self._making:
            indexes = (self._index_of(base), self._index_of(other))
            if (found := self._find(*indexes)) is not None:
                return found
            for run in (base, other):
                if not read_stored_run(self._store, run).is_finished:
                    raise UserError(
                        f"run {run} {UNFINISHED}", file=self._store.name, expected="runs that finished"
                    )
            names = (name_or_number(self._store, base), name_or_number(self._store, other))
            body = make_comparison((base, other), names, indexes)
            row = (indexes[0].id, indexes[1].id, _BODY.encode(body))
            with self._store.database.write() as connection:
                insert_new(connection, index_tables.comparisons.name, ("base", "other", "body"), [row])
            return self._keep(*indexes, body)

    def _find(self, base: RunIndex, other: RunIndex) -> ComparedRuns | None:
        if (kept := self._kept.get((base.id, other.id))) is not None:
            return kept
        table = index_tables.comparisons.c
        query = select(table.body).where(table.base == base.id, table.other == other.id)
        with self._store.database.core_read() as connection:
            body = connection.scalar(query)
        if body is None:
            return None
        return self._keep(base, other, _BODY.decode(bytes(body), self._store.name, base.id))

    def _keep(self, base: RunIndex, other: RunIndex, body: ComparisonBody) -> ComparedRuns:
        kept = self._kept[base.id, other.id] = ComparedRuns(base, other, body)
        return kept
