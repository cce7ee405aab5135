"""Runs of a model with an adapter, each with the run of the same model without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.plan.stored_probe import read_stored_probes
from sightline.types import Answer

CHUNK = 1000


class Adapted(NamedTuple):
    """A task, as "mmr3:restyling", and the runs of it: without and with each adapter."""

    task: str
    runs: Sequence[tuple[int, int]]


def adapted(store: Store, adapters: Sequence[str]) -> list[Adapted]:
    """The newest whole run of each task with each of the adapters (their identities), and the newest of
    their model without one that asked the same in the same way.

    Raises UserError where no adapter has a run, where two of them asked a task in different ways, and
    where there is nothing to hold a run against.
    """
    runs = [(number, body["description"]) for number, body, _, ended in store.runs() if _whole(body, ended)]
    found: dict[str, list[tuple[int, int]]] = {}
    asked: dict[str, str] = {}
    for adapter in adapters:
        for task, (number, description) in _newest(_with_adapter(runs, adapter)).items():
            if asked.setdefault(task, _asked(description)) != _asked(description):
                raise UserError(
                    f"{task} was run with these adapters in different ways (data, options, temperature)",
                    file=store.name,
                    expected="the same for each, or one adapter at a time",
                )
            found.setdefault(task, []).append((_before(runs, description, task, store.name), number))
    if not found:
        raise UserError(
            "no run with this adapter is in this store",
            file=store.name,
            expected="`sightline run TASK --model MODEL --adapter DIR` first",
        )
    return [Adapted(task, pairs) for task, pairs in found.items()]


def seconds(store: Store, runs: Iterable[int]) -> float | None:
    """The mean of what an answer of these runs took, in seconds; None where nothing was answered."""
    took = [answer.latency for run in runs for answer in _answers(store, run)]
    return sum(took) / len(took) if took else None


def _answers(store: Store, run: int) -> Iterator[Answer]:
    rows = read_stored_probes(store, run)
    while keys := list(dict.fromkeys(row.key for row in islice(rows, CHUNK))):
        known = store.look_up(keys)
        yield from (answer for answer in known.values() if isinstance(answer, Answer))


def _whole(body: Mapping[str, Any], ended: float | None) -> bool:
    return ended is not None and not body.get("counts", {}).get("stopped")


_Runs = Sequence[tuple[int, dict[str, Any]]]


def _with_adapter(runs: _Runs, adapter: str) -> _Runs:
    return [run for run in runs if run[1]["identity"].endswith(f" adapter {adapter}")]


def _newest(runs: _Runs) -> dict[str, tuple[int, dict[str, Any]]]:
    """The last run of each task."""
    return {f"{one['benchmark']}:{one['setting']}": (number, one) for number, one in runs}


def _before(runs: _Runs, description: Mapping[str, Any], task: str, store: str) -> int:
    base = description["identity"].partition(" adapter ")[0]
    same = [n for n, one in runs if one["identity"] == base and _asked(one) == _asked(description)]
    if not same:
        raise UserError(
            f"{task} was not run without the adapter, at the same options",
            file=store,
            expected="`sightline run` once more, without --adapter",
        )
    return same[-1]


def _asked(description: Mapping[str, Any]) -> str:
    """What was asked, and how: two runs of which this is equal can be held against each other."""
    names = ("benchmark", "setting", "data_digest", "options", "judges")
    return repr([description[name] for name in names])
