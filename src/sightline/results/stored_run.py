"""What the store keeps of each run: enough to judge and count its answers again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.benchmarks.base import Benchmark
from sightline.engine.counts import Counts
from sightline.engine.database_errors import StoreFailedError, damage
from sightline.engine.runs import RunRow
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.judging.judges import JudgeModel
from sightline.registry import benchmark as find_benchmark
from sightline.registry import is_benchmark
from sightline.results.description import EvaluationDescription


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run in the store.

    Attributes:
        embedder: The identity of the embedder; None if there is none.
        plugin: The path of the plugin file that defines the benchmark; None if no plugin defines it.
        stopped: Why requests stopped before the end, such as `budget`; None if they did not.
    """

    number: int
    description: EvaluationDescription
    is_finished: bool
    judges: Mapping[str, JudgeModel] = field(default_factory=dict)
    embedder: str | None = None
    text_metrics: Mapping[str, str] = field(default_factory=dict)
    plugin: str | None = None
    stopped: str | None = None
    planned_probes: int = 0
    folders: tuple[str, ...] = ()
    counts: Counts = field(default_factory=Counts)

    @property
    def task(self) -> str:
        """Benchmark and setting, such as `codis:default`."""
        return f"{self.description.benchmark}:{self.description.setting}"

    @property
    def benchmark(self) -> Benchmark:
        """The benchmark; UserError, with the plugin to load, if it is not loaded."""
        name = self.description.benchmark
        if self.plugin is not None and not is_benchmark(name):
            raise UserError(
                f"run {self.number} used the benchmark '{name}' of a plugin, which is not loaded",
                expected=f"--plugin {shlex.quote(self.plugin)}",
            )
        return find_benchmark(name)


def read_stored_run(store: Store, number: int) -> StoredRun:
    body, is_finished = store.runs.get(number)
    return _checked(store, number, body, is_finished=is_finished)


def read_row(store: Store, row: RunRow) -> StoredRun:
    return _checked(store, row.number, store.runs.description(row), is_finished=row.finished is not None)


def readable_runs(store: Store) -> list[StoredRun]:
    """Read the runs of a store whose descriptions are not damaged."""
    found = []
    for row in store.runs.all():
        with suppress(StoreFailedError):
            found.append(read_row(store, row))
    return found


def latest_finished_run(store: Store) -> tuple[StoredRun, list[str]]:
    runs = store.runs.all()
    if not runs:
        raise UserError("there is no run in this store", file=store.name, expected="`sightline run` first")
    latest = runs[-1].number
    number = max((run.number for run in runs if run.finished is not None), default=None)
    if number is None:
        raise UserError(
            f"no run in this store is finished; the latest is run {latest}",
            file=store.name,
            expected=f"`sightline report {latest}` for the answers so far, or the same command again",
        )
    later = f"run {latest} is later and not finished: `sightline report {latest}` shows its answers so far"
    return read_stored_run(store, number), [later] if latest > number else []


def decode_run(number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    """Decode what the store keeps of a run, in this version's form or an earlier one.

    Raises:
        ValueError: This is not the description of a run.
    """
    try:
        return _decode_run(number, body, is_finished=is_finished)
    except (msgspec.MsgspecError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"not the description of a run: {error!r}") from None


def _decode_run(number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    counts = msgspec.convert(body.get("counts") or {}, Counts)
    return StoredRun(
        number=number,
        description=msgspec.convert(body["description"], EvaluationDescription),
        is_finished=is_finished,
        judges=msgspec.convert(body.get("judges") or {}, dict[str, JudgeModel]),
        embedder=body.get("embedder"),
        text_metrics=body.get("texts") or {},
        plugin=body.get("plugin"),
        stopped=counts.stopped or None,
        counts=counts,
        folders=tuple(body.get("folders") or ()),
        planned_probes=body.get("probes") or 0,
    )


def _checked(store: Store, number: int, body: Mapping[str, Any], *, is_finished: bool) -> StoredRun:
    try:
        return decode_run(number, body, is_finished=is_finished)
    except ValueError as error:
        raise damage(store.name, "runs", number, str(error)) from None
