"""The list of the runs in a store: `sightline report --list`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from sightline.engine.store import Store
from sightline.results.description import EvaluationDescription
from sightline.results.earlier_options import default_options, known_setting
from sightline.results.run_options import flat_options
from sightline.results.stored_run import StoredRun, decode_run

ALWAYS = ("split",)
"""Options that the list holds even where they have their default."""


class RunLine(Struct, frozen=True, kw_only=True):
    """A run in the list.

    Attributes:
        number: The number of the run.
        task: Benchmark and setting.
        model: The model as the user named it.
        judges: The names of the judges.
        started: The local time, as `2026-01-31 12:00:00`.
        limit: The largest number of samples; None for all.
        options: The effective options that differ from those of the task without any option, and the split;
            for runs that agree in all of this, also the digest of the data and the identity of the model, if
            they differ.
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
        for number, body, started, ended in store.runs.all()
    ]
    options = [_options(run.description) for run, _ in runs]
    differing = _differing_facts([run.description for run, _ in runs], options)
    return [
        RunLine(
            number=run.number,
            task=run.task,
            model=run.description.model,
            judges=run.description.judges,
            started=time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started)),
            limit=run.description.options.get("limit"),
            options={**own, **others},
            state=_state(run),
        )
        for (run, started), own, others in zip(runs, options, differing, strict=True)
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


def _state(run: StoredRun) -> str:
    if not run.is_finished:
        return " (not finished)"
    return f" (stopped: {run.stopped})" if run.stopped else ""
