"""The index of outcomes of a store: which runs are indexed, building, and reading."""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from threading import Lock

import msgspec
from sqlalchemy import func, select

from sightline.engine import index_tables
from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.database import insert
from sightline.engine.database_errors import damage
from sightline.engine.existing_run import no_run
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED, recompute
from sightline.judging.panel import JudgedGroup
from sightline.outcome_index.builder import ALIVE_SECONDS, IndexBody, IndexBuilder, Progress
from sightline.outcome_index.comparisons import (
    RunChanges,
    decode_comparison,
    encode_comparison,
    make_comparison,
)
from sightline.outcome_index.group_detail import group_detail
from sightline.outcome_index.group_filter import GroupFilter
from sightline.outcome_index.images import ImageContent, ImageError, RunImages
from sightline.outcome_index.index_key import index_key, is_current
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import (
    ChangedGroup,
    ChangeList,
    ChangePage,
    Facets,
    GroupDetail,
    GroupPage,
    IndexedImage,
    IndexState,
    Neighbours,
    RunComparison,
    RunSummary,
)
from sightline.results.run_list import RunLine, list_runs
from sightline.results.run_names import name_or_number
from sightline.results.stored_run import read_stored_run

PAGE = 25
"""The groups of a page."""

ALL = GroupFilter()

_DIGEST = re.compile("[0-9a-f]{64}")


