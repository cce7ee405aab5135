"""Pooled clusters give the numbers of the statistics over single clusters, whatever the order of groups."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.metrics import tally
from sightline.metrics.statistics import (
    Floats,
    Interval,
    difference_intervals,
    ratio_estimates,
    ratio_intervals,
)
from sightline.metrics.tally import (
    ALL_SCENARIOS,
    AS_JUDGED,
    DECIDED,
    IF_RIGHT,
    SCENARIOS,
    ClusterPool,
    ClusterRows,
    OpenClusters,
    cell_table,
    count_stretches,
)
from sightline.types import Range

CELLS = 3
Amount = tuple[str, int, float, int]
"""The cluster, the cell, the sum and the count of a term."""


def amounts(sums: st.SearchStrategy[float]) -> st.SearchStrategy[list[Amount]]:
    clusters, cells = st.text("abcdefghij", min_size=1, max_size=2), st.integers(0, CELLS - 1)
    amount = st.one_of(st.tuples(sums, st.integers(1, 3)), st.just((0.0, 0)))
    one = st.builds(lambda cluster, cell, both: (cluster, cell, *both), clusters, cells, amount)
    return st.lists(one, min_size=1, max_size=60)


SHARES = amounts(st.integers(0, 1).map(float))
CHANGES = amounts(st.integers(-1, 1).map(float))
GRADED = amounts(st.floats(-1, 1, width=16))


def integers(numbers: list[int]) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


def pooled_table(found: list[Amount], chunk: int) -> tally.CellTable:
    """The amounts, added in chunks of neighbours and pooled at every chunk."""
    open_clusters = OpenClusters(count_stretches(cluster for cluster, *_ in found))
    pool = ClusterPool(open_clusters)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "FEWEST_ROWS", 0)
        pool._limit = 0
        for start in range(0, len(found), chunk):
            own = found[start : start + chunk]
            pool.add(
                ClusterRows(
                    integers([SCENARIOS * cell for _, cell, _, _ in own]),
                    integers([open_clusters.number(cluster) for cluster, *_ in own]),
                    np.array([amount for _, _, amount, _ in own]),
                    np.array([count for *_, count in own], dtype=np.float64),
                )
            )
    return cell_table(pool.pooled(), np.arange(CELLS), AS_JUDGED)


def single_clusters(found: list[Amount]) -> tuple[Floats, Floats]:
    """The sums and counts of each cluster in each cell."""
    numbers: defaultdict[str, int] = defaultdict(lambda: len(numbers))
    for cluster, *_ in found:
        numbers[cluster]
    sums, counts = np.zeros((CELLS, len(numbers))), np.zeros((CELLS, len(numbers)))
    for cluster, cell, amount, count in found:
        sums[cell, numbers[cluster]] += amount
        counts[cell, numbers[cluster]] += count
    return sums, counts


def same(one: list[Interval | str], other: list[Interval | str]) -> None:
    for first, second in zip(one, other, strict=True):
        if isinstance(first, str) or isinstance(second, str):
            assert first == second
        else:
            assert first.method == second.method
            assert first[:2] == pytest.approx(second[:2], rel=1e-9, abs=1e-9)


@given(st.one_of(SHARES, CHANGES, GRADED), st.integers(1, 7))
@settings(deadline=None)
def test_pooled_clusters_have_the_estimates_of_single_clusters(found: list[Amount], chunk: int) -> None:
    table, (sums, counts) = pooled_table(found, chunk), single_clusters(found)
    one = ratio_estimates(table.sums, table.counts, table.pooled)
    other = ratio_estimates(sums, counts)
    for column, expected in zip(one, other, strict=True):
        np.testing.assert_allclose(column, expected, rtol=1e-12, atol=1e-14)


@given(SHARES, st.integers(1, 7))
@settings(deadline=None)
def test_the_sums_of_shares_are_exact(found: list[Amount], chunk: int) -> None:
    table, (sums, counts) = pooled_table(found, chunk), single_clusters(found)
    assert table.sums.sum(axis=1).tolist() == sums.sum(axis=1).tolist()
    assert table.counts.sum(axis=1).tolist() == counts.sum(axis=1).tolist()


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1), (None, None)])
@given(st.one_of(SHARES, CHANGES, GRADED), st.booleans())
@settings(deadline=None)
def test_pooled_clusters_have_the_intervals_of_single_clusters(
    bounds: Range, found: list[Amount], graded: bool
) -> None:
    table, (sums, counts) = pooled_table(found, 5), single_clusters(found)
    for find in (ratio_intervals, difference_intervals):
        pooled = find(table.sums, table.counts, [bounds] * CELLS, pooled=table.pooled, graded=graded)
        same(pooled, find(sums, counts, [bounds] * CELLS, graded=graded))


def test_squares_of_large_graded_sums_do_not_cancel() -> None:
    """The variance of values near 1e9 that differ by 1: the sum of squares minus n squared means has none of
    its digits."""
    found: list[Amount] = [(str(n), 0, 1e9 + n % 3, 1) for n in range(3000)]
    table, (sums, counts) = pooled_table(found, 100), single_clusters(found)
    one, other = ratio_estimates(table.sums, table.counts, table.pooled), ratio_estimates(sums, counts)
    assert one.variances[0] == pytest.approx(other.variances[0], rel=1e-7)


def test_a_cluster_with_an_undecided_group_has_the_amounts_of_its_other_groups_in_every_scenario() -> None:
    pool = ClusterPool(OpenClusters(None))
    scenarios = [ALL_SCENARIOS, AS_JUDGED, IF_RIGHT, ALL_SCENARIOS]
    pool.add(ClusterRows(integers(scenarios), integers([0, 0, 0, 1]), np.array([1.0, 0, 1, 1]), np.ones(4)))
    pooled = pool.pooled()

    def clusters(scenario: int) -> list[tuple[float, float]]:
        table = cell_table(pooled, integers([0]), scenario)
        return sorted(zip(table.sums[0].tolist(), table.counts[0].tolist(), strict=True))

    assert clusters(AS_JUDGED) == [(1, 1), (1, 2)]
    assert clusters(DECIDED) == [(1, 1), (1, 1)]
    assert clusters(IF_RIGHT) == [(1, 1), (2, 2)]


def test_rows_of_complete_clusters_are_pooled_and_only_open_ones_are_kept() -> None:
    names = [f"{n}" for n in range(20_000)]
    open_clusters = OpenClusters(count_stretches([*names, names[0]]))
    pool = ClusterPool(open_clusters)
    for name in [*names, names[0]]:
        number = open_clusters.number(name)
        pool.add(ClusterRows(integers([0] * 4), integers([number] * 4), np.ones(4), np.ones(4)))
        assert pool._size <= 2 * tally.FEWEST_ROWS
    table = cell_table(pool.pooled(), integers([0]), AS_JUDGED)
    assert sorted(zip(table.counts[0], table.pooled.clusters[0], strict=True)) == [(8, 1), (79_996, 19_999)]  # type: ignore[index]
