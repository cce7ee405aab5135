"""Pairs of stored runs: a model with an adapter, and the same model without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.judging.groups import PROBES_PER_LOOKUP
from sightline.plan.stored_probe import read_stored_probes
from sightline.results.stored_run import StoredRun, readable_runs
from sightline.types import Answer


class AdapterRuns(NamedTuple):
    """A task, as "mmr3:restyling", and its pairs of run numbers: without and with each adapter."""

    task: str
    runs: Sequence[tuple[int, int]]


def find_adapter_runs(store: Store, adapters: Sequence[str]) -> list[AdapterRuns]:
    """Find the newest finished run of each task with each adapter, and the newest comparable one without.

    Args:
        store: The store.
        adapters: The identities of the adapters.

    Returns:
        The pairs of runs by task.

    Raises:
        UserError: No adapter has a run, two adapters ran a task under different options, or a run has no
            comparable run without the adapter.
    """
    runs = [run for run in readable_runs(store) if run.is_finished and not run.stopped]
    pairs: dict[str, list[tuple[int, int]]] = {}
    conditions: dict[str, str] = {}
    for adapter in adapters:
        for task, run in _newest_by_task(_with_adapter(runs, adapter)).items():
            if conditions.setdefault(task, _conditions(run)) != _conditions(run):
                raise UserError(
                    f"{task} was run with these adapters under different data or options",
                    file=store.name,
                    expected="the same data and options for each, or one adapter at a time",
                )
            pairs.setdefault(task, []).append((_without_adapter(runs, run, task, store.name), run.number))
    if not pairs:
        raise UserError(
            "this store contains no run with this adapter",
            file=store.name,
            expected="`sightline run TASK --model MODEL --adapter DIR` first",
        )
    return [AdapterRuns(task, numbers) for task, numbers in pairs.items()]


def mean_latency(store: Store, runs: Iterable[int]) -> float | None:
    """The mean latency of the answers of some runs.

    Args:
        store: The store.
        runs: The numbers of the runs.

    Returns:
        Seconds per answer; None if there is no answer.
    """
    latencies = [answer.latency for run in runs for answer in _answers(store, run)]
    return sum(latencies) / len(latencies) if latencies else None


def _answers(store: Store, run: int) -> Iterator[Answer]:
    probes = read_stored_probes(store, run)
    while keys := list(dict.fromkeys(probe.key for probe in islice(probes, PROBES_PER_LOOKUP))):
        results = store.answers.look_up(keys)
        yield from (result for result in results.values() if isinstance(result, Answer))


def _with_adapter(runs: Sequence[StoredRun], adapter: str) -> list[StoredRun]:
    return [run for run in runs if run.description.identity.endswith(f" adapter {adapter}")]


def _newest_by_task(runs: Sequence[StoredRun]) -> dict[str, StoredRun]:
    return {run.task: run for run in runs}


def _without_adapter(runs: Sequence[StoredRun], adapted: StoredRun, task: str, store: str) -> int:
    """The newest run of the same model without the adapter, under the same conditions. Raises UserError."""
    base = adapted.description.identity.partition(" adapter ")[0]
    comparable = [
        run.number
        for run in runs
        if run.description.identity == base and _conditions(run) == _conditions(adapted)
    ]
    if not comparable:
        raise UserError(
            f"{task} was not run without the adapter under the same options",
            file=store,
            expected="the same `sightline run` without --adapter first",
        )
    return comparable[-1]


def _conditions(run: StoredRun) -> str:
    """The task, data, options and judges: two runs can be compared if these are equal.

    The arguments of the model name its adapter; its identity is compared instead.
    """
    names = ("benchmark", "setting", "data_digest", "judges")
    options = {name: value for name, value in run.description.options.items() if name != "model_arg"}
    return repr([*(getattr(run.description, name) for name in names), options])
