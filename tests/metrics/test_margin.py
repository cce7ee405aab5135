"""Non-inferiority and equivalence: the rule, and how often they are claimed where they are not true."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from sightline.metrics.significance import (
    NO_DIRECTION,
    ONLY_POINTS,
    MarginVerdict,
    PairedValues,
    margin_verdict,
)
from sightline.metrics.statistics import TOO_FEW, Floats, Interval, difference_intervals
from sightline.types import PERCENT, Better, MetricDefinition, Unit, difference_range

TRIALS = 700
CHANCE = 1e-4
"""The probability that a simulation fails although the share is as promised."""


def definition(better: Better = "higher", unit: Unit = "percent") -> MetricDefinition:
    return MetricDefinition("", better, PERCENT, unit)


def values(gained: int, lost: int, same: int) -> PairedValues:
    """Groups, each its own cluster."""
    after = np.repeat([1.0, 0.0, 1.0], [gained, lost, same])
    before = np.repeat([0.0, 1.0, 1.0], [gained, lost, same])
    return PairedValues(before, after, np.arange(len(after)))


def drawn(random: np.random.Generator, gain: float, loss: float, clusters: int) -> PairedValues:
    """Clusters of 1 to 3 groups that gain or lose with these probabilities."""
    numbers = np.repeat(np.arange(clusters), random.integers(1, 4, clusters))
    chosen = random.choice([1.0, -1.0, 0.0], len(numbers), p=[gain, loss, 1 - gain - loss])
    return PairedValues(np.where(chosen < 0, 1.0, 0.0), np.where(chosen > 0, 1.0, 0.0), numbers)


def bounds(found: PairedValues, level: float) -> Interval:
    differences = (found.after - found.before).astype(float)
    [one] = difference_intervals(
        np.bincount(found.clusters, differences)[None].astype(np.float64),
        np.bincount(found.clusters)[None].astype(np.float64),
        [difference_range((0, 1))],
        level=level,
    )
    assert isinstance(one, Interval)
    return one


@pytest.mark.parametrize("margin", [1.0, 2.0, 3.0, 4.0, 5.0, 8.0])
def test_the_verdicts_are_those_of_the_two_intervals(margin: float) -> None:
    found = values(gained=20, lost=22, same=958)
    verdict = margin_verdict(found, definition(), margin)
    wide, narrow = bounds(found, 0.95), bounds(found, 0.9)
    assert verdict.non_inferior == (100 * wide.low > -margin)
    assert verdict.equivalent == (100 * narrow.low > -margin and 100 * narrow.high < margin)
    assert (verdict.low, verdict.high) == pytest.approx((100 * narrow.low, 100 * narrow.high))


def test_where_lower_is_better_the_rule_is_mirrored() -> None:
    more, fewer = values(gained=30, lost=0, same=170), values(gained=0, lost=30, same=170)
    assert margin_verdict(more, definition("lower"), 5).non_inferior is False
    assert margin_verdict(fewer, definition("lower"), 5).non_inferior is True
    assert margin_verdict(more, definition(), 5).non_inferior is True
    assert margin_verdict(fewer, definition(), 5).non_inferior is False


def test_a_metric_without_direction_can_only_be_equivalent() -> None:
    verdict = margin_verdict(values(3, 3, 994), definition("neither"), 5)
    assert (verdict.non_inferior, verdict.equivalent, verdict.reason) == (None, True, NO_DIRECTION)


def test_a_margin_in_points_does_not_apply_to_numbers() -> None:
    assert margin_verdict(values(3, 3, 94), definition(unit="number"), 5) == MarginVerdict(reason=ONLY_POINTS)


def test_with_few_clusters_nothing_is_claimed() -> None:
    assert margin_verdict(values(1, 1, 2), definition(), 99) == MarginVerdict(reason=TOO_FEW)


def test_two_equal_runs_are_equivalent_once_there_are_enough_groups() -> None:
    assert margin_verdict(values(0, 0, 20), definition(), 5).equivalent is False
    assert margin_verdict(values(0, 0, 353), definition(), 5).equivalent is True


def claims(gain: float, loss: float, clusters: int) -> Floats:
    """The shares of trials that claim non-inferiority and equivalence within the true loss."""
    random, margin = np.random.default_rng(clusters), 100 * (loss - gain)
    found = [margin_verdict(drawn(random, gain, loss, clusters), definition(), margin) for _ in range(TRIALS)]
    claimed: Floats = np.array([[bool(one.non_inferior), bool(one.equivalent)] for one in found]).mean(axis=0)
    return claimed


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "loss", "clusters"), [(0.1, 0.2, 200), (0.05, 0.15, 60)])
def test_at_a_true_difference_of_the_margin_claims_are_as_rare_as_stated(
    gain: float, loss: float, clusters: int
) -> None:
    shares = claims(gain, loss, clusters)
    for share, stated in zip(shares, (0.025, 0.05), strict=True):
        # The stated level is nominal: the simulations of the docs measure up to 1.3 times as many.
        assert binom.sf(round(share * TRIALS) - 1, TRIALS, 1.3 * stated) > CHANCE


def test_far_inside_the_margin_both_are_claimed() -> None:
    random = np.random.default_rng(0)
    found = [margin_verdict(drawn(random, 0.05, 0.05, 300), definition(), 8) for _ in range(50)]
    assert sum(bool(one.non_inferior) and bool(one.equivalent) for one in found) >= 48
