"""Comparisons of two indexed runs: their numbers, and the groups behind each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, get_args

import msgspec
from msgspec import Struct

from sightline.engine.compression import Compressor
from sightline.outcome_index.group_detail import read_lines
from sightline.outcome_index.rank_set import (
    decode_ranks,
    encode_ranks,
    integers_of_bytes,
    integers_to_bytes,
)
from sightline.outcome_index.run_index import RunIndex
from sightline.outcome_index.types import ChangeList, ComparedMetric, RunComparison
from sightline.plan.spec import Decide
from sightline.registry import benchmark as find_benchmark
from sightline.reporting.option_texts import option_text
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

_CHANGES: tuple[Change, ...] = ("both_right", "gained", "lost", "both_wrong", "unscored")


class ComparisonBody(Struct, frozen=True):
    """A comparison as the table has it.

    Attributes:
        summary: The numbers.
        other: The position of each pair of groups in the other run, from 0.
        base: The position of the same pair in the base run.
        changes: What became of each pair, as positions in `_CHANGES`.
        lists: The ranks in the other run of the groups in each list.
    """

    summary: RunComparison
    other: bytes
    base: bytes
    changes: bytes
    lists: Mapping[ChangeList, bytes]


class RunChanges:
    """A comparison as it is read. Ranks are those of the other run."""

    def __init__(self, other: RunIndex, body: ComparisonBody) -> None:
        """Prepare it.

        Args:
            other: The index of the other run.
            body: The comparison.
        """
        self.summary = body.summary
        self._other = other
        self._body = body

    def select(self, name: ChangeList) -> int:
        """Find the groups of a list.

        Args:
            name: The list.

        Returns:
            Their ranks in the other run.
        """
        return decode_ranks(self._body.lists[name], self._other.groups)

    def base_of(self, number: int) -> tuple[int, Change]:
        """Find a group in the base run.

        Args:
            number: Its position in the other run, from 0.

        Returns:
            Its position in the base run, and what became of it.
        """
        place = self._places[number]
        return self._base[place], _CHANGES[self._body.changes[place]]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {number: place for place, number in enumerate(integers_of_bytes(self._body.other))}

    @cached_property
    def _base(self) -> Sequence[int]:
        return integers_of_bytes(self._body.base)


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
            notes=list(_notes(comparison)),
        ),
        other=integers_to_bytes(numbers),
        base=integers_to_bytes(positions[0][pair.base.key] for pair, _ in compared),
        changes=bytes(_CHANGES.index(change.change) for _, change in compared),
        lists={name: encode_ranks(found, indexes[1].groups) for name, found in lists.items()},
    )


def encode_comparison(body: ComparisonBody) -> bytes:
    """Encode a comparison for the table.

    Args:
        body: The comparison.

    Returns:
        The encoded comparison.
    """
    return Compressor().compress(msgspec.msgpack.encode(body))


def decode_comparison(body: bytes) -> ComparisonBody:
    """Decode a comparison: the inverse of `encode_comparison`.

    Args:
        body: The encoded comparison.

    Returns:
        The comparison.

    Raises:
        DamagedBodyError: It is damaged.
        msgspec.MsgspecError: It is of another version.
    """
    return msgspec.msgpack.decode(Compressor().decompress(body), type=ComparisonBody)


def _judged_run(name: str, index: RunIndex) -> JudgedRun:
    decide: Decide = "majority" if index.result.options.get("decide") == "majority" else "first"
    groups: dict[GroupKey, Group] = {}
    for row, lines in zip(index.all_rows(), index.all_lines(), strict=True):
        key = (row.sample, row.draw, row.pooled)
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
    leading = find_benchmark(comparison.benchmark).leading_metrics[:1]
    tested = significance_of(
        comparison,
        [one for one in comparison.differences if one.subset == "all" or one.metric in leading],
    )
    for difference in comparison.differences:
        place: MetricSubset = (difference.metric, difference.subset)
        if all(place in side for side in values):
            p = tested[place].p if place in tested else None
            yield ComparedMetric(values[0][place], values[1][place], difference, p)


def _by_label(
    compared: Sequence[tuple[GroupPair, GroupChange]],
) -> list[tuple[str, ChangeCounts]]:
    found: defaultdict[str, list[GroupChange]] = defaultdict(list)
    for pair, change in compared:
        for name, value in pair.other.labels.items():
            for one in (value,) if isinstance(value, str) else value:
                found[f"{name}={one}"].append(change)
    return [(label, count_list("groups", changes)) for label, changes in found.items()]


def _notes(comparison: Comparison) -> Iterator[str]:
    for name, (before, after) in comparison.differing_options.items():
        yield f"{name} differs: {_values(before)} and {_values(after)}"
    if comparison.different_samples:
        number = len(comparison.different_samples)
        yield f"{number} samples are left out: the runs hold different data for them"
    for place, side in zip(("base", "other"), comparison.sides, strict=True):
        if side.lacking_samples:
            yield f"the {place} run lacks {side.lacking_samples} samples of the other side"
    for name, reason in comparison.not_compared.items():
        yield f"{name} is not compared: it {reason}"


def _values(values: Iterable[Any]) -> str:
    """The values of an option, as the runs of one side have it."""
    return ", ".join("none" if value is None else option_text(value) for value in values)
