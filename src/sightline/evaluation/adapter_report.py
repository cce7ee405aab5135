"""Pairs of stored runs: a model with an adapter, and the same model without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from sightline.errors import UserError
from sightline.evaluation.compare import compare, judged_run
from sightline.evaluation.folder import JudgedRun, StoredGroups
from sightline.evaluation.plan import PROBES_PER_LOOKUP, read_stored_probes
from sightline.evaluation.runs import StoredRun, read_stored_run, readable_runs
from sightline.metrics.variants import majority_vote
from sightline.models.local.load import is_refusal
from sightline.reporting.adapter import AdapterComparison, AdapterRuns
from sightline.store.store import Store
from sightline.types import Answer, Group, GroupKey

WITH = " adapter "
"""Between a model and its adapter in the identity of both."""


def find_adapter_runs(store: Store, adapters: Sequence[str]) -> list[AdapterRuns]:
    """Find the newest pairs of finished runs of each task, without and with each adapter.

    The runs of a task have the same data, options and judges: those of the newest run with an adapter for
    which every adapter that ran the task has a pair.
    """
    runs = [run for run in readable_runs(store) if run.is_finished and not run.stopped]
    with_any = [run for run in runs if _adapter(run) in adapters]
    if not with_any:
        raise UserError(
            "this store contains no run with this adapter",
            file=store.name,
            expected="`sightline run TASK --model MODEL --model-arg adapter=DIR` first",
        )
    return [
        _newest_pairs([run for run in runs if run.task == task], adapters, task, store.name)
        for task in dict.fromkeys(run.task for run in with_any)
    ]


def named_adapter_runs(
    store: Store, adapters: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> list[AdapterRuns]:
    named: dict[str, list[tuple[int, int]]] = {}
    for pair in pairs:
        without, adapted = (read_stored_run(store, number) for number in pair)
        if _adapter(adapted) not in adapters:
            raise UserError(
                f"run {adapted.number} was not made with this adapter",
                file=store.name,
                expected="--runs WITHOUT,WITH, and the folder of the adapter of the second run",
            )
        if without.task != adapted.task or without.description.identity != _base(adapted):
            raise UserError(
                f"run {without.number} is not a run of {adapted.task} with the same model and without the"
                " adapter",
                file=store.name,
                found=f"{without.task}, {without.description.identity}",
                expected=f"{adapted.task}, {_base(adapted)}",
            )
        named.setdefault(adapted.task, []).append(pair)
    return [AdapterRuns(task, numbers) for task, numbers in named.items()]


def compare_adapter_runs(store: Store, runs: AdapterRuns) -> AdapterComparison:
    """Compare the runs of a task without and with adapters.

    A run with an adapter refuses requests with an image of its training. These are no wrong answers: they are
    left out of both runs of the pair.
    """
    judged = {number: judged_run(store, number) for pair in runs.runs for number in pair}
    reduced: dict[int, JudgedRun] = {}
    refused = touched = 0
    for number in dict.fromkeys(other for _, other in runs.runs):
        groups, requests, of_groups = _without_refused(judged[number].groups)
        if requests and not groups:
            raise UserError(
                f"run {number}: the adapter was trained on the images of all requests",
                file=store.name,
                expected="a run on other images",
            )
        reduced[number] = replace(judged[number], groups=groups) if requests else judged[number]
        refused, touched = refused + requests, touched + of_groups
    comparison = compare([(judged[base], reduced[other]) for base, other in runs.runs])
    counted: defaultdict[int, list[Mapping[GroupKey, Group]]] = defaultdict(list)
    for base, other in runs.runs:
        counted[base].append(reduced[other].groups)
    voted = compare([(judged[base], _voted(judged[base], groups)) for base, groups in counted.items()])
    return AdapterComparison(runs, comparison, refused, touched, voted)


def _voted(run: JudgedRun, with_adapter: Sequence[Mapping[GroupKey, Group]]) -> JudgedRun:
    """A run whose answers are the majority vote of each group, over the answers that count with it."""
    groups = StoredGroups()
    for key, group in run.groups.items():
        if all(key in counted for counted in with_adapter):
            variants = [{outcome.variant for outcome in counted[key]} for counted in with_adapter]
            kept = tuple(one for one in group if all(one.variant in of_run for of_run in variants))
            groups.add(majority_vote(replace(group, outcomes=kept)))
    return replace(run, name=f"{run.name}, voted", groups=groups)


def mean_latency(store: Store, runs: Iterable[int]) -> float | None:
    """The mean seconds per answer of some runs; None if there is no answer."""
    latencies = [answer.latency for run in runs for answer in _answers(store, run)]
    return sum(latencies) / len(latencies) if latencies else None


def adapter_of(store: Store, run: int) -> str:
    return _adapter(read_stored_run(store, run))


def _answers(store: Store, run: int) -> Iterator[Answer]:
    probes = read_stored_probes(store, run)
    while keys := list(dict.fromkeys(probe.key for probe in islice(probes, PROBES_PER_LOOKUP))):
        results = store.answers.look_up(keys)
        yield from (result for result in results.values() if isinstance(result, Answer))


def _without_refused(groups: Mapping[GroupKey, Group]) -> tuple[Mapping[GroupKey, Group], int, int]:
    """The groups without refused requests, the number of these requests, and that of their groups."""
    kept, requests, touched = StoredGroups(), 0, 0
    for group in groups.values():
        outcomes = tuple(outcome for outcome in group if not is_refusal(outcome.error or ""))
        if outcomes:
            kept.add(group if len(outcomes) == len(group) else replace(group, outcomes=outcomes))
        requests += len(group) - len(outcomes)
        touched += len(outcomes) < len(group)
    return kept, requests, touched


def _newest_pairs(runs: Sequence[StoredRun], adapters: Sequence[str], task: str, store: str) -> AdapterRuns:
    """The newest pairs of a task under the same conditions for all adapters. Raises UserError."""
    adapted = [run for run in runs if _adapter(run) in adapters]
    used = [adapter for adapter in adapters if adapter in map(_adapter, adapted)]
    newest = {(_conditions(run), run.description.identity): run.number for run in runs}
    unmatched: list[int] = []
    for run in reversed(adapted):
        under, base = _conditions(run), _base(run)
        identities = [base, *(f"{base}{WITH}{adapter}" for adapter in used)]
        without, *others = (newest.get((under, identity)) for identity in identities)
        pairs = [(without, number) for number in others if without is not None and number is not None]
        if len(pairs) == len(used):
            return AdapterRuns(task, pairs, tuple(sorted(unmatched)))
        unmatched.append(run.number)
    raise UserError(
        f"{task} was not run without the adapter under the same options"
        + (", with each of these adapters" if len(used) > 1 else ""),
        file=store,
        expected="the same `sightline run` without the adapter first, or --runs WITHOUT,WITH",
    )


def _adapter(run: StoredRun) -> str:
    return run.description.identity.partition(WITH)[2]


def _base(run: StoredRun) -> str:
    return run.description.identity.partition(WITH)[0]


def _conditions(run: StoredRun) -> str:
    """The task, data, options and judges; the model's arguments name the adapter and are left out."""
    names = ("benchmark", "setting", "data_digest", "judges")
    options = {name: value for name, value in run.description.options.items() if name != "model_arg"}
    return repr([*(getattr(run.description, name) for name in names), options])
