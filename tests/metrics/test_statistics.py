"""Intervals and correlations against scipy and statsmodels, and against the printed figures of CODIS."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from sightline.metrics.statistics import (
    NO_SPREAD,
    TOO_FEW,
    Floats,
    Interval,
    correlation,
    difference_intervals,
    ratio_estimates,
    ratio_intervals,
)
from sightline.types import Range

SHARE: Range = (0, 1)
DIFFERENCE: Range = (-1, 1)
UNBOUNDED: Range = (None, None)
RANGES = st.sampled_from([SHARE, DIFFERENCE, UNBOUNDED, (0, None)])


def interval(
    sums: Sequence[float] | Floats, counts: Sequence[float] | Floats, bounds: Range, level: float = 0.95
) -> Interval:
    """The interval of one ratio over clusters, which must have one."""
    one, other = np.array([sums], dtype=np.float64), np.array([counts], dtype=np.float64)
    [found] = ratio_intervals(one, other, [bounds], level=level)
    assert isinstance(found, Interval), found
    return found


@pytest.mark.parametrize(("successes", "n"), [(0, 5), (5, 5), (0, 40), (40, 40), (3, 7), (114, 353)])
@pytest.mark.parametrize("level", [0.95, 0.9])
def test_a_share_of_single_units_has_the_wilson_interval_of_statsmodels(
    successes: int, n: int, level: float
) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="needs the extra 'dev'")
    expected = proportion.proportion_confint(successes, n, alpha=1 - level, method="wilson")
    units = np.arange(n) < successes
    found = interval(units.astype(np.float64), np.ones(n), SHARE, level)
    assert found[:2] == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.integers(-1000, 1000), min_size=5, max_size=60), st.sampled_from([0.9, 0.95]))
def test_the_mean_of_single_units_has_the_t_interval_of_scipy(values: list[int], level: float) -> None:
    if len(set(values)) == 1:
        return
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    found = interval(values, np.ones(len(values)), UNBOUNDED, level)
    assert found[:2] == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-9)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=5, max_size=30))
@settings(max_examples=30, deadline=None)
def test_the_variance_of_a_ratio_is_hc2_of_a_regression_on_the_cluster_sizes(
    clusters: list[tuple[int, int]],
) -> None:
    """A ratio is the weighted regression of cluster means on a constant; statsmodels gives its HC2 error."""
    api = pytest.importorskip("statsmodels.api", reason="needs the extra 'dev'")
    sizes, sums = np.array(clusters, dtype=np.float64).T
    fit = api.WLS(sums / sizes, np.ones(len(sizes)), weights=sizes).fit()
    found = ratio_estimates(sums[None], sizes[None])
    assert found.values[0] == pytest.approx(fit.params[0])
    assert np.sqrt(found.variances[0]) == pytest.approx(fit.HC2_se[0], abs=1e-9)


@given(st.integers(5, 40), st.integers(0, 2**32 - 1))
def test_clusters_of_one_size_have_one_degree_of_freedom_less_than_clusters(n: int, seed: int) -> None:
    sums, _ = _clusters(n, 1, seed=seed)
    assert ratio_estimates(sums, np.full((1, n), 4.0)).freedom[0] == pytest.approx(n - 1)
    uneven = np.ones((1, n))
    uneven[0, 0] = 9
    assert ratio_estimates(sums, uneven).freedom[0] < n - 1


@given(
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 4)), min_size=3, max_size=8),
    st.sampled_from([1, 10**3, 10**6, 10**9, 10**12]),
)
@example([(1, 9), (1, 1)], 10**9)
@settings(deadline=None)
def test_the_degrees_of_freedom_are_the_exact_ones_however_large_one_cluster_is(
    columns: list[tuple[int, int]], factor: int
) -> None:
    """(tr M)^2 / tr(M^2), where M holds the products of the clusters' weights (Bell and McCaffrey 2002)."""
    sizes, numbers = [size for size, _ in columns], [number for _, number in columns]
    sizes[-1], numbers[-1] = factor * sizes[-1], 1
    alone = [size for size, number in zip(sizes, numbers, strict=True) for _ in range(number)]
    units = sum(alone)
    parts = [Fraction(size, units) for size in alone]
    squares = sum(
        (size * (one == other) - units * parts[one] * parts[other]) ** 2
        / ((1 - parts[one]) * (1 - parts[other]))
        for one, size in enumerate(alone)
        for other in range(len(alone))
    )
    counts = np.array([alone], dtype=np.float64)
    [freedom] = ratio_estimates(np.zeros_like(counts), counts).freedom
    assert freedom == pytest.approx(float(Fraction(units) ** 2 / squares), rel=1e-12)
    assert 1 <= freedom <= len(alone) - 1


@given(st.lists(st.floats(1e-150, 1e150), min_size=2, max_size=20))
def test_the_degrees_of_freedom_stay_within_their_limits(sizes: list[float]) -> None:
    [freedom] = ratio_estimates(np.zeros((1, len(sizes))), np.array([sizes])).freedom
    assert np.isnan(freedom) or 1 <= freedom <= len(sizes) - 1


