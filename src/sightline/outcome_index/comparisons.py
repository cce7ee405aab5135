"""Compares two indexed runs: the numbers, and the groups behind each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.rank_set import encode_ranks, integers_to_bytes
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import ChangeList, ComparedMetric, RunComparison
from sightline.plan.spec import Decide
from sightline.registry import benchmark as find_benchmark
from sightline.reporting.comparison import comparison_notes
from sightline.results.compare import compare, sent_groups
from sightline.results.comparison import Comparison, MetricSubset
from sightline.results.comparison_tests import significance_of
from sightline.results.flips import (
    LISTS,
    Change,
    ChangeCounts,
    GroupChange,
    count_changes,
    count_list,
    group_changes,
)
from sightline.results.judged_run import JudgedRun, group_of_lines
from sightline.results.pairing import GroupPair, pair_groups
from sightline.types import Group, GroupKey

CHANGES: tuple[Change, ...] = ("both_right", "gained", "lost", "both_wrong", "unscored")
"""What became of a group, in the order of their codes."""


class ComparisonBody(Struct, frozen=True):
    """A comparison as the table has it.

    Attributes:
        summary: The numbers.
        other: The position of each pair of groups in the other run, from 0.
        base: The position of the same pair in the base run.
        changes: What became of each pair, as places in `CHANGES`.
        lists: The ranks in the other run of the groups in each list.
    """

    summary: RunComparison
    other: bytes
    base: bytes
    changes: bytes
    lists: Mapping[ChangeList, bytes]


def make_comparison(
    runs: tuple[int, int], names: tuple[str, str], indexes: tuple[RunIndex, RunIndex]
) -> ComparisonBody:
    """Compare two runs by the lines of their indexes.

    Args:
        runs: The numbers of the base run and of the other run.
        names: What tables call them.
        indexes: Their indexes.

    Returns:
        The comparison.

    Raises:
        UserError: The runs belong to different benchmarks, or share no group of the same data.
    """
    base, other = map(_judged_run, names, indexes)
    comparison = compare([(base, other)])
    pairs = pair_groups(sent_groups(base), sent_groups(other)).pairs
    changes = group_changes(comparison.answers)
    by_key = {change.answers[0].group: change for change in changes}
    compared = [(pair, by_key[pair.other.key]) for pair in pairs if pair.other.key in by_key]
    positions = [{key: number for number, key in enumerate(run.groups)} for run in (base, other)]
    numbers = [positions[1][pair.other.key] for pair, _ in compared]
    ranks = indexes[1].ranks
    lists = {
        name: [ranks[number] for number, (_, change) in zip(numbers, compared, strict=True) if holds(change)]
        for name, holds in _lists().items()
    }
    return ComparisonBody(
        summary=RunComparison(
            base=runs[0],
            other=runs[1],
            counts=count_changes(comparison.answers),
            lists={name: len(found) for name, found in lists.items()},
            metrics=list(_metrics(comparison)),
            by_label=_by_label(compared),
            groups=len(pairs),
            notes=comparison_notes(comparison),
        ),
        other=integers_to_bytes(numbers),
        base=integers_to_bytes(positions[0][pair.base.key] for pair, _ in compared),
        changes=bytes(CHANGES.index(change.change) for _, change in compared),
        lists={name: encode_ranks(found, indexes[1].groups) for name, found in lists.items()},
    )


def _judged_run(name: str, index: RunIndex) -> JudgedRun:
    decide: Decide = "majority" if index.result.options.get("decide") == "majority" else "first"
    groups: dict[GroupKey, Group] = {}
    for facts, lines in zip(index.facts(), index.blocks.lines(range(1, index.groups + 1)), strict=True):
        key = (facts.sample, facts.draw, facts.pooled)
        groups[key] = group_of_lines(key, *read_lines(lines), decide)
    return JudgedRun(name=name, result=index.result, groups=groups)


def _lists() -> dict[ChangeList, Callable[[GroupChange], bool]]:
    def flipped(change: GroupChange) -> bool:
        return any(answer.change in ("gained", "lost") for answer in change.answers)

    return {**{name: LISTS[name] for name in get_args(ChangeList) if name in LISTS}, "flipped": flipped}


def _metrics(comparison: Comparison) -> Iterator[ComparedMetric]:
    values = [
        {(value.metric, value.subset): value for value in side}
        for side in (comparison.base, comparison.other)
    ]
    leading = find_benchmark(comparison.benchmark).leading_metrics
    tested = significance_of(
        comparison,
        [one for one in comparison.differences if one.subset == "all" or one.metric in leading],
    )
    for difference in comparison.differences:
        place: MetricSubset = (difference.metric, difference.subset)
        if all(place in side for side in values):
            p = tested[place].p if place in tested else None
            if_decided = comparison.undecided_bounds.get(place)
            yield ComparedMetric(values[0][place], values[1][place], difference, p, if_decided)


def _by_label(
    compared: Sequence[tuple[GroupPair, GroupChange]],
) -> list[tuple[str, ChangeCounts]]:
    found: defaultdict[str, list[GroupChange]] = defaultdict(list)
    for pair, change in compared:
        for name, value in pair.other.labels.items():
            for one in (value,) if isinstance(value, str) else value:
                found[f"{name}={one}"].append(change)
    return [(label, count_list("groups", changes)) for label, changes in found.items()]
