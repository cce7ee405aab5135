"""The index of outcomes of a store: building and reading it, comparisons of runs, groups of several runs."""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import get_args

from msgspec import Struct
from sqlalchemy import func, select

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.errors import UserError
from sightline.evaluation.compare import compare, significance_of
from sightline.evaluation.folder import JudgedRun, StoredGroups, group_of_lines
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.result import UNFINISHED, recompute
from sightline.evaluation.runs import RunLine, list_runs, name_or_number, read_run_line, read_stored_run
from sightline.evaluation.spec import Decide
from sightline.metrics.flips import LISTS, Change, ChangeCounter, GroupChange, answer_changes, count_changes
from sightline.metrics.significance import Comparison, MetricSubset
from sightline.reporting.comparison import comparison_notes
from sightline.store import schema
from sightline.store.database import insert_new
from sightline.store.store import Store
from sightline.types import Group, GroupKey, subset_name
from sightline.viewer.index_builder import (
    ALIVE_SECONDS,
    BODY,
    IndexBuilder,
    Progress,
    StoredBody,
    index_key,
    is_current,
    read_lines,
    reading,
)
from sightline.viewer.index_images import RunImages, image_digests
from sightline.viewer.index_types import (
    EVERY,
    ChangedGroup,
    ChangeList,
    ChangePage,
    ComparedMetric,
    GroupFilter,
    IndexState,
    RunComparison,
    RunSummary,
    decode_ranks,
    encode_ranks,
    integers_of_bytes,
    integers_to_bytes,
)
from sightline.viewer.run_index import PAGE, RunIndex


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
            missing = set(schema.index_metadata.tables) - set(schema.existing(connection))
        if missing:
            with store.database.core_write() as connection:
                schema.index_metadata.create_all(connection)

    def runs(self) -> list[RunSummary]:
        return list(map(self._summary, list_runs(self._store)))

    def summary(self, run: int) -> RunSummary:
        return self._summary(read_run_line(self._store, run))

    def state(self, run: int) -> IndexState:
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
        table = schema.indexes.c
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
        table = schema.indexes.c
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


# -- Compares two indexed runs: the numbers, and the groups behind each of them

CHANGES: tuple[Change, ...] = ("both_right", "gained", "lost", "both_wrong", "unscored")
"""What became of a group, in the order of their codes."""


def _is_flipped(change: GroupChange) -> bool:
    return any(answer.change in ("gained", "lost") for answer in change.answers)


LISTED: Mapping[ChangeList, Callable[[GroupChange], bool]] = {
    **{name: LISTS[name] for name in get_args(ChangeList) if name in LISTS},
    "flipped": _is_flipped,
}
"""Name of a list -> whether a group is in it."""


class ComparisonBody(Struct, frozen=True):
    """A comparison as the table has it; `other` holds the other run's position of each pair, from 0."""

    summary: RunComparison
    other: bytes
    base: bytes
    changes: bytes
    lists: Mapping[ChangeList, bytes]


def make_comparison(
    runs: tuple[int, int], names: tuple[str, str], indexes: tuple[RunIndex, RunIndex]
) -> ComparisonBody:
    base, other = map(_judged_run, names, indexes)
    comparison = compare([(base, other)])
    (pairs,) = comparison.answers.pairs
    positions = [{key: number for number, key in enumerate(run.groups)} for run in (base, other)]
    ranks = indexes[1].ranks
    places, changes = (array("q"), array("q")), bytearray()
    lists: dict[ChangeList, array[int]] = {name: array("q") for name in LISTED}
    by_label: defaultdict[str, ChangeCounter] = defaultdict(lambda: ChangeCounter("groups"))
    for pair in pairs:
        change = GroupChange(tuple(answer_changes(0, [pair])))
        if not change.answers:
            continue
        for of_run, numbers, group in zip(places, positions, pair, strict=True):
            of_run.append(numbers[group.key])
        changes.append(CHANGES.index(change.change))
        for name, holds in LISTED.items():
            if holds(change):
                lists[name].append(ranks[places[1][-1]])
        for label in _labels(pair.other):
            by_label[label].add(change)
    return ComparisonBody(
        summary=RunComparison(
            base=runs[0],
            other=runs[1],
            counts=count_changes(comparison.answers),
            lists={name: len(found) for name, found in lists.items()},
            metrics=list(_metrics(comparison)),
            by_label=[(label, counter.counts()) for label, counter in by_label.items()],
            groups=len(pairs),
            notes=comparison_notes(comparison),
        ),
        other=integers_to_bytes(places[1]),
        base=integers_to_bytes(places[0]),
        changes=bytes(changes),
        lists={name: encode_ranks(found, indexes[1].groups) for name, found in lists.items()},
    )


