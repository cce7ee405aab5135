"""Intervals and correlations against scipy, against plain Python and against the printed figures of CODIS."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from statistics import quantiles

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sightline.metrics import statistics
from sightline.metrics.statistics import (
    Floats,
    Interval,
    bootstrap,
    correlation,
    intervals,
    percentile_interval,
    resampled_ratios,
    wilson,
)


@pytest.mark.parametrize(
    ("successes", "n"), [(0, 1), (1, 1), (0, 40), (40, 40), (3, 7), (114, 353), (1034, 1399)]
)
def test_wilson_equals_scipys(successes: int, n: int) -> None:
    expected = stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_share_and_stays_a_share(case: tuple[int, int]) -> None:
    successes, n = case
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n <= high <= 1
    assert low < high


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


def test_the_bootstrap_equals_a_plain_one_over_the_same_draws() -> None:
    clusters, resamples, seed = 37, 400, 11
    sums, counts = _clusters(clusters, 3, seed=1)
    counts[:, 2] = 0
    counts[:3, 2] = sums[:3, 2] = 1  # few resamples hold one of these: the others have no denominator
    generator = np.random.Generator(np.random.PCG64(seed))
    draws = [generator.integers(0, clusters, clusters).tolist() for _ in range(resamples)]
    low, high = bootstrap(sums, counts, seed=seed, resamples=resamples)
    for column in range(3):
        ratios = []
        for drawn in draws:
            whole = sum(counts[cluster, column] for cluster in drawn)
            if whole:
                ratios.append(sum(sums[cluster, column] for cluster in drawn) / whole)
        cuts = quantiles(ratios, n=40, method="inclusive")
        assert (low[column], high[column]) == pytest.approx((cuts[0], cuts[-1]), abs=1e-12)


def test_resamples_do_not_depend_on_the_size_of_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sums, counts = _clusters(50, 4, seed=2)
    at_once = resampled_ratios(sums, counts, seed=5, resamples=100)
    monkeypatch.setattr(statistics, "_BLOCK_BYTES", 7 * 8 * 50)
    assert (resampled_ratios(sums, counts, seed=5, resamples=100) == at_once).all()


def test_a_ratio_sees_the_same_resamples_alone_and_among_others() -> None:
    sums, counts = _clusters(60, 5, seed=3)
    together = resampled_ratios(sums, counts, seed=1, resamples=50)
    alone = resampled_ratios(sums[:, 3:4], counts[:, 3:4], seed=1, resamples=50)
    assert (together[3] == alone[0]).all()


def test_the_seed_determines_the_interval() -> None:
    sums, counts = _clusters(60, 1, seed=4)
    first = resampled_ratios(sums, counts, seed=1)
    assert (first == resampled_ratios(sums, counts, seed=1)).all()
    assert (first != resampled_ratios(sums, counts, seed=2)).any()


@given(st.integers(2, 40), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_doubling_every_unit_inside_the_clusters_changes_no_interval(clusters: int, seed: int) -> None:
    sums, counts = _clusters(clusters, 2, seed=seed)
    once = bootstrap(sums, counts, resamples=100)
    twice = bootstrap(2 * sums, 2 * counts, resamples=100)
    np.testing.assert_array_equal(once, twice)


def test_the_bootstrap_covers_the_truth_where_units_of_a_cluster_are_alike() -> None:
    # Five units a cluster that are all right or all wrong: as if they were independent, the interval
    # would be sqrt(5) times too narrow and hold the truth in about 60 of 100 cases.
    generator = np.random.default_rng(0)
    runs, clusters, truth = 200, 80, 0.4
    counts = np.full((clusters, runs), 5.0)
    sums = np.where(generator.random((clusters, runs)) < truth, counts, 0.0)
    low, high = bootstrap(sums, counts, resamples=1000)
    covered = ((low <= truth) & (truth <= high)).mean()
    assert 0.90 <= covered <= 0.98


def test_percentiles_are_numpys_and_leave_out_what_is_undefined() -> None:
    replicates = np.random.default_rng(0).random((2, 101))
    expected = np.quantile(replicates, [0.025, 0.975], axis=1)
    np.testing.assert_allclose(percentile_interval(replicates), expected)
    gaps = np.hstack([np.full((2, 9), np.nan), replicates])
    np.testing.assert_allclose(percentile_interval(gaps), expected)
    assert np.isnan(percentile_interval(np.full((1, 4), np.nan))).all()


def test_memory_stays_bounded_for_many_clusters() -> None:
    sums, counts = _clusters(10_000, 100, seed=0)
    tracemalloc.start()
    bootstrap(sums, counts, resamples=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


def test_one_unit_in_every_cluster_gets_wilsons_interval() -> None:
    sums, counts = np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([[1.0], [1.0], [1.0], [0.0]])
    [found] = intervals(sums, counts, np.array([True]))
    assert found == Interval(*wilson(2, 3), "wilson")


@pytest.mark.parametrize(
    ("sums", "counts", "share"),
    [
        ([1, 0, 1], [1, 1, 2], True),
        ([0, 0, 1], [0.5, 1, 1], True),
        ([0.5, 0, 1], [1, 1, 1], True),
        ([1, 0, 1], [1, 1, 1], False),
    ],
    ids=["two units in a cluster", "half a unit", "half right", "no share"],
)
def test_all_other_values_get_the_bootstrap_interval(
    sums: list[float], counts: list[float], share: bool
) -> None:
    [found] = intervals(np.array([sums], float).T, np.array([counts], float).T, np.array([share]))
    assert found is not None
    assert found.kind == "bootstrap"


def test_one_cluster_has_no_interval() -> None:
    assert intervals(np.array([[3.0], [0.0]]), np.array([[4.0], [0.0]]), np.array([True])) == [None]


def test_where_no_resample_holds_a_unit_there_is_no_interval() -> None:
    counts = np.array([[1.0]] * 2 + [[0.0]] * 10_000)
    sums = counts * np.arange(float(len(counts)))[:, None]
    found = {intervals(sums, counts, np.array([False]), seed=seed, resamples=2)[0] for seed in range(40)}
    assert None in found
    assert len(found) > 1


@pytest.mark.parametrize("value", [0.0, 1 / 3, -0.1, 12345.678])
def test_clusters_that_agree_have_no_interval_whatever_rounding_makes_of_them(value: float) -> None:
    counts = np.arange(1.0, 8)[:, None]
    assert intervals(value * counts, counts, np.array([False])) == [None]


def test_a_share_of_clusters_that_agree_has_wilsons_whatever_rounding_makes_of_it() -> None:
    counts = np.arange(1.0, 8)[:, None]
    [found] = intervals(counts / 3, counts, np.array([True]))
    assert found is not None
    assert found.kind == "wilson"
    assert found[:2] == pytest.approx(wilson(7 / 3, 7))


def test_an_interval_holds_its_value_whatever_rounding_did() -> None:
    assert Interval(0.2, 0.3, "bootstrap").around(30.000000000000004, 100) == (
        20.0,
        30.000000000000004,
        "bootstrap",
    )


def _clusters(clusters: int, width: int, *, seed: int) -> tuple[Floats, Floats]:
    """Whole counts 1 to 4, and whole sums up to them."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(1, 5, (clusters, width)).astype(np.float64)
    return np.floor((counts + 1) * generator.random((clusters, width))), counts
