"""MetricValues with confidence intervals, and the mean over clustered values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace

from sightline.metric_types import MetricValue, Range
from sightline.metrics.statistics import Interval, ratio_intervals


def with_interval(value: MetricValue, interval: Interval | str, scale: float = 1.0) -> MetricValue:
    """Add a confidence interval to a value, or the reason why there is none.

    Args:
        value: The value, in its unit.
        interval: The 95 % CI before scaling, or the reason.
        scale: The factor from the scale of the interval to the unit of the value.

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
        name: The name of the metric.
        values: Pairs of a cluster and a value.
        reason: The reason that is given if there are no values.
        bounds: The smallest and the largest possible value.
        graded: Whether values are no shares of right units.

    Returns:
        100 times the mean over all values; None with the reason if there are no values.
    """
    position = {cluster: n for n, cluster in enumerate(dict.fromkeys(cluster for cluster, _ in values))}
    sums, counts = np.zeros((1, len(position))), np.zeros((1, len(position)))
    for cluster, value in values:
        sums[0, position[cluster]] += value
        counts[0, position[cluster]] += 1
    if not values:
        return MetricValue(name, "all", None, 0, 0, reason=reason)
    mean = MetricValue(name, "all", 100 * float(sums.sum() / counts.sum()), len(values), len(position))
    (interval,) = ratio_intervals(sums, counts, [bounds], graded=graded)
    return with_interval(mean, interval, 100)
