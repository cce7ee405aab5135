"""The values of both sides of a comparison and their differences, from pairs of groups one after another."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sightline.metric_types import Metric
from sightline.metrics.difference import PairedTally, difference, mean_of_shared_groups
from sightline.metrics.scenarios import contains_undecided
from sightline.metrics.tally import Tally
from sightline.results.pairing import GroupPair
from sightline.types import Group, Outcome

MetricPair = tuple[Metric, Metric]
"""A metric of the second runs, and the same metric of the base runs."""


class SideCounts:
    """The probes of one side: all, undecided and failed ones."""

    def __init__(self) -> None:
        self.probes = self.undecided = self.failed = 0

    def add(self, outcomes: Sequence[Outcome]) -> None:
        """Count probes."""
        self.probes += len(outcomes)
        self.undecided += sum(outcome.verdict == "undecided" for outcome in outcomes)
        self.failed += sum(not outcome.answered for outcome in outcomes)


class PairTally:
    """Adds up one pair of groups at a time; of the groups only numbers are kept."""

    def __init__(self, metrics: Sequence[MetricPair], runs: int) -> None:
        changes = [difference(here, there, self._before) for here, there in metrics]
        self.base = Tally([mean_of_shared_groups(there, here, self._after) for here, there in metrics])
        self.other = Tally([mean_of_shared_groups(here, there, self._before) for here, there in metrics])
        self.differences = Tally(changes)
        self.each = [Tally(changes) for _ in range(runs)] if runs > 1 else []
        self.sides = SideCounts(), SideCounts()
        self.paired = PairedTally(metrics)
        self.has_undecided = False

    def add(self, number: int, pair: GroupPair) -> None:
        self._pair = numbered(number, pair)
        base, other = self._pair
        self.base.add(base)
        self.other.add(other)
        for differences in (self.differences, *self.each[number : number + 1]):
            differences.add(other)
        self.paired.add(base, other)
        for side, group in zip(self.sides, self._pair, strict=True):
            side.add(group.outcomes)
        self.has_undecided = self.has_undecided or any(map(contains_undecided, self._pair))

    def _before(self, _: Group) -> Group:
        return self._pair.base

    def _after(self, _: Group) -> Group:
        return self._pair.other


def numbered(number: int, pair: GroupPair) -> GroupPair:
    """A pair without partners; the number of its pair of runs enters the names of its groups."""
    return GroupPair(*(replace(group, id=f"{number} {group.id}", partners={}) for group in pair))