@given(st.lists(st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=3, max_size=30))
def test_correlation_equals_scipys_where_both_series_vary(points: list[tuple[int, int]]) -> None:
    x, y = zip(*points, strict=True)
    found = correlation(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_correlation_does_not_depend_on_the_scale(scale: float) -> None:
    x, y = [1.0, 2.0, 4.0], [3.0, 1.0, 2.0]
    assert correlation([scale * value for value in x], y) == pytest.approx(stats.pearsonr(x, y).statistic)


def test_correlation_of_fewer_than_two_points_is_undefined() -> None:
    assert correlation([], []) is None
    assert correlation([1.0], [2.0]) is None


def test_correlation_refuses_series_of_different_lengths() -> None:
    with pytest.raises(ValueError, match="3 and 2"):
        correlation([1, 2, 3], [1, 2])


def test_context_awareness_goes_with_acc_p_and_hardly_with_acc_q_as_printed(shared: Path) -> None:
    rows = json.loads((shared / "data/published/codis.json").read_text())["rows"]
    printed = {
        metric: [
            row["value"]
            for row in rows
            if (row["table"], row["subset"], row["metric"]) == (3, "Overall", metric)
            and row["model"] != "Human"
        ]
        for metric in ("Context Awareness", "Acc_p", "Acc_q")
    }
    awareness = printed["Context Awareness"]
    assert len(awareness) == 14
    assert correlation(awareness, printed["Acc_p"]) == pytest.approx(0.88, abs=0.005)
    assert correlation(awareness, printed["Acc_q"]) == pytest.approx(0.43, abs=0.005)


@given(st.integers(5, 40), st.integers(0, 2**32 - 1), RANGES)
@settings(max_examples=50, deadline=None)
def test_doubling_every_unit_inside_the_clusters_changes_no_interval(
    clusters: int, seed: int, bounds: Range
) -> None:
    sums, counts = _clusters(clusters, 1, seed=seed)
    once, twice = interval(sums[0], 2 * counts[0], bounds), interval(2 * sums[0], 4 * counts[0], bounds)
    assert once[:2] == pytest.approx(twice[:2])


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 6)), min_size=5, max_size=30),
    RANGES,
    st.sampled_from([0.9, 0.95]),
)
@settings(max_examples=100, deadline=None)
def test_an_interval_has_a_width_holds_its_value_and_stays_within_the_range(
    clusters: list[tuple[float, int]], bounds: Range, level: float
) -> None:
    counts = np.array([count for _, count in clusters], dtype=np.float64)
    sums = np.array([share for share, _ in clusters]) * counts
    [found] = ratio_intervals(sums[None], counts[None], [bounds], level=level)
    value = sums.sum() / counts.sum()
    if isinstance(found, str):
        assert (found, bounds[1]) == (NO_SPREAD, None)
        return
    low, high = bounds
    assert found.low < found.high
    assert (-np.inf if low is None else low) - 1e-9 <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= (np.inf if high is None else high) + 1e-9


@pytest.mark.parametrize("bounds", [SHARE, DIFFERENCE, UNBOUNDED])
def test_a_higher_level_has_a_wider_interval(bounds: Range) -> None:
    sums, counts = _clusters(20, 1, seed=0)
    narrow, wide = (interval(sums[0], counts[0], bounds, level) for level in (0.9, 0.95))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize(
    ("clusters", "word"), [(5, "wilson, approximate"), (9, "wilson, approximate"), (10, "wilson")]
)
def test_fewer_than_ten_clusters_make_an_approximate_interval(clusters: int, word: str) -> None:
    assert interval([1.0, 0] + [1] * (clusters - 2), np.full(clusters, 2.0), SHARE).method == word


@pytest.mark.parametrize("bounds", [SHARE, DIFFERENCE, UNBOUNDED])
def test_fewer_than_five_clusters_have_no_interval_but_a_reason(bounds: Range) -> None:
    sums, counts = np.array([[3.0, 0, 1, 2, 0]]), np.array([[4.0, 1, 1, 2, 0]])
    assert ratio_intervals(sums, counts, [bounds]) == [TOO_FEW]


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_share_on_which_all_clusters_agree_has_the_wilson_interval_of_the_clusters(value: float) -> None:
    counts = np.arange(1.0, 15)
    expected = stats.binomtest(int(value * 14), 14).proportion_ci(method="wilson")
    assert interval(value * counts, counts, SHARE)[:2] == pytest.approx((expected.low, expected.high))


@given(
    st.lists(st.floats(-1, 1), min_size=5, max_size=30).filter(lambda values: np.ptp(values) > 0.1),
    st.floats(-0.9, 0.9),
    st.sampled_from([ratio_intervals, difference_intervals]),
)
@settings(max_examples=100, deadline=None)
def test_less_spread_of_graded_units_never_makes_a_wider_interval(
    deviations: list[float], value: float, find: Callable[..., list[Interval | str]]
) -> None:
    centred = np.array(deviations) - np.mean(deviations)
    sums = np.array([value + 10.0**-power * centred for power in range(1, 8)])
    found = find(sums, np.ones(sums.shape), [(-2, 2)] * 7, graded=True)
    widths = [one.high - one.low for one in found if isinstance(one, Interval)]
    assert len(widths) == 7
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 1e-5


