"""Runs of one setting held against each other, group by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED, recompute
from sightline.judging.panel import JudgedGroup
from sightline.metrics.comparison import Comparison, MetricSubset
from sightline.metrics.difference import difference, paired
from sightline.metrics.significance import Significance, significance
from sightline.metrics.tally import SCALES, tally
from sightline.registry import benchmark as find_benchmark
from sightline.types import Group, Metric, MetricValue, Result

Name = tuple[str, int]
"""A sample and a draw."""
_Named = dict[Name, Group]


def compare(store: Store, pairs: Sequence[tuple[int, int]]) -> Comparison:
    """The second run of each pair less the first, all pairs together (an adapter trained from several seeds,
    say), with 95 % intervals that resample clusters: whatever runs hold of one is drawn together. They are
    of the data, not of the seeds.

    Nothing is asked. Raises UserError where a run does not exist or did not finish, or they asked different
    things.
    """
    runs = {run: _Run.of(store, run) for run in dict.fromkeys(run for pair in pairs for run in pair)}
    first = runs[pairs[0][0]]
    for run in runs.values():
        _refuse_unlike(first.result, run.result)
    each = [
        _paired(number, runs[base].groups, runs[other].groups) for number, (base, other) in enumerate(pairs)
    ]
    earlier = {name: group for before, _ in each for name, group in before.items()}
    later = {name: group for _, after in each for name, group in after.items()}
    if not later:
        raise UserError("the two runs have no group in common", expected="runs of the same data")
    result = runs[pairs[0][1]].result
    metrics, base_metrics = _metrics(result), _metrics(first.result)

    def before(group: Group) -> Group:
        return earlier[group.id, group.draw]

    shared = [(metric, base_metrics[name]) for name, metric in metrics.items() if name in base_metrics]
    changes = [difference(*both, before) for both in shared]
    return Comparison(
        runs=tuple(pairs),
        task=f"{result.benchmark}:{result.setting}",
        models=(first.result.model, result.model),
        base=tally(earlier.values(), list(base_metrics.values())),
        other=tally(later.values(), list(metrics.values())),
        differences=tally(later.values(), changes),
        each=[tally(after.values(), changes) for _, after in each] if len(pairs) > 1 else [],
        alone=sum(len(runs[base].groups.keys() ^ runs[other].groups.keys()) for base, other in pairs),
        groups={metric.name: paired(later.values(), metric, base, before) for metric, base in shared},
        unlike=_unlike(*([runs[run].result for run in side] for side in zip(*pairs, strict=True))),
        unanswered={
            number: (run.result.errors, run.result.probes)
            for number, run in runs.items()
            if run.result.errors
        },
        definitions={metric.name: metric.definition for metric in metrics.values()},
    )


def tested(comparison: Comparison, rows: Sequence[MetricValue]) -> dict[MetricSubset, Significance]:
    """How sure these rows of a comparison are, corrected for each other; those without a value are not
    among them. `detectable` is in the unit of the row."""
    known = [row for row in rows if row.value is not None]
    found = significance([comparison.groups[row.metric][row.subset] for row in known])
    return {
        (row.metric, row.subset): one
        if one.detectable is None
        else replace(one, detectable=SCALES[row.unit] * one.detectable)
        for row, one in zip(known, found, strict=True)
    }


class _Run(NamedTuple):
    """A run's result, and its judged groups by sample and draw."""

    result: Result
    groups: _Named

    @classmethod
    def of(cls, store: Store, run: int) -> _Run:
        """A run, judged again. Raises UserError where it did not finish: what it lacks is not wrong."""
        _, _, ended = store.run(run)
        if not ended:
            raise UserError(f"run {run} {UNFINISHED}", file=store.name, expected="runs that finished")
        groups: _Named = {}

        def keep(judged: JudgedGroup) -> None:
            groups[judged.group.id, judged.group.draw] = judged.group

        return cls(recompute(store, run, on_group=keep), groups)


def _paired(pair: int, base: Mapping[Name, Group], other: Mapping[Name, Group]) -> tuple[_Named, _Named]:
    """The groups that two runs share, of the probes that both asked, as each of them has it; the pair is
    part of their names."""
    earlier, later = {}, {}
    for (sample, draw), after in other.items():
        before = base.get((sample, draw))
        if before is None:
            continue
        shared = {outcome.variant for outcome in before} & {outcome.variant for outcome in after}
        if shared:
            name = f"{pair} {sample}"
            earlier[name, draw] = _only(before, name, shared)
            later[name, draw] = _only(after, name, shared)
    return earlier, later


def _only(group: Group, name: str, variants: Collection[str]) -> Group:
    outcomes = tuple(outcome for outcome in group if outcome.variant in variants)
    return replace(group, id=name, outcomes=outcomes, partners={})


def _metrics(result: Result) -> dict[str, Metric]:
    """The metrics of a run that need no other setting, by name."""
    metrics = find_benchmark(result.benchmark).metrics(result.options)
    return {metric.name: metric for metric in metrics if metric.needs is None}


def _unlike(
    base: Sequence[Result], other: Sequence[Result]
) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
    """What the results on the two sides do not all have alike, with the different values of each side."""
    told = [[_told(result) for result in side] for side in (base, other)]
    names = dict.fromkeys(name for side in told for one in side for name in one)
    found: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    for name in names:
        first, second = ({_exact(one.get(name)): one.get(name) for one in side} for side in told)
        if first.keys() != second.keys():
            found[name] = (list(first.values()), list(second.values()))
    return found


def _told(result: Result) -> dict[str, Any]:
    """What a result says of how it came about, but for who answered; each sampling option by itself."""
    options = {name: value for name, value in result.options.items() if name != "sampling"}
    versions = {name: value for name, value in result.versions.items() if name != "reported"}
    sampling = result.options.get("sampling") or {}
    return {
        "judge": result.judge,
        **options,
        **{f"sampling {name}": value for name, value in sampling.items()},
        **{f"version of {name}": value for name, value in versions.items()},
    }


def _exact(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _refuse_unlike(base: Result, other: Result) -> None:
    """Raise UserError where two runs are not of one setting of one benchmark."""
    kinds = [f"{result.benchmark}:{result.setting}" for result in (base, other)]
    if kinds[0] != kinds[1]:
        raise UserError("the two runs are of different settings", found=kinds[1], expected=kinds[0])
    if base.data_digest != other.data_digest:
        raise UserError("the two runs asked about different data", expected="the same --data and --split")
