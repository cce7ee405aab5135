"""MetricValues with confidence intervals, and the mean over clustered values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.metric_types import MetricValue, Range
from sightline.metrics.statistics import Floats, Interval, ratio_intervals

Clusters = Sequence[Hashable] | NDArray[np.integer[Any]]
"""The cluster of each of some values: its name, or its number."""


def with_interval(value: MetricValue, interval: Interval | str, scale: float = 1.0) -> MetricValue:
    """Add a confidence interval to a value, or the reason why there is none.

    Returns:
        The value with its bounds or with the reason; unchanged if the value is None.
    """
    if value.value is None:
        return value
    if isinstance(interval, str):
        return replace(value, reason=interval)
    around = interval.around(value.value, scale)
    return replace(value, low=around.low, high=around.high, interval=around.method)


def clustered_mean(
    name: str,
    values: Sequence[tuple[Hashable, float]],
    *,
    reason: str,
    bounds: Range = (0, 1),
    graded: bool = False,
) -> MetricValue:
    """The mean of values in percent, with its 95 % CI (see `statistics.ratio_intervals`).

    Args:
        bounds: The smallest and the largest possible value.

    Returns:
        100 times the mean over all values; None with the reason if there are no values.
    """
    clusters, numbers = [cluster for cluster, _ in values], np.array([value for _, value in values], float)
    return mean_by_cluster(name, clusters, numbers, reason=reason, bounds=bounds, graded=graded)


def mean_by_cluster(
    name: str,
    clusters: Clusters,
    values: Floats,
    *,
    reason: str,
    bounds: Range = (0, 1),
    graded: bool = False,
) -> MetricValue:
    """As `clustered_mean`, for values in an array.

    Args:
        values: The values, shape (n,).
        bounds: The smallest and the largest possible value.

    Returns:
        100 times the mean over all values; None with the reason if there are no values.
    """
    if not len(values):
        return MetricValue(name, "all", None, 0, 0, reason=reason)
    positions = cluster_positions(clusters)
    sums = np.bincount(positions, values)[None].astype(np.float64)
    counts = np.bincount(positions)[None].astype(np.float64)
    mean = MetricValue(name, "all", 100 * float(sums.sum() / counts.sum()), len(values), counts.shape[1])
    (interval,) = ratio_intervals(sums, counts, [bounds], graded=graded)
    return with_interval(mean, interval, 100)


def cluster_positions(clusters: Clusters) -> NDArray[np.intp]:
    """The position of the cluster of each value among the clusters, in the order of their first values.

    Returns:
        Positions from 0, shape (n,).

    >>> cluster_positions(["b", "a", "b"]).tolist(), cluster_positions(np.array([7, 5, 7])).tolist()
    ([0, 1, 0], [0, 1, 0])
    """
    if not isinstance(clusters, np.ndarray):
        names: dict[Hashable, int] = {}
        return np.array([names.setdefault(name, len(names)) for name in clusters], dtype=np.intp)
    _, first, inverse = np.unique(clusters, return_index=True, return_inverse=True)
    positions = np.empty(len(first), dtype=np.intp)
    positions[np.argsort(first)] = np.arange(len(first))
    return positions[inverse]
