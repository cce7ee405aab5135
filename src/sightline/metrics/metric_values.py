"""MetricValues with confidence intervals, and the mean over clustered values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace

from sightline.metric_types import MetricValue
from sightline.metrics.statistics import Interval, intervals


def with_interval(value: MetricValue, interval: Interval | None, scale: float = 1.0) -> MetricValue:
    """Add a confidence interval to a value.

    Args:
        value: The value, in its unit.
        interval: The 95 % CI before scaling; None if there is none.
        scale: The factor from the scale of the interval to the unit of the value.

    Returns:
        The value with its bounds; unchanged if the value or the interval is None.
    """
    if interval is None or value.value is None:
        return value
    around = interval.around(value.value, scale)
    return replace(value, low=around.low, high=around.high, interval=around.kind)


def clustered_mean(
    name: str,
    values: Sequence[tuple[Hashable, float]],
    *,
    shares: bool,
    reason: str,
    seed: int = 0,
    resamples: int = 2000,
) -> MetricValue:
    """The mean of values in percent, with a 95 % CI that resamples whole clusters.

    Args:
        name: The name of the metric.
        values: Pairs of a cluster and a value, 0-1.
        shares: Whether every value is 0 or 1 (see `statistics.intervals`).
        reason: The reason that is given if there are no values.
        seed: The seed of the bootstrap.
        resamples: The number of resamples.

    Returns:
        The mean over all values, 0-100; None with the reason if there are no values.
    """
    position = {cluster: n for n, cluster in enumerate(dict.fromkeys(cluster for cluster, _ in values))}
    sums, counts = np.zeros((len(position), 1)), np.zeros((len(position), 1))
    for cluster, value in values:
        sums[position[cluster], 0] += value
        counts[position[cluster], 0] += 1
    mean = 100 * float(sums.sum() / counts.sum()) if values else None
    value_of_all = MetricValue(
        name, "all", mean, len(values), len(position), reason=None if values else reason
    )
    (interval,) = intervals(sums, counts, np.array([shares]), seed=seed, resamples=resamples)
    return with_interval(value_of_all, interval, 100)