def _judged_run(name: str, index: RunIndex) -> JudgedRun:
    decide: Decide = "majority" if index.result.options.get("decide") == "majority" else "first"
    benchmark, groups = find_benchmark(index.result.benchmark), StoredGroups()
    for facts, lines in zip(index.facts(), index.blocks.lines(range(1, index.groups + 1)), strict=True):
        key = (facts.sample, facts.draw, facts.pooled)
        groups.add(group_of_lines(benchmark, key, *read_lines(lines), decide))
    return JudgedRun(name=name, result=index.result, groups=groups)


def _labels(group: Group) -> Iterator[str]:
    for name, value in group.labels.items():
        for one in (value,) if isinstance(value, str) else value:
            yield subset_name(name, one)


def _metrics(comparison: Comparison) -> Iterator[ComparedMetric]:
    values = [
        {(value.metric, value.subset): value for value in side}
        for side in (comparison.base, comparison.other)
    ]
    leading = find_benchmark(comparison.benchmark).leading_metrics
    tested = significance_of(
        comparison,
        [one for one in comparison.differences if one.subset == "all" or one.metric in leading],
    )
    for difference in comparison.differences:
        place: MetricSubset = (difference.metric, difference.subset)
        if all(place in side for side in values):
            p = tested[place].p if place in tested else None
            if_decided = comparison.undecided_bounds.get(place)
            yield ComparedMetric(values[0][place], values[1][place], difference, p, if_decided)


# -- The comparisons of indexed runs: made once, kept in the store, read with the groups behind each
#    number

_BODY = StoredBody(ComparisonBody, "index_comparisons")


class ComparedRuns:
    """A comparison of two indexed runs."""

    def __init__(self, base: RunIndex, other: RunIndex, body: ComparisonBody) -> None:
        self._base, self._other = base, other
        self._body = body

    @property
    def summary(self) -> RunComparison:
        return self._body.summary

    def page(
        self, name: ChangeList, wanted: GroupFilter = EVERY, after: int | None = None, limit: int = PAGE
    ) -> ChangePage:
        """Read a page of the groups behind a number, after `next` of the page before; None for the first."""
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
        """Find the comparison of two runs; None before it is made."""
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
                insert_new(connection, schema.comparisons.name, ("base", "other", "body"), [row])
            return self._keep(*indexes, body)

    def _find(self, base: RunIndex, other: RunIndex) -> ComparedRuns | None:
        if (kept := self._kept.get((base.id, other.id))) is not None:
            return kept
        table = schema.comparisons.c
        query = select(table.body).where(table.base == base.id, table.other == other.id)
        with self._store.database.core_read() as connection:
            body = connection.scalar(query)
        if body is None:
            return None
        return self._keep(base, other, _BODY.decode(bytes(body), self._store.name, base.id))

    def _keep(self, base: RunIndex, other: RunIndex, body: ComparisonBody) -> ComparedRuns:
        kept = self._kept[base.id, other.id] = ComparedRuns(base, other, body)
        return kept


# -- Groups over several indexed runs: in how many of the runs a filter selects each of them


class RecurringGroup(Struct, frozen=True):
    """A group that a filter selects in several runs; draws count from 0."""

    sample: str
    draw: int
    pooled: str
    question: str
    selected: int
    runs: int


def recurring_groups(indexes: Sequence[RunIndex], wanted: GroupFilter) -> list[RecurringGroup]:
    benchmarks = list(dict.fromkeys(index.result.benchmark for index in indexes))
    if len(benchmarks) > 1:
        raise UserError(
            "the runs belong to different benchmarks", found=benchmarks[1], expected=benchmarks[0]
        )
    runs: Counter[GroupKey] = Counter()
    selected: Counter[GroupKey] = Counter()
    questions: dict[GroupKey, str] = {}
    for index in indexes:
        chosen = set(index.numbers_of(wanted))
        for number, facts in enumerate(index.facts(), start=1):
            key = (facts.sample, facts.draw, facts.pooled)
            runs[key] += 1
            if number in chosen:
                selected[key] += 1
                questions.setdefault(key, facts.question)
    places = {key: place for place, key in enumerate(runs)}
    ordered = sorted(selected, key=lambda key: (-selected[key], places[key]))
    return [RecurringGroup(*key, questions[key], selected[key], runs[key]) for key in ordered]


# -- Indexing a run before a command shows its groups, with progress


def index_run(index: OutcomeIndex, store: Store, run: int, *, quiet: bool = False) -> None:
    from sightline.evaluation.runs import read_stored_run
    from sightline.progress import progress

    if index.state(run).step == "ready":
        return
    total = read_stored_run(store, run).description.planned_samples
    show = not quiet and sys.stderr.isatty()
    with progress(f"indexing run {run}", total, "samples", show_progress=show) as advance:
        before = 0

        def report(done: int, _: int) -> None:
            nonlocal before
            advance(done - before)
            before = done

        index.build(run, report)