@pytest.mark.parametrize("value", [-0.2, 0.0, 0.5, 1.0])
def test_graded_units_without_any_spread_have_no_interval(value: float) -> None:
    sums, counts = np.full((1, 20), value), np.ones((1, 20))
    assert ratio_intervals(sums, counts, [DIFFERENCE], graded=True) == [NO_SPREAD]
    assert difference_intervals(sums, counts, [(-2, 2)], graded=True) == [NO_SPREAD]


@given(st.lists(st.floats(-1, 1), min_size=5, max_size=30), st.sampled_from([0.9, 0.95]))
def test_a_difference_of_graded_units_has_the_t_interval_within_the_range(
    values: list[float], level: float
) -> None:
    if np.ptp(values) < 1e-3:
        return
    expected = stats.ttest_1samp(values, 0).confidence_interval(level)
    [found] = difference_intervals(
        np.array([values]), np.ones((1, len(values))), [DIFFERENCE], graded=True, level=level
    )
    assert isinstance(found, Interval)
    assert (found.low, found.high) == pytest.approx((max(expected.low, -1), min(expected.high, 1)), abs=1e-6)


@pytest.mark.parametrize("value", [0.0, 1 / 3, -0.1, 12345.678])
def test_clusters_that_agree_have_no_interval_without_bounds_whatever_rounding_makes_of_them(
    value: float,
) -> None:
    counts = np.arange(1.0, 8)[None]
    assert ratio_intervals(value * counts, counts, [UNBOUNDED]) == [NO_SPREAD]


def difference(sums: Floats, counts: Floats, bounds: Range = DIFFERENCE, level: float = 0.95) -> Interval:
    """The interval of one difference over clusters, which must have one."""
    [found] = difference_intervals(sums[None], counts[None], [bounds], level=level)
    assert isinstance(found, Interval), found
    return found


def test_two_runs_without_any_difference_have_an_interval_around_0() -> None:
    found = difference(np.zeros(50), np.ones(50))
    expected = stats.binomtest(0, 50).proportion_ci(method="wilson").high
    assert (found.low, found.high) == pytest.approx((-expected, expected))


def test_a_difference_joins_gains_and_losses_by_newcombes_method_10() -> None:
    """The square-and-add interval of paired proportions; with phi, Newcombe's correlation, written out."""
    gained, lost, n = 60, 30, 400
    units = np.repeat([1.0, -1.0, 0.0], [gained, lost, n - gained - lost])
    found = difference(units, np.ones(n))
    p, q = gained / n, lost / n
    phi = -math.sqrt(p * q / ((1 - p) * (1 - q)))
    (p_low, p_high), (q_low, q_high) = (
        stats.binomtest(count, n).proportion_ci(method="wilson") for count in (gained, lost)
    )
    below = math.sqrt((p - p_low) ** 2 - 2 * phi * (p - p_low) * (q_high - q) + (q_high - q) ** 2)
    above = math.sqrt((p_high - p) ** 2 - 2 * phi * (p_high - p) * (q - q_low) + (q - q_low) ** 2)
    assert (found.low, found.high) == pytest.approx((p - q - below, p - q + above), abs=5e-4)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(1, 6)), min_size=5, max_size=30),
    st.sampled_from([0.9, 0.95]),
)
@settings(max_examples=100, deadline=None)
def test_an_interval_of_a_difference_has_a_width_holds_its_value_and_stays_within_the_range(
    clusters: list[tuple[float, int]], level: float
) -> None:
    counts = np.array([count for _, count in clusters], dtype=np.float64)
    sums = np.array([share for share, _ in clusters]) * counts
    found, value = difference(sums, counts, level=level), sums.sum() / counts.sum()
    assert -1 - 1e-9 <= found.low <= value + 1e-9
    assert value - 1e-9 <= found.high <= 1 + 1e-9
    assert found.low < found.high


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=5, max_size=40))
def test_exchanging_both_runs_mirrors_the_interval(units: list[float]) -> None:
    there, back = (difference(sign * np.array(units), np.ones(len(units))) for sign in (1, -1))
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))


def test_a_difference_without_bounds_has_the_t_interval() -> None:
    units = np.arange(20.0)
    expected = stats.ttest_1samp(units, 0).confidence_interval()
    found = difference(units, np.ones(20), UNBOUNDED)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.method == "t"


def test_an_interval_holds_its_value_whatever_rounding_did() -> None:
    assert Interval(0.2, 0.3, "t").around(30.000000000000004, 100) == (20.0, 30.000000000000004, "t")


def _clusters(clusters: int, width: int, *, seed: int) -> tuple[Floats, Floats]:
    """Whole counts 1 to 4, and whole sums up to them, that are not all equal shares."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 5, (width, clusters)).astype(np.float64)
    sums = np.floor((counts + 1) * generator.random((width, clusters)))
    sums[:, 0], sums[:, 1] = 0, counts[:, 1]
    return sums, counts
