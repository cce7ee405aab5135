"""Compares two indexed runs: the numbers, and the groups behind each of them."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from msgspec import Struct

from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.rank_set import encode_ranks, integers_to_bytes
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import ChangeList, ComparedMetric, RunComparison
from sightline.plan.spec import Decide
from sightline.registry import benchmark as find_benchmark
from sightline.reporting.comparison import comparison_notes
from sightline.results.compare import compare
from sightline.results.comparison import Comparison, MetricSubset
from sightline.results.comparison_tests import significance_of
from sightline.results.flips import (
    LISTS,
    Change,
    ChangeCounter,
    GroupChange,
    answer_changes,
    count_changes,
)
from sightline.results.judged_run import JudgedRun, group_of_lines
from sightline.results.stored_groups import StoredGroups
from sightline.types import Group

CHANGES: tuple[Change, ...] = ("both_right", "gained", "lost", "both_wrong", "unscored")
"""What became of a group, in the order of their codes."""


def _is_flipped(change: GroupChange) -> bool:
    return any(answer.change in ("gained", "lost") for answer in change.answers)


LISTED: Mapping[ChangeList, Callable[[GroupChange], bool]] = {
    **{name: LISTS[name] for name in get_args(ChangeList) if name in LISTS},
    "flipped": _is_flipped,
}
"""Name of a list -> whether a group is in it."""


class ComparisonBody(Struct, frozen=True):
    """A comparison as the table has it.

    Attributes:
        other: The position of each pair of groups in the other run, from 0.
    """

    summary: RunComparison
    other: bytes
    base: bytes
    changes: bytes
    lists: Mapping[ChangeList, bytes]


def make_comparison(
    runs: tuple[int, int], names: tuple[str, str], indexes: tuple[RunIndex, RunIndex]
) -> ComparisonBody:
    """Compare two runs by the lines of their indexes."""
    base, other = map(_judged_run, names, indexes)
    comparison = compare([(base, other)])
    (pairs,) = comparison.answers.pairs
    positions = [{key: number for number, key in enumerate(run.groups)} for run in (base, other)]
    ranks = indexes[1].ranks
    places, changes = (array("q"), array("q")), bytearray()
    lists: dict[ChangeList, array[int]] = {name: array("q") for name in LISTED}
    by_label: defaultdict[str, ChangeCounter] = defaultdict(lambda: ChangeCounter("groups"))
    for pair in pairs:
        change = GroupChange(tuple(answer_changes(0, [pair])))
        if not change.answers:
            continue
        for of_run, numbers, group in zip(places, positions, pair, strict=True):
            of_run.append(numbers[group.key])
        changes.append(CHANGES.index(change.change))
        for name, holds in LISTED.items():
            if holds(change):
                lists[name].append(ranks[places[1][-1]])
        for label in _labels(pair.other):
            by_label[label].add(change)
    return ComparisonBody(
        summary=RunComparison(
            base=runs[0],
            other=runs[1],
            counts=count_changes(comparison.answers),
            lists={name: len(found) for name, found in lists.items()},
            metrics=list(_metrics(comparison)),
            by_label=[(label, counter.counts()) for label, counter in by_label.items()],
            groups=len(pairs),
            notes=comparison_notes(comparison),
        ),
        other=integers_to_bytes(places[1]),
        base=integers_to_bytes(places[0]),
        changes=bytes(changes),
        lists={name: encode_ranks(found, indexes[1].groups) for name, found in lists.items()},
    )


def _judged_run(name: str, index: RunIndex) -> JudgedRun:
    decide: Decide = "majority" if index.result.options.get("decide") == "majority" else "first"
    groups = StoredGroups()
    for facts, lines in zip(index.facts(), index.blocks.lines(range(1, index.groups + 1)), strict=True):
        key = (facts.sample, facts.draw, facts.pooled)
        groups.add(group_of_lines(key, *read_lines(lines), decide))
    return JudgedRun(name=name, result=index.result, groups=groups)


def _labels(group: Group) -> Iterator[str]:
    for name, value in group.labels.items():
        for one in (value,) if isinstance(value, str) else value:
            yield f"{name}={one}"


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
