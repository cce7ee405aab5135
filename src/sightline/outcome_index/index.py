"""The index of outcomes of a store: which runs are indexed, building, and reading."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from sqlalchemy import func, select

from sightline.engine import index_tables
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import recompute
from sightline.judging.panel import JudgedGroup
from sightline.outcome_index.builder import ALIVE_SECONDS, BODY, IndexBuilder, Progress
from sightline.outcome_index.compared_runs import RunComparisons
from sightline.outcome_index.image_digests import image_digests
from sightline.outcome_index.images import RunImages
from sightline.outcome_index.index_key import index_key, is_current
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import IndexState, RunSummary
from sightline.results.run_list import RunLine, list_runs, read_run_line
from sightline.results.stored_run import read_stored_run


class OutcomeIndex:
    """The index of a store. Its methods block; several threads may use it."""

    def __init__(self, store: Store, data: Sequence[Path] = ()) -> None:
        self._store = store
        self._data = data
        self.comparisons = RunComparisons(store, self.open)
        self._open: dict[int, RunIndex] = {}
        self._building: defaultdict[int, Lock] = defaultdict(Lock)
        self._errors: dict[int, str] = {}
        with store.database.core_read() as connection:
            missing = set(index_tables.metadata.tables) - set(index_tables.existing(connection))
        if missing:
            with store.database.core_write() as connection:
                index_tables.metadata.create_all(connection)

    def runs(self) -> list[RunSummary]:
        """List the runs of the store."""
        return list(map(self._summary, list_runs(self._store)))

    def summary(self, run: int) -> RunSummary:
        """Describe a run."""
        return self._summary(read_run_line(self._store, run))

    def state(self, run: int) -> IndexState:
        """Say whether the index of a run can be read."""
        return self._state(run, self._complete(run))

    def build(self, run: int, progress: Progress = lambda done, total: None) -> None:
        """Index a run, unless its index is ready. Another thread that builds it is waited for."""
        with self._building[run]:
            if self.state(run).step == "ready":
                return
            stored = read_stored_run(self._store, run)
            total = stored.description.planned_samples
            digests = image_digests(self._store, self.images(run).folders)
            builder = IndexBuilder(self._store, run, index_key(self._store, run), total, digests)
            try:

                def add(judged: JudgedGroup) -> None:
                    builder.add(judged)
                    progress(builder.samples, total)

                builder.finish(recompute(self._store, run, on_group=add))
                self._errors.pop(run, None)
            except BaseException as error:
                self._errors[run] = str(error)
                builder.abandon()
                raise

    def open(self, run: int) -> RunIndex:
        """Open the index of a run, which may be stale."""
        index = self._complete(run)
        if index is None:
            raise UserError(
                f"run {run} is not indexed yet", file=self._store.name, expected="a call of `build`"
            )
        return index

    def images(self, run: int) -> RunImages:
        recorded = map(Path, read_stored_run(self._store, run).folders)
        return RunImages(self._store, [*self._data, *recorded])

    def _summary(self, line: RunLine) -> RunSummary:
        if line.is_damaged:
            return RunSummary(line, IndexState("failed", error="the description of the run is damaged"))
        index = self._complete(line.number)
        state = self._state(line.number, index)
        if index is None:
            return RunSummary(line, state)
        return RunSummary(line, state, index.result, index.groups)

    def _state(self, run: int, index: RunIndex | None) -> IndexState:
        if (building := self._progress(run)) is not None:
            return building
        error = self._errors.get(run, "")
        if index is None:
            return IndexState("failed" if error else "absent", error=error)
        current = index.key == index_key(self._store, run) and is_current(self._store, index.awaited)
        return IndexState("ready" if current else "stale", error=error)

    def _progress(self, run: int) -> IndexState | None:
        """The progress of whoever indexes a run now; None if nobody does."""
        table = index_tables.indexes.c
        query = (
            select(table.done, table.total)
            .where(table.run == run, table.body.is_(None), table.alive > time.time() - ALIVE_SECONDS)
            .order_by(table.id.desc())
            .limit(1)
        )
        with self._store.database.core_read() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else IndexState("building", *found)

    def _complete(self, run: int) -> RunIndex | None:
        table = index_tables.indexes.c
        newest = select(func.max(table.id)).where(table.run == run, table.body.is_not(None))
        with self._store.database.core_read() as connection:
            number = connection.scalar(newest)
            if number is None:
                return None
            index = self._open.get(run)
            if index is not None and index.id == number:
                return index
            key, body = connection.execute(select(table.key, table.body).where(table.id == number)).one()
        decoded = BODY.decode(bytes(body), self._store.name, number)
        index = self._open[run] = RunIndex(self._store, run, number, bytes(key), decoded)
        return index
