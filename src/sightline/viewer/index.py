"""The index of outcomes of a store: building and reading it, comparisons of runs, groups of several runs."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import get_args

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.errors import UserError
from sightline.evaluation.compare import compare, significance_of
from sightline.evaluation.folder import JudgedRun, StoredGroups, group_of_lines
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.result import UNFINISHED, recompute
from sightline.evaluation.run_images import RunImages, image_digests
from sightline.evaluation.runs import RunLine, list_runs, name_or_number, read_run_line, read_stored_run
from sightline.evaluation.spec import Decide
from sightline.metrics.flips import LISTS, ChangeCounter, GroupChange, answer_changes, count_changes
from sightline.metrics.significance import Comparison, MetricSubset
from sightline.reporting.comparison import compared_metrics, comparison_notes, rows_of
from sightline.reporting.notes import label_of
from sightline.store.store import Store
from sightline.types import Group, each_value, subset_name
from sightline.viewer.index_entry import index_key, is_current, read_lines
from sightline.viewer.index_types import (
    ChangeList,
    ComparedMetric,
    IndexState,
    RunComparison,
    RunSummary,
)
from sightline.viewer.run_index import (
    ComparedRuns,
    IndexBody,
    IndexBuilder,
    ListedChange,
    Progress,
    RunIndex,
    read_about,
    write_comparison,
)


class OutcomeIndex:
    """The index of a store: a file for each run. Its methods block; several threads may use it."""

    def __init__(self, store: Store, data: Sequence[Path] = ()) -> None:
        self._store = store
        self._data = data
        self._folder = store.database.index_folder
        self._open: dict[int, tuple[object, RunIndex]] = {}
        self._building: defaultdict[int, Lock] = defaultdict(Lock)
        self._comparing = Lock()
        self._progress: dict[int, tuple[int, int]] = {}
        self._errors: dict[int, str] = {}

    def runs(self) -> list[RunSummary]:
        return list(map(self._summary, list_runs(self._store)))

    def summary(self, run: int) -> RunSummary:
        return self._summary(read_run_line(self._store, run))

    def state(self, run: int) -> IndexState:
        return self._state(run, self._find(run))

    def build(self, run: int, progress: Progress = lambda done, total: None) -> None:
        """Index a run, unless its index is ready. Another thread that builds it is waited for."""
        with self._building[run]:
            if self.state(run).step == "ready":
                return
            total = read_stored_run(self._store, run).description.planned_samples
            try:
                self._progress[run] = (0, total)
                with self.builder(run) as builder:

                    def add(judged: JudgedGroup) -> None:
                        builder.add(judged)
                        self._progress[run] = (builder.samples, total)
                        progress(builder.samples, total)

                    builder.finish(recompute(self._store, run, on_group=add))
                self._errors.pop(run, None)
            except BaseException as error:
                self._errors[run] = str(error)
                raise
            finally:
                del self._progress[run]

    @contextmanager
    def builder(self, run: int) -> Iterator[IndexBuilder]:
        """Write the index of a run; what is not finished at the end is dropped."""
        digests = image_digests(self._store, self.images(run).folders)
        key = index_key(self._store, run)
        builder = IndexBuilder(self._store, self._path(run), key, digests)
        earlier = self._find(run)
        try:
            yield builder
        except BaseException:
            builder.abandon()
            raise
        if earlier is not None:
            for comparison in self._folder.glob(f"*{earlier.id}*"):
                comparison.unlink(missing_ok=True)

    def open(self, run: int) -> RunIndex:
        """Open the index of a run, which may be stale."""
        index = self._find(run)
        if index is None:
            raise UserError(
                f"run {run} is not indexed yet", file=self._store.name, expected="a call of `build`"
            )
        return index

    def images(self, run: int) -> RunImages:
        recorded = map(Path, read_stored_run(self._store, run).folders)
        return RunImages(self._store, [*self._data, *recorded])

    def comparison(self, base: int, other: int) -> ComparedRuns | None:
        """Find the comparison of two indexed runs; None before it is made."""
        indexes = self.open(base), self.open(other)
        path = self._comparison_path(*indexes)
        summary = read_about(path, RunComparison)
        return None if summary is None else ComparedRuns(*indexes, path, summary)

    def compare(self, base: int, other: int) -> ComparedRuns:
        """Compare two indexed runs, unless they are compared."""
        with self._comparing:
            if (found := self.comparison(base, other)) is not None:
                return found
            for run in (base, other):
                if not read_stored_run(self._store, run).is_finished:
                    raise UserError(
                        f"run {run} {UNFINISHED}", file=self._store.name, expected="runs that finished"
                    )
            names = (name_or_number(self._store, base), name_or_number(self._store, other))
            indexes = self.open(base), self.open(other)
            path = self._comparison_path(*indexes)
            return ComparedRuns(*indexes, path, _compare((base, other), names, indexes, path))

    def _summary(self, line: RunLine) -> RunSummary:
        if line.is_damaged:
            return RunSummary(line, IndexState("failed", error="the description of the run is damaged"))
        index = self._find(line.number)
        state = self._state(line.number, index)
        if index is None:
            return RunSummary(line, state)
        return RunSummary(line, state, index.result, index.groups)

    def _state(self, run: int, index: RunIndex | None) -> IndexState:
        if (building := self._progress.get(run)) is not None:
            return IndexState("building", *building)
        error = self._errors.get(run, "")
        if index is None:
            return IndexState("failed" if error else "absent", error=error)
        current = index.key == index_key(self._store, run) and is_current(self._store, index.awaited)
        return IndexState("ready" if current else "stale", error=error)

    def _find(self, run: int) -> RunIndex | None:
        """The index of a run; None for that of a run with its number in an earlier store at this place."""
        path = self._path(run)
        try:
            found = os.stat(path)
        except OSError:
            return None
        stamp = (found.st_ino, found.st_mtime_ns)
        kept = self._open.get(run)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        body = read_about(path, IndexBody)
        if body is None or body.key.uid != index_key(self._store, run).uid:
            return None
        index = RunIndex(self._store, run, path, body)
        self._open[run] = (stamp, index)
        return index

    def _path(self, run: int) -> Path:
        return self._folder / f"{run}.db"

    def _comparison_path(self, base: RunIndex, other: RunIndex) -> Path:
        return self._folder / f"{base.id}-{other.id}.db"


# -- Compares two indexed runs: the numbers, and the groups behind each of them


def _is_flipped(change: GroupChange) -> bool:
    return any(answer.change in ("gained", "lost") for answer in change.answers)


LISTED: Mapping[ChangeList, Callable[[GroupChange], bool]] = {
    **{name: LISTS[name] for name in get_args(ChangeList) if name in LISTS},
    "flipped": _is_flipped,
}
"""Name of a list -> whether a group is in it."""


def _compare(
    runs: tuple[int, int], names: tuple[str, str], indexes: tuple[RunIndex, RunIndex], path: Path
) -> RunComparison:
    """Compare as `sightline compare` does, and write what the pages show of it."""
    base, other = map(_judged_run, names, indexes)
    comparison = compare([(base, other)])
    (pairs,) = comparison.answers.pairs
    positions = [{key: number for number, key in enumerate(run.groups, 1)} for run in (base, other)]
    listed: list[ListedChange] = []
    by_label: defaultdict[str, ChangeCounter] = defaultdict(lambda: ChangeCounter("groups"))
    for pair in pairs:
        change = GroupChange(tuple(answer_changes(0, [pair])))
        if not change.answers:
            continue
        first, second = (of_run[group.key] for of_run, group in zip(positions, pair, strict=True))
        listed += [
            ListedChange(name, first, second, change.change)
            for name, holds in LISTED.items()
            if holds(change)
        ]
        for label in _labels(pair.other):
            by_label[label].add(change)
    lists = Counter(one.list for one in listed)
    leading = compared_metrics((), comparison, None)
    summary = RunComparison(
        base=runs[0],
        other=runs[1],
        counts=count_changes(comparison.answers),
        lists={name: lists[name] for name in LISTED},
        leading=leading,
        metrics=list(_metrics(comparison, leading)),
        by_label=[(label, counter.counts()) for label, counter in by_label.items()],
        groups=len(pairs),
        notes=comparison_notes(comparison),
    )
    write_comparison(path, summary, indexes[1], listed)
    return summary


def _judged_run(name: str, index: RunIndex) -> JudgedRun:
    decide: Decide = "majority" if index.result.options.get("decide") == "majority" else "first"
    benchmark, groups = find_benchmark(index.result.benchmark), StoredGroups()
    for facts, lines in zip(index.facts(), index.lines(), strict=True):
        key = (facts.sample, facts.draw, facts.pooled)
        groups.add(group_of_lines(benchmark, key, *read_lines(lines), decide))
    return JudgedRun(name=name, result=index.result, groups=groups)


def _labels(group: Group) -> Iterator[str]:
    for name, value in group.labels.items():
        for one in each_value(value):
            yield subset_name(name, one)


def _metrics(comparison: Comparison, leading: Sequence[str]) -> Iterator[ComparedMetric]:
    """The differences, each with its test as in the table of `sightline compare` that has it."""
    values = [
        {(value.metric, value.subset): value for value in side}
        for side in (comparison.base, comparison.other)
    ]
    tested = significance_of(comparison, rows_of(comparison, leading, None))
    for name in leading:
        labels = {label_of(one)[0] for one in comparison.differences if one.metric == name} - {""}
        for label in labels:
            tests = significance_of(comparison, rows_of(comparison, [name], label))
            tested = tests | tested
    for difference in comparison.differences:
        place: MetricSubset = (difference.metric, difference.subset)
        if all(place in side for side in values):
            yield ComparedMetric(
                values[0][place],
                values[1][place],
                difference,
                comparison.definitions[difference.metric].better,
                tested.get(place),
                comparison.undecided_bounds.get(place),
            )


# -- Indexing a run before a command shows its groups, with progress


def index_run(index: OutcomeIndex, store: Store, run: int, *, quiet: bool = False) -> None:
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
