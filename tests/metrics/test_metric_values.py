"""A number and its interval: what is within bounds, what has none, what a mean over clusters says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from sightline.metrics.statistics import TOO_FEW, Interval, clustered_mean, with_interval
from sightline.types import MetricValue

VALUES = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([0.0, 0.25, 1.0])), max_size=20)


def value(number: float | None) -> MetricValue:
    return MetricValue("m", "all", number, 1, 1)


def test_an_interval_is_scaled_with_its_value_and_holds_it() -> None:
    found = with_interval(value(30.000000000000004), Interval(0.2, 0.3, "t"), 100)
    assert (found.low, found.high, found.interval) == (20, 30.000000000000004, "t")


def test_a_value_that_is_missing_has_no_bounds() -> None:
    assert with_interval(value(None), Interval(0, 1, "wilson")) == value(None)


def test_a_value_without_an_interval_has_the_reason() -> None:
    found = with_interval(value(3.0), TOO_FEW)
    assert (found.value, found.low, found.high, found.interval, found.reason) == (
        3,
        None,
        None,
        None,
        TOO_FEW,
    )


def test_a_mean_of_single_units_has_wilsons_interval() -> None:
    found = clustered_mean("m", [(number, float(number % 3 > 0)) for number in range(12)], reason="nothing")
    expected = binomtest(8, 12).proportion_ci(method="wilson")
    assert found.value == pytest.approx(200 / 3)
    assert (found.n, found.clusters, found.interval) == (12, 12, "wilson")
    assert [found.low, found.high] == pytest.approx([100 * expected.low, 100 * expected.high])


@given(VALUES)
def test_a_mean_is_that_of_all_values_whatever_their_clusters(values: list[tuple[str, float]]) -> None:
    found = clustered_mean("m", values, reason="nothing")
    assert (found.n, found.clusters) == (len(values), len({cluster for cluster, _ in values}))
    if not values:
        assert (found.value, found.reason, found.interval) == (None, "nothing", None)
        return
    assert (found.reason is None) == (found.low is not None)
    assert found.value is not None
    assert found.value == pytest.approx(100 * sum(number for _, number in values) / len(values))
    if found.low is not None and found.high is not None:
        assert found.low <= found.value <= found.high
