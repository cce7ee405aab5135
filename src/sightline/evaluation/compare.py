"""Runs of one setting held against each other, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.groups import Judged
from sightline.evaluation.rebuild import rebuild
from sightline.metrics.difference import BASE, before, difference
from sightline.metrics.tally import tally
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, MetricValue, Result

Name = tuple[str, int]


class Comparison(Struct, frozen=True):
    """Two runs, or several pairs of them together: their numbers, their task and models, each metric of
    the first and of the second ones over the groups that both hold, the differences of the second from the
    first, those of each pair alone where there are several, and how many groups only one of a pair has."""

    runs: tuple[tuple[int, int], ...]
    task: str
    models: tuple[str, str]
    base: Sequence[MetricValue]
    other: Sequence[MetricValue]
    differences: Sequence[MetricValue]
    each: Sequence[Sequence[MetricValue]]
    alone: int


def compare(store: Store, pairs: Sequence[tuple[int, int]]) -> Comparison:
    """The second run of each pair less the first, all pairs together (an adapter trained from several seeds,
    say), with 95 % intervals that resample clusters: whatever runs hold of one is drawn together. They are
    of the data, not of the seeds.

    Nothing is asked. Raises UserError where a run does not exist, or they asked different things.
    """
    runs = {run: _Run.of(store, run) for run in dict.fromkeys(run for pair in pairs for run in pair)}
    first = runs[pairs[0][0]]
    for run in runs.values():
        _refuse_unlike(first.result, run.result)
    each = [list(_paired(runs[base].groups, runs[other].groups)) for base, other in pairs]
    groups = [group for paired in each for group in paired]
    if not groups:
        raise UserError("the two runs have no group in common", expected="runs of the same data")
    result = runs[pairs[0][1]].result
    metrics = find_benchmark(result.benchmark).metrics(result.options)
    alone = [metric for metric in metrics if metric.needs is None]
    changes = [difference(metric) for metric in alone]
    return Comparison(
        runs=tuple(pairs),
        task=f"{result.benchmark}:{result.setting}",
        models=(first.result.model, result.model),
        base=tally([before(group) for group in groups], alone),
        other=tally(groups, alone),
        differences=tally(groups, changes),
        each=[tally(paired, changes) for paired in each] if len(pairs) > 1 else [],
        alone=sum(len(runs[base].groups.keys() ^ runs[other].groups.keys()) for base, other in pairs),
    )


class _Run(NamedTuple):
    """A run's result, and its judged groups by sample and draw."""

    result: Result
    groups: dict[Name, Group]

    @classmethod
    def of(cls, store: Store, run: int) -> _Run:
        """A run, judged again."""
        groups = _Groups()
        return cls(rebuild(store, run, sink=groups), groups.groups)


class _Groups:
    """Takes judged groups, by sample and draw."""

    def __init__(self) -> None:
        self.groups: dict[Name, Group] = {}

    def take(self, judged: Judged) -> None:
        """Keep one."""
        self.groups[judged.group.id, judged.group.draw] = judged.group


def _paired(base: Mapping[Name, Group], other: Mapping[Name, Group]) -> Iterator[Group]:
    """The groups of the second run, those of the first as their partners; probes that both asked alone."""
    for name, group in other.items():
        if name not in base:
            continue
        before = {outcome.variant: outcome for outcome in base[name]}
        shared = tuple(outcome for outcome in group if outcome.variant in before)
        if shared:
            yield replace(
                group,
                outcomes=shared,
                judgements=(*group.judgements, *base[name].judgements),
                partners={BASE: tuple(before[outcome.variant] for outcome in shared)},
            )


def _refuse_unlike(base: Result, other: Result) -> None:
    """Raise UserError where two runs are not of one setting of one benchmark."""
    kinds = [f"{result.benchmark}:{result.setting}" for result in (base, other)]
    if kinds[0] != kinds[1]:
        raise UserError("the two runs are of different settings", found=kinds[1], expected=kinds[0])
    if base.data_digest != other.data_digest:
        raise UserError("the two runs asked about different data", expected="the same --data and --split")
