"""The list of the runs in a store: `sightline report --list`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from sightline.engine.store import Store
from sightline.results.stored_run import StoredRun, decode_run

ALWAYS = {"temperature", "split", "augment", "text_metrics", "unchanged", "size", "limit", "repeats", "fresh"}
"""Options that the list always holds; it holds others only if the runs of a task differ in them."""


class RunLine(Struct, frozen=True, kw_only=True):
    """A run in the list.

    Attributes:
        number: The number of the run.
        task: Benchmark and setting.
        model: The model as the user named it.
        judges: The names of the judges.
        started: The local time, as `2026-01-31 12:00:00`.
        limit: The largest number of samples; None for all.
        options: The options that differ from a default, of those that the list holds.
        state: How the run ended, as a suffix: '' if it is complete.
    """

    number: int = field(name="run")
    task: str
    model: str
    judges: Sequence[str]
    started: str = field(name="began")
    limit: int | None
    options: Mapping[str, Any]
    state: str


def list_runs(store: Store) -> list[RunLine]:
    """List the runs of a store.

    Args:
        store: The store.

    Returns:
        The runs in the order of their numbers.
    """
    runs = [
        (decode_run(number, body, is_finished=ended is not None), started)
        for number, body, started, ended in store.runs()
    ]
    options_by_task: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for run, _ in runs:
        options_by_task[run.task].append(_options(run))
    names = {task: _varied_names(options) | ALWAYS for task, options in options_by_task.items()}
    return [
        RunLine(
            number=run.number,
            task=run.task,
            model=run.description.model,
            judges=run.description.judges,
            started=time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started)),
            limit=run.description.options.get("limit"),
            options={name: value for name, value in _options(run).items() if name in names[run.task]},
            state=_state(run),
        )
        for run, started in runs
    ]


def _options(run: StoredRun) -> dict[str, Any]:
    """The options of a run that differ from a default, those of its sampling first.

    `augment` implies the OCR reader, which is left out.
    """
    options = run.description.options
    by = options.get("captioned_by") or {}
    found = {**(options.get("sampling") or {}), **options, "captioned_by": by.get("model", by.get("file"))}
    defaults = {"repeats": 1, "text_metrics": "none", "reader": found.get("reader")}
    return {
        name: value
        for name, value in found.items()
        if value not in (None, False, defaults.get(name)) and not isinstance(value, dict)
    }


def _varied_names(runs: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of the options in which runs differ."""
    names = {name for options in runs for name in options}
    return {name for name in names if any(options.get(name) != runs[0].get(name) for options in runs)}


def _state(run: StoredRun) -> str:
    if not run.is_finished:
        return " (not finished)"
    return f" (stopped: {run.stopped})" if run.stopped else ""
