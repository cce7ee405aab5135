"""The confidence intervals of the adapter study: simulations with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from training.adapter.intervals import estimate


@pytest.mark.parametrize(
    ("seeds", "groups", "rest"), [(0.0, 0.3, 0.2), (0.01, 0.3, 0.2), (0.05, 0.3, 0.2), (0.06, 0.1, 0.3)]
)
def test_the_interval_holds_the_truth_in_95_percent_of_studies(
    seeds: float, groups: float, rest: float
) -> None:
    """Five seeds that do not differ, differ as much as the groups, or differ much more."""
    generator = np.random.default_rng(1)
    studies, held, narrow = 600, 0, 0
    for _ in range(studies):
        values = (
            0.1
            + generator.normal(0, seeds, (5, 1))
            + generator.normal(0, groups, (1, 200))
            + generator.normal(0, rest, (5, 200))
        )
        found = estimate(values)
        held += found.low <= 0.1 <= found.high
        # What a bootstrap over the groups alone covers.
        reach = 1.97 * values.mean(axis=0).std(ddof=1) / math.sqrt(200)
        narrow += abs(values.mean() - 0.1) <= reach
    assert 0.93 <= held / studies <= 0.98
    assert (narrow / studies < 0.9) == (seeds >= 0.05)


def test_one_seed_has_an_interval_over_the_groups_only() -> None:
    values = np.random.default_rng(2).normal(0, 1, (1, 50))
    found = estimate(values)
    assert (found.high - found.low) / 2 == pytest.approx(
        2.0096 * values.std(ddof=1) / math.sqrt(50), rel=1e-3
    )
    assert (found.seeds, found.freedom) == (0, 49)


def test_equal_values_have_no_width_and_a_p_value() -> None:
    for mean, p in ((0.0, 1.0), (2.0, 0.0)):
        found = estimate(np.full((5, 9), mean))
        assert (found.low, found.high, found.p_value()) == (mean, mean, p)


def test_non_inferiority_is_a_one_sided_test_at_the_margin() -> None:
    found = estimate(np.random.default_rng(4).normal(-1, 2, (5, 100)))
    assert found.p_above(-2) < 0.025
    assert found.low > -2
    assert found.p_above(found.low) == pytest.approx(0.025)
    assert found.p_above(found.high) == pytest.approx(0.975)
