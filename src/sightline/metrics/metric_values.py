"""Where a number meets its interval: MetricValues of means over clusters, and of anything with bounds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from msgspec.structs import replace

from sightline.metrics.statistics import Interval, intervals
from sightline.types import MetricValue


def with_interval(value: MetricValue, interval: Interval | None, scale: float = 1.0) -> MetricValue:
    """The same value within this interval times `scale`; without bounds where either is not known."""
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
    judge: str | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> MetricValue:
    """The mean in percent of values 0-1, each with its cluster, and its 95 % interval over whole clusters.

    `shares` is whether each is 0 or 1 (`statistics.intervals`); `reason` is told where there is no value.
    """
    place = {cluster: n for n, cluster in enumerate(dict.fromkeys(cluster for cluster, _ in values))}
    sums, counts = np.zeros((len(place), 1)), np.zeros((len(place), 1))
    for cluster, value in values:
        sums[place[cluster], 0] += value
        counts[place[cluster], 0] += 1
    mean = 100 * float(sums.sum() / counts.sum()) if values else None
    found = MetricValue(
        name,
        "all",
        mean,
        len(values),
        len(place),
        reason=None if values else reason,
        judge=judge,
    )
    return with_interval(
        found, intervals(sums, counts, np.array([shares]), seed=seed, resamples=resamples)[0], 100
    )
