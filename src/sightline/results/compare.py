"""Differences between runs of one setting, group by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metric_types import Metric, MetricValue, Result
from sightline.metrics.difference import difference, paired
from sightline.metrics.significance import Significance, significance
from sightline.metrics.tally import SCALES, tally
from sightline.registry import benchmark as find_benchmark
from sightline.results.comparison import Comparison, MetricSubset
from sightline.types import Group

GroupName = tuple[str, int]
"""The sample and the draw of a group."""

GroupsByName = dict[GroupName, Group]


class JudgedRun(Struct, frozen=True, kw_only=True):
    """The result of a run, and its judged groups by sample and draw."""

    result: Result
    groups: GroupsByName


def compare(runs: Mapping[int, JudgedRun], pairs: Sequence[tuple[int, int]]) -> Comparison:
    """Compare runs pair by pair, and all pairs together (such as one adapter trained from several seeds).

    The 95 % confidence intervals resample clusters; all runs of a cluster are drawn together. They cover the
    choice of the data, not that of the seeds.

    Args:
        runs: The judged runs by number.
        pairs: The numbers of the runs: first the base, then the run that is compared with it.

    Returns:
        The values on both sides over the shared groups, and the differences of the second from the first.

    Raises:
        UserError: The runs have different settings or data, or share no group.
    """
    first = runs[pairs[0][0]]
    for run in runs.values():
        _check_comparable(first.result, run.result)
    each = [
        _shared_groups(number, runs[base].groups, runs[other].groups)
        for number, (base, other) in enumerate(pairs)
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
        unlike=_different_options(*([runs[run].result for run in side] for side in zip(*pairs, strict=True))),
        unanswered={
            number: (run.result.errors, run.result.probes)
            for number, run in runs.items()
            if run.result.errors
        },
        definitions={metric.name: metric.definition for metric in metrics.values()},
    )


def significance_of(comparison: Comparison, rows: Sequence[MetricValue]) -> dict[MetricSubset, Significance]:
    """Test the differences of a comparison for significance, corrected for testing several of them.

    Args:
        comparison: The comparison.
        rows: The differences to test; those without a value are left out.

    Returns:
        The test of each difference by metric and subset; `detectable` is in the unit of the difference.
    """
    defined = [row for row in rows if row.value is not None]
    tests = significance([comparison.groups[row.metric][row.subset] for row in defined])
    return {
        (row.metric, row.subset): test
        if test.detectable is None
        else replace(test, detectable=SCALES[row.unit] * test.detectable)
        for row, test in zip(defined, tests, strict=True)
    }


def _shared_groups(
    pair: int, base: Mapping[GroupName, Group], other: Mapping[GroupName, Group]
) -> tuple[GroupsByName, GroupsByName]:
    """The groups of both runs, reduced to the probes of both; the number of the pair enters their names."""
    earlier, later = {}, {}
    for (sample, draw), after in other.items():
        before = base.get((sample, draw))
        if before is None:
            continue
        variants = {outcome.variant for outcome in before} & {outcome.variant for outcome in after}
        if variants:
            name = f"{pair} {sample}"
            earlier[name, draw] = _with_variants(before, name, variants)
            later[name, draw] = _with_variants(after, name, variants)
    return earlier, later


def _with_variants(group: Group, name: str, variants: Collection[str]) -> Group:
    outcomes = tuple(outcome for outcome in group if outcome.variant in variants)
    return replace(group, id=name, outcomes=outcomes, partners={})


def _metrics(result: Result) -> dict[str, Metric]:
    """The metrics of a run that need no other setting, by name."""
    metrics = find_benchmark(result.benchmark).metrics(result.options)
    return {metric.name: metric for metric in metrics if metric.needs is None}


def _different_options(
    base: Sequence[Result], other: Sequence[Result]
) -> Mapping[str, tuple[Sequence[Any], Sequence[Any]]]:
    """The options and versions that differ between the two sides, with the distinct values of each side."""
    sides = [[_comparable_options(result) for result in side] for side in (base, other)]
    names = dict.fromkeys(name for side in sides for options in side for name in options)
    different: dict[str, tuple[Sequence[Any], Sequence[Any]]] = {}
    for name in names:
        first, second = (
            {_canonical(options.get(name)): options.get(name) for options in side} for side in sides
        )
        if first.keys() != second.keys():
            different[name] = (list(first.values()), list(second.values()))
    return different


def _comparable_options(result: Result) -> dict[str, Any]:
    """Judge, options and versions of a result, without the model; each sampling option by its name."""
    options = {name: value for name, value in result.options.items() if name != "sampling"}
    versions = {name: value for name, value in result.versions.items() if name != "reported"}
    sampling = result.options.get("sampling") or {}
    return {
        "judge": result.judge,
        **options,
        **{f"sampling {name}": value for name, value in sampling.items()},
        **{f"version of {name}": value for name, value in versions.items()},
    }


def _canonical(value: Any) -> bytes:
    return msgspec.json.encode(value, order="deterministic")


def _check_comparable(base: Result, other: Result) -> None:
    """Raise UserError unless two runs are of one setting of one benchmark and of the same data."""
    tasks = [f"{result.benchmark}:{result.setting}" for result in (base, other)]
    if tasks[0] != tasks[1]:
        raise UserError("the two runs are of different settings", found=tasks[1], expected=tasks[0])
    if base.data_digest != other.data_digest:
        raise UserError("the two runs use different data", expected="the same --data and --split")
