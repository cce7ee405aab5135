"""Two runs of one setting held against each other, group by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.groups import Judged
from sightline.evaluation.rebuild import rebuild
from sightline.metrics.difference import BASE, difference
from sightline.metrics.tally import tally
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, MetricValue, Result

Name = tuple[str, int]


class Comparison(Struct, frozen=True):
    """Two results and the numbers of their runs, the differences of the second from the first over the
    groups that both hold, and how many groups only one of them has."""

    runs: tuple[int, int]
    base: Result
    other: Result
    differences: Sequence[MetricValue]
    alone: int


def compare(store: Store, base: int, other: int) -> Comparison:
    """The second run less the first, with 95 % intervals that resample clusters, both runs together.

    Nothing is asked. Raises UserError where a run does not exist, or they asked different things.
    """
    first, second = _Groups(), _Groups()
    results = rebuild(store, base, sink=first), rebuild(store, other, sink=second)
    _refuse_unlike(*results)
    metrics = find_benchmark(results[1].benchmark).metrics(results[1].options)
    groups = list(_paired(first.groups, second.groups))
    if not groups:
        raise UserError("the two runs have no group in common", expected="runs of the same data")
    differences = tally(groups, [difference(metric) for metric in metrics if metric.needs is None])
    alone = len(first.groups.keys() ^ second.groups.keys())
    return Comparison((base, other), *results, differences, alone)


class _Groups:
    """Takes the judged groups of a run, by sample and draw."""

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
