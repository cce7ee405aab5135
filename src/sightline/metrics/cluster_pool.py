"""Sums of clusters in many cells, pooled as soon as a cluster is complete: memory holds open clusters only.

The statistics of a ratio need the sum and the units of each cluster, but clusters of equally many units can
be pooled (see `statistics.ratio_estimates`). So a cell needs one row per number of units and sign of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.metrics.cluster_ends import OpenClusters
from sightline.metrics.scenarios import ALL_SCENARIOS, SCENARIOS
from sightline.metrics.statistics import Floats, Pooled

Integers = NDArray[np.int64]

Column = NDArray[Any]
"""A column of numbers: integers in cells and clusters (of `ClusterRows`), floats in all others."""

FEWEST_ROWS = 1 << 15
"""The number of rows that are kept before clusters are pooled."""


class ClusterRows(NamedTuple):
    """Amounts of clusters: arrays of shape (rows,).

    A cell is a number of the caller times SCENARIOS plus the number of a scenario.
    """

    cells: Column
    clusters: Column
    sums: Column
    counts: Column


class PooledRows(NamedTuple):
    """Complete clusters by cell, units and sign of their sums: arrays of shape (rows,).

    Attributes:
        clusters: The number of clusters.
    """

    cells: Column
    units: Column
    clusters: Column
    sums: Column
    deviations: Column


Rows = TypeVar("Rows", ClusterRows, PooledRows)

NO_ROWS = PooledRows(np.empty(0, dtype=np.int64), *(np.empty(0) for _ in range(4)))


class CellTable(NamedTuple):
    """The sums and counts of several cells, shape (cells, columns), and the clusters of each column."""

    sums: Floats
    counts: Floats
    pooled: Pooled


class ClusterPool:
    """The amounts of all clusters of a stream."""

    def __init__(self, open_clusters: OpenClusters) -> None:
        self._open_clusters = open_clusters
        self._rows: list[ClusterRows] = []
        self._size, self._limit = 0, FEWEST_ROWS
        self._pooled = NO_ROWS

    def add(self, rows: ClusterRows) -> None:
        """Add amounts."""
        self._rows.append(rows)
        self._size += len(rows.cells)
        if self._size > self._limit:
            self._pool(self._open_clusters.close())
            # Rows of open clusters are read again; waiting for as many others limits how often.
            self._limit = max(FEWEST_ROWS, 2 * self._size)

    def pooled(self) -> PooledRows:
        """End the stream."""
        self._pool([])
        return self._pooled

    def _pool(self, open_clusters: list[int]) -> None:
        if not self._rows:
            return
        rows = _joined(self._rows)
        is_open = np.isin(rows.clusters, open_clusters)
        held, complete = _summed(_chosen(rows, is_open)), _summed(_each_scenario(_chosen(rows, ~is_open)))
        ones, zeros = np.ones(len(complete.cells)), np.zeros(len(complete.cells))
        new = PooledRows(complete.cells, complete.counts, ones, complete.sums, zeros)
        self._pooled = _merged(_joined([self._pooled, new]))
        self._rows, self._size = [held], len(held.cells)


def cell_table(pooled: PooledRows, cells: Integers, scenario: int) -> CellTable:
    """The clusters of some cells in one scenario, in the form that `statistics` takes."""
    order = np.argsort(cells)
    own, scenarios = np.divmod(pooled.cells, SCENARIOS)
    chosen = np.isin(own, cells) & np.isin(scenarios, (ALL_SCENARIOS, scenario))
    _, units, clusters, sums, deviations = _chosen(pooled, chosen)
    places = order[np.searchsorted(cells, own[chosen], sorter=order)]
    classes = np.stack([scenarios[chosen], units, np.sign(sums)], axis=1)
    distinct, columns = np.unique(classes, axis=0, return_inverse=True)

    def gather(amounts: Floats) -> Floats:
        table = np.zeros((len(cells), len(distinct)))
        table[places, columns.ravel()] = amounts
        return table

    return CellTable(gather(sums), gather(units * clusters), Pooled(gather(clusters), gather(deviations)))


def _chosen(rows: Rows, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Rows:
    """Some of the rows: those of a mask, or of positions."""
    return type(rows)(*(column[chosen] for column in rows))


def _joined(parts: Sequence[Rows]) -> Rows:
    return type(parts[0])(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _each_scenario(rows: ClusterRows) -> ClusterRows:
    """The amounts of clusters that differ between scenarios, in each of them; other rows stay as they are."""
    scenarios = rows.cells % SCENARIOS
    differing = np.unique(rows.clusters[scenarios != ALL_SCENARIOS])
    if not len(differing):
        return rows
    copies = np.where((scenarios == ALL_SCENARIOS) & np.isin(rows.clusters, differing), SCENARIOS - 1, 1)
    places = np.repeat(np.arange(len(copies)), copies)
    copied = copies[places] > 1
    found = _chosen(rows, places)
    numbers = np.tile(np.arange(ALL_SCENARIOS + 1, SCENARIOS), np.count_nonzero(copies > 1))
    found.cells[copied] += numbers
    return found


def _summed(rows: ClusterRows) -> ClusterRows:
    if not len(rows.cells):
        return rows
    keys = rows.clusters * (int(rows.cells.max()) + 1) + rows.cells
    order = np.argsort(keys, kind="stable")
    starts = _starts(keys[order])
    first = order[starts]
    sums, counts = (np.add.reduceat(column[order], starts) for column in (rows.sums, rows.counts))
    return ClusterRows(rows.cells[first], rows.clusters[first], sums, counts)


def _merged(rows: PooledRows) -> PooledRows:
    """One row for each cell, number of units and sign.

    The deviations from a common mean are those from each row's mean, plus those of the means.
    """
    if not len(rows.cells):
        return rows
    signs = np.sign(rows.sums)
    order = np.lexsort((signs, rows.units, rows.cells))
    starts = _starts(rows.cells[order], rows.units[order], signs[order])
    cells, units, clusters, sums, deviations = _chosen(rows, order)
    totals, numbers = np.add.reduceat(sums, starts), np.add.reduceat(clusters, starts)
    means = np.repeat(totals / numbers, np.diff(starts, append=len(order)))
    deviations += clusters * (sums / clusters - means) ** 2
    return PooledRows(cells[starts], units[starts], numbers, totals, np.add.reduceat(deviations, starts))


def _starts(*keys: NDArray[np.int64] | Floats) -> NDArray[np.intp]:
    """The positions at which one of several sorted keys changes."""
    changes = np.zeros(len(keys[0]), dtype=np.bool_)
    changes[0] = True
    for key in keys:
        changes[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changes)
