"""Non-inferiority and equivalence of the second of two runs within a margin.

Non-inferior: the 95 % confidence interval of the difference lies above -margin (below +margin where a lower
value is better), a one-sided test at 2.5 %. Equivalent: two one-sided tests at 5 % (Schuirmann 1987), which
is the same as a 90 % confidence interval between -margin and +margin.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from sightline.metric_types import MetricDefinition, difference_range
from sightline.metrics.significance import PairedValues
from sightline.metrics.statistics import Interval, difference_intervals

ONLY_POINTS = "the margin is in percentage points, and this metric is no percentage"
NO_DIRECTION = "neither direction of this metric is better"


class MarginVerdict(Struct, frozen=True):
    """Whether a run is within a margin of another one.

    Attributes:
        non_inferior: Whether the second run is not worse by the margin; None if that cannot be said.
        equivalent: Whether the difference is within the margin; None if that cannot be said.
        low: The lower bound of the 90 % confidence interval of the difference, in points; None without it.
        reason: Why a verdict is None; '' if none is.
    """

    non_inferior: bool | None = None
    equivalent: bool | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def margin_verdict(values: PairedValues, definition: MetricDefinition, margin: float) -> MarginVerdict:
    """Test a difference for non-inferiority and for equivalence.

    Args:
        values: The values of the groups in both runs, 0-1 for percentages.
        margin: The margin in percentage points, above 0.
    """
    if definition.unit == "number":
        return MarginVerdict(reason=ONLY_POINTS)
    wide, narrow = (_interval(values, definition, level) for level in (0.95, 0.9))
    if isinstance(wide, str) or isinstance(narrow, str):
        return MarginVerdict(reason=wide if isinstance(wide, str) else str(narrow))
    low, high = 100 * narrow.low, 100 * narrow.high
    not_worse = {
        "higher": 100 * wide.low > -margin,
        "lower": 100 * wide.high < margin,
        "neither": None,
    }[definition.better]
    reason = NO_DIRECTION if not_worse is None else ""
    return MarginVerdict(not_worse, -margin < low and high < margin, low, high, reason)


def _interval(values: PairedValues, definition: MetricDefinition, level: float) -> Interval | str:
    """The confidence interval of the mean difference, before scaling."""
    low, high = difference_range(definition.range)
    bounds = (None if low is None else low / 100, None if high is None else high / 100)
    sums = np.bincount(values.clusters, values.after - values.before)[None].astype(np.float64)
    counts = np.bincount(values.clusters)[None].astype(np.float64)
    return difference_intervals(sums, counts, [bounds], graded=definition.graded, level=level)[0]