class OutcomeIndex:
    """The index of a store. Its methods block; several threads may use it."""

    def __init__(self, store: Store, data: Sequence[Path] = ()) -> None:
        """Create the tables of the index, if the store lacks them.

        Args:
            store: The store.
            data: Data folders in which images are looked for, before those that the runs record.
        """
        self._store = store
        self._data = data
        self._compared: dict[tuple[int, int], RunChanges] = {}
        self._open: dict[int, RunIndex] = {}
        self._building: defaultdict[int, Lock] = defaultdict(Lock)
        self._errors: dict[int, str] = {}
        with store.database.read() as connection:
            missing = set(index_tables.metadata.tables) - set(index_tables.existing(connection))
        if missing:
            with store.database.write() as connection:
                index_tables.metadata.create_all(connection)

    def runs(self) -> list[RunSummary]:
        """List the runs of the store.

        Returns:
            The runs in the order of their numbers, those with an index with their results.
        """
        return list(map(self._summary, list_runs(self._store)))

    def summary(self, run: int) -> RunSummary:
        """Describe a run.

        Args:
            run: The number of the run.

        Returns:
            The run.

        Raises:
            UserError: There is no such run.
        """
        for line in list_runs(self._store):
            if line.number == run:
                return self._summary(line)
        raise no_run(run, self._store.name)

    def state(self, run: int) -> IndexState:
        """Say whether the index of a run can be read.

        Args:
            run: The number of the run.

        Returns:
            The state.

        Raises:
            UserError: There is no such run.
        """
        if (building := self._progress(run)) is not None:
            return building
        error, index = self._errors.get(run, ""), self._complete(run)
        if index is None:
            return IndexState("failed" if error else "absent", error=error)
        current = index.key == index_key(self._store, run) and is_current(self._store, index.awaited)
        return IndexState("ready" if current else "stale", error=error)

    def build(self, run: int, progress: Progress = lambda done, total: None) -> None:
        """Index a run, unless its index is ready. Another thread that builds it is waited for.

        Args:
            run: The number of the run.
            progress: Receives the samples that are judged, and all samples. What it raises ends the build.

        Raises:
            UserError: There is no such run, or it cannot be judged here: a plugin is missing.
            EnvironmentFailedError: The store failed.
        """
        with self._building[run]:
            if self.state(run).step == "ready":
                return
            stored = read_stored_run(self._store, run)
            total = stored.description.planned_samples
            builder = IndexBuilder(self._store, run, index_key(self._store, run), total)
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

    def facets(self, run: int, wanted: GroupFilter = ALL) -> Facets:
        """Count the groups of each value of a filter.

        Args:
            run: The number of the run.
            wanted: The filter. The values of a field are counted under its other conditions.

        Returns:
            The fields that the run has, with their values.
        """
        return self.open(run).facets(wanted)

    def groups(
        self, run: int, wanted: GroupFilter = ALL, after: int | None = None, limit: int = PAGE
    ) -> GroupPage:
        """Read a page of the groups of a run, the most informative ones first.

        Args:
            run: The number of the run.
            wanted: Which groups are listed.
            after: `next` of the page before; None for the first page.
            limit: The number of groups of a page.

        Returns:
            The page.
        """
        return self.open(run).page(wanted, after, limit)

    def group(self, run: int, number: int) -> GroupDetail:
        """Read a group.

        Args:
            run: The number of the run.
            number: The number of the group in the run, from 1, in the order of the samples.

        Returns:
            The group.

        Raises:
            UserError: The run has no such group.
        """
        index = self._holding(run, number)
        (row,) = index.rows([number - 1])
        return group_detail(row, index.lines(number - 1), index.digests)

    def neighbours(self, run: int, number: int, wanted: GroupFilter = ALL) -> Neighbours:
        """Find the groups beside a group in a list.

        Args:
            run: The number of the run.
            number: The number of the group.
            wanted: Which groups are listed.

        Returns:
            Their numbers.

        Raises:
            UserError: The run has no such group.
        """
        return self._holding(run, number).neighbours(number - 1, wanted)

    def open(self, run: int) -> RunIndex:
        """Open the index of a run, which may be stale.

        Args:
            run: The number of the run.

        Returns:
            The index.

        Raises:
            UserError: The run is not indexed.
        """
        index = self._complete(run)
        if index is None:
            raise UserError(
                f"run {run} is not indexed yet", file=self._store.name, expected="a call of `build`"
            )
        return index

    def build_comparison(self, base: int, other: int) -> None:
        """Compare two runs, unless they are compared; both must be indexed.

        Args:
            base: The number of the base run.
            other: The number of the run that is compared with it.

        Raises:
            UserError: A run is not indexed or not finished, or the runs share no group of the same data.
        """
        with self._building[0]:
            indexes = (self.open(base), self.open(other))
            if self._changes(*indexes) is not None:
                return
            for run in (base, other):
                if not read_stored_run(self._store, run).is_finished:
                    raise UserError(
                        f"run {run} {UNFINISHED}", file=self._store.name, expected="runs that finished"
                    )
            names = (name_or_number(self._store, base), name_or_number(self._store, other))
            body = encode_comparison(make_comparison((base, other), names, indexes))
            table = index_tables.comparisons
            ids = (indexes[0].id, indexes[1].id)
            with self._store.database.write() as connection:
                insert(connection, table, ("base", "other", "body"), [(*ids, body)])

    def comparison(self, base: int, other: int) -> RunComparison | None:
        """Read the numbers of a comparison.

        Args:
            base: The number of the base run.
            other: The number of the run that is compared with it.

        Returns:
            The comparison; None before `build_comparison`.

        Raises:
            UserError: A run is not indexed.
        """
        changes = self._changes(self.open(base), self.open(other))
        return None if changes is None else changes.summary

    def changes(
        self,
        base: int,
        other: int,
        name: ChangeList,
        wanted: GroupFilter = ALL,
        after: int | None = None,
        limit: int = PAGE,
    ) -> ChangePage:
        """Read a page of the groups behind a number of a comparison.

        Args:
            base: The number of the base run.
            other: The number of the run that is compared with it.
            name: The list of groups.
            wanted: Which of them are listed: a filter of the other run.
            after: `next` of the page before; None for the first page.
            limit: The number of groups of a page.

        Returns:
            The page.

        Raises:
            UserError: The runs are not indexed or not compared.
        """
        index = self.open(other)
        changes = self._changes(self.open(base), index)
        if changes is None:
            raise UserError(
                f"runs {base} and {other} are not compared yet", expected="a call of `build_comparison`"
            )
        page = index.page_of(changes.select(name) & index.select(wanted), after, limit)
        rows = []
        for row in page.rows:
            number, change = changes.base_of(row.number - 1)
            rows.append(ChangedGroup(change, self.group(base, number + 1), self.group(other, row.number)))
        return ChangePage(tuple(rows), page.next, page.total)

    def image(self, run: int, digest: str) -> ImageContent:
        """Read an image of a run.

        Args:
            run: The number of the run.
            digest: The SHA-256 of the file when it was sent.

        Returns:
            The image.

        Raises:
            ImageError: It is missing, has changed, or is outside the data folder.
        """
        return self._images(run).content(self._image_path(run, digest), digest)

    def thumbnail(self, run: int, digest: str) -> bytes:
        """Read a small version of an image of a run; it is made once.

        Args:
            run: The number of the run.
            digest: The SHA-256 of the file when it was sent.

        Returns:
            A WebP image, at most 320 pixels wide and high.

        Raises:
            ImageError: The image is missing, has changed, or is outside the data folder.
        """
        return self._images(run).thumbnail(self._image_path(run, digest), digest)

    def image_file(self, run: int, image: IndexedImage) -> str:
        """Find the file of an image of a run.

        Args:
            run: The number of the run.
            image: The image.

        Returns:
            The path of the file.

        Raises:
            ImageError: It is missing, has changed, or is outside the data folder.
        """
        return self._images(run).find(image.path, image.digest).path

    def _images(self, run: int) -> RunImages:
        recorded = map(Path, read_stored_run(self._store, run).folders)
        return RunImages(self._store, [*self._data, *recorded])

    def _image_path(self, run: int, digest: str) -> str:
        path = self.open(run).image_path(digest) if _DIGEST.fullmatch(digest) else None
        if path is None:
            raise ImageError(f"run {run} has no such image", found=digest, expected="an image of its groups")
        return os.fsdecode(path)

    def _changes(self, base: RunIndex, other: RunIndex) -> RunChanges | None:
        """The comparison of two indexes; None before it is made."""
        key = (base.id, other.id)
        if key not in self._compared:
            table = index_tables.comparisons.c
            query = select(table.body).where(table.base == base.id, table.other == other.id)
            with self._store.database.read() as connection:
                body = connection.scalar(query)
            if body is None:
                return None
            try:
                self._compared[key] = RunChanges(other, decode_comparison(bytes(body)))
            except (DamagedBodyError, msgspec.MsgspecError) as error:
                raise damage(self._store.name, "index_comparisons", base.id, str(error)) from None
        return self._compared[key]

    def _holding(self, run: int, number: int) -> RunIndex:
        index = self.open(run)
        if not 1 <= number <= index.groups:
            raise UserError(
                f"run {run} has no such group", record=number, expected=f"a number from 1 to {index.groups}"
            )
        return index

    def _summary(self, line: RunLine) -> RunSummary:
        if line.is_damaged:
            return RunSummary(line, IndexState("failed", error="the description of the run is damaged"))
        state, index = self.state(line.number), self._complete(line.number)
        if index is None:
            return RunSummary(line, state)
        return RunSummary(line, state, index.result, index.groups)

    def _progress(self, run: int) -> IndexState | None:
        """The progress of whoever indexes a run now; None if nobody does."""
        table = index_tables.indexes.c
        query = (
            select(table.done, table.total)
            .where(table.run == run, table.body.is_(None), table.alive > time.time() - ALIVE_SECONDS)
            .order_by(table.id.desc())
            .limit(1)
        )
        with self._store.database.read() as connection:
            found = connection.execute(query).one_or_none()
        return None if found is None else IndexState("building", *found)

    def _complete(self, run: int) -> RunIndex | None:
        """The latest complete index of a run."""
        table = index_tables.indexes.c
        newest = select(func.max(table.id)).where(table.run == run, table.body.is_not(None))
        with self._store.database.read() as connection:
            number = connection.scalar(newest)
            if number is None:
                return None
            index = self._open.get(run)
            if index is not None and index.id == number:
                return index
            key, body = connection.execute(select(table.key, table.body).where(table.id == number)).one()
        try:
            decoded = msgspec.msgpack.decode(Compressor().decompress(bytes(body)), type=IndexBody)
        except (DamagedBodyError, msgspec.MsgspecError) as error:
            raise damage(self._store.name, "index_runs", number, str(error)) from None
        index = self._open[run] = RunIndex(self._store, number, bytes(key), decoded)
        return index
