"""The list of the runs in a store: `sightline runs list`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from sightline.benchmarks.base import Benchmark, defaults
from sightline.benchmarks.options import Setting
from sightline.engine.database_errors import StoreFailedError
from sightline.engine.run_labels import Labels
from sightline.engine.runs import RunRow
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.local_time import local_time
from sightline.plan.effective import setting_of
from sightline.plan.spec import Spec, recorded_options
from sightline.registry import benchmark as find_benchmark
from sightline.registry import is_benchmark
from sightline.results.description import EvaluationDescription
from sightline.results.run_options import flat_options
from sightline.results.stored_run import StoredRun, read_row, readable_runs

COMPLETE, DAMAGED = "complete", "damaged"

ALWAYS = ("split",)
"""Options that the list holds even where they have their default."""


class RunLine(Struct, frozen=True, kw_only=True):
    """A run in the list.

    Attributes:
        name: Its name; None without one.
        limit: The largest number of samples; None for all.
    """

    number: int = field(name="run")
    name: str | None
    tags: Sequence[str]
    note: str
    task: str
    model: str
    judges: Sequence[str]
    started: str = field(name="began")
    limit: int | None
    options: Mapping[str, Any]
    state: str

    @property
    def is_complete(self) -> bool:
        """Whether the run ended, and asked everything."""
        return self.state == COMPLETE

    @property
    def is_damaged(self) -> bool:
        """Whether the description of the run cannot be read."""
        return self.state == DAMAGED


def list_runs(store: Store) -> list[RunLine]:
    """List the runs of a store. A damaged one does not hide the others."""
    readable = {run.number: run for run in readable_runs(store)}
    descriptions = [run.description for run in readable.values()]
    own = [_options(description) for description in descriptions]
    differing = _differing_facts(descriptions, own)
    options = {
        number: {**one, **others} for number, one, others in zip(readable, own, differing, strict=True)
    }
    labels, held = store.labels.all(), store.leases.held()
    return [
        _line(
            row,
            readable.get(row.number),
            labels.get(row.number, Labels()),
            options.get(row.number, {}),
            is_held=row.number in held,
        )
        for row in store.runs.all()
    ]


def read_run_line(store: Store, number: int) -> RunLine:
    """Read the line of a run, for a page of this run: it does not say how the run differs from others."""
    row = store.runs.row(number)
    try:
        run = read_row(store, row)
    except StoreFailedError:
        run = None
    options = _options(run.description) if run else {}
    return _line(row, run, store.labels.of(number), options, is_held=number in store.leases.held())


def _line(
    row: RunRow, run: StoredRun | None, labels: Labels, options: Mapping[str, Any], *, is_held: bool
) -> RunLine:
    return RunLine(
        number=row.number,
        name=labels.name,
        tags=labels.tags,
        note=labels.note,
        task=run.task if run else "",
        model=run.description.model if run else "",
        judges=run.description.judges if run else (),
        started=local_time(row.created) if isinstance(row.created, float | int) else "",
        limit=run.description.options.get("limit") if run else None,
        options=options,
        state=_state(run, is_held=is_held) if run else DAMAGED,
    )


def select_runs(runs: Sequence[RunLine], tags: Collection[str], benchmark: str, model: str) -> list[RunLine]:
    return [
        run
        for run in runs
        if set(tags) <= set(run.tags)
        and benchmark in ("", run.task, run.task.partition(":")[0])
        and model.casefold() in run.model.casefold()
    ]


def _differing_facts(
    runs: Sequence[EvaluationDescription], options: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """What else differs between runs of one line: the data, or the model behind a name."""
    lines = [
        repr([run.benchmark, run.setting, run.model, run.judges, own])
        for run, own in zip(runs, options, strict=True)
    ]
    facts = [{"data": run.data_digest[:8], "model_identity": run.identity} for run in runs]
    by_line: defaultdict[str, list[Mapping[str, str]]] = defaultdict(list)
    for line, fact in zip(lines, facts, strict=True):
        by_line[line].append(fact)
    return [
        {name: value for name, value in fact.items() if len({other[name] for other in by_line[line]}) > 1}
        for line, fact in zip(lines, facts, strict=True)
    ]


def _options(run: EvaluationDescription) -> dict[str, Any]:
    """The options of a run that differ from those of its task without any option, and those of ALWAYS.

    Options that code sets are left out, and the OCR reader, which `augment` implies. If the benchmark or the
    setting is unknown here, its defaults are too, and all its options are listed.
    """
    by = run.options.get("captioned_by") or {}
    options = {**run.options, "captioned_by": by.get("model", by.get("file"))}
    usual, internal = default_options(run.benchmark, run.setting), {"reader"}
    known = known_setting(run.benchmark, run.setting)
    if known is not None:
        benchmark, setting = known
        internal |= {name for name, option in benchmark.options.items() if option.internal}
        if run.options.get("sampling") is not None:
            usual["sampling"] = setting.sampling
            options["sampling"] = {**dict.fromkeys(setting.sampling), **run.options["sampling"]}
    without = flat_options(usual)
    return {
        name: value
        for name, value in flat_options(options).items()
        if name not in internal and (name in ALWAYS or value != without.get(name))
    }


def known_setting(benchmark: str, setting: str) -> tuple[Benchmark, Setting] | None:
    """Find the benchmark and the setting that a result names.

    Returns:
        Both; None if this version does not have them: those of a plugin.
    """
    if not is_benchmark(benchmark):
        return None
    found = find_benchmark(benchmark)
    try:
        return found, setting_of(found, f"{benchmark}:{setting}")
    except UserError:
        return None


def default_options(benchmark: str, setting: str) -> dict[str, Any]:
    """The recorded options of a task for which the user sets none.

    Returns:
        Option name -> default; of an unknown benchmark or setting, only the options of all benchmarks.
    """
    known = known_setting(benchmark, setting)
    return {**recorded_options(Spec(task="")), **(defaults(*known) if known else {})}


def _state(run: StoredRun, *, is_held: bool) -> str:
    if not run.is_finished:
        return "in progress" if is_held else "not finished"
    return f"stopped: {run.stopped}" if run.stopped else COMPLETE
