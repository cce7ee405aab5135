"""A run of the store while it is evaluated: its content, its lease, its name and its tags."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.folder import refuse_name_of_other_run
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.prepare import Prepared, judge_model
from sightline.evaluation.runs import read_stored_run
from sightline.evaluation.spec import Spec
from sightline.plugins import file_of
from sightline.store.database import run_in_thread
from sightline.store.store import Store


class RefusedLateError(UserError):
    """What is wrong was found after some requests were answered; their answers are kept."""


class RecordedRun(NamedTuple):
    """A run that was started; `holder` is the earlier run of the same evaluation that has its name."""

    number: int
    holder: int | None
    spec: Spec
    store: Store

    def move_name(self) -> str:
        """Move the name to the run that finished; an interrupted run leaves it where it was."""
        return move_name(self.spec, self.store, self.number, self.holder)


@asynccontextmanager
async def recorded_run(
    prepared: Prepared, description: EvaluationDescription, store: Store, file: str | None = None
) -> AsyncIterator[RecordedRun]:
    """Start a run, name it, and hold it until the block ends; see `run_body` for `file`.

    A block that is refused before it has an answer leaves no run behind.
    """
    spec = prepared.spec
    await run_in_thread(check_name, spec, store, description)
    started = partial(store.runs.start, run_body(prepared, description, file), held=True)
    run = await run_in_thread(started)
    try:
        holder = await run_in_thread(label_run, spec, store, run, description)
        async with held_run(store, run):
            yield RecordedRun(run, holder, spec, store)
    except RefusedLateError:
        raise
    except UserError:
        await run_in_thread(store.runs.drop, run)
        raise


def run_body(
    prepared: Prepared, description: EvaluationDescription, file: str | None = None
) -> dict[str, Any]:
    """What the store keeps of a run: enough to make its judges and metrics again. It holds no API key.

    `file` has the answers that are scored; None if a model is asked.
    """
    return {
        "description": msgspec.to_builtins(description),
        "judges": {name: judge_model(prepared, name) for name in prepared.judges.models},
        "embedder": prepared.measures.embedder,
        "texts": prepared.measures.text_metrics,
        "plugin": file_of(type(prepared.task.benchmark)),
        "folders": [os.path.abspath(folder) for folder in prepared.survey.folders],
        "file": file,
        "probes": prepared.survey.probes * prepared.spec.repeats,
    }


def store_recorded_verdicts(prepared: Prepared, store: Store, run: int) -> None:
    for name, judge in prepared.judges.recorded.items():
        store.runs.add_verdicts(run, [replace(verdict, scorer=name) for verdict in judge.verdicts])


# -- Holds the lease of a run while its evaluation goes on, so that nobody deletes it meanwhile


@asynccontextmanager
async def held_run(store: Store, run: int) -> AsyncIterator[None]:
    """Hold a run until the block ends; an error of the release does not change the outcome of the block."""
    async with store.claims.at_work():
        await run_in_thread(store.runs.hold, run)
        try:
            yield  # if the run was deleted, `store.runs.finish` says so
        finally:
            with suppress(EnvironmentFailedError):
                await run_in_thread(store.runs.release, run)


# -- Gives a new run its name and tags. The name of an earlier run of the same evaluation moves to it


def check_name(spec: Spec, store: Store, description: EvaluationDescription) -> None:
    holder = store.labels.names().get(spec.name or "")
    if spec.name is not None and holder is not None:
        before = read_stored_run(store, holder).description
        refuse_name_of_other_run(spec.name, holder, before, description)


def label_run(spec: Spec, store: Store, run: int, description: EvaluationDescription) -> int | None:
    """Tag a new run, and name it; returns the earlier run that holds the name until `move_name`."""
    store.labels.add_tags(run, spec.tag)
    if spec.name is None or (holder := store.labels.give_name(run, spec.name)) == run:
        return None
    check_name(spec, store, description)
    return holder


def move_name(spec: Spec, store: Store, run: int, holder: int | None) -> str:
    """Move a name to the run that finished; an interrupted run leaves it where it was."""
    if spec.name is None or holder is None:
        return ""
    found = store.labels.give_name(run, spec.name, instead_of=holder)
    if found != run:
        return f"run {found} was given the name '{spec.name}' in the meantime and keeps it"
    return f"the name '{spec.name}' moved from run {holder}, the same evaluation, to run {run}"
