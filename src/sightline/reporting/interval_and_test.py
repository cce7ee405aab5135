"""Rows of a comparison whose confidence interval and p-value disagree about 0, and why they may."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.errors import some_of
from sightline.metric_types import MetricValue
from sightline.metrics.significance import LEVEL, Significance
from sightline.reporting.notes import place
from sightline.results.comparison import MetricSubset

ONLY_P = (
    "significant, although the 95 % CI of the difference contains 0. p tests whether both runs can be"
    " exchanged within a cluster: too many clusters changed in one direction for that. The CI is that of the"
    " mean difference: it also allows for a rare, large change in the other direction, which these groups do"
    " not show"
)
ONLY_CORRECTED = (
    "not significant, although the 95 % CI of the difference does not contain 0: p is corrected for the"
    " number of rows of the table, the CI is not"
)
ONLY_INTERVAL = (
    "not significant, although the 95 % CI of the difference does not contain 0: the CI is an approximation"
    " from the variance between clusters, p is that of a permutation test. p decides"
)

_MOST = 4


def disagreements(
    rows: Sequence[MetricValue], significances: Mapping[MetricSubset, Significance]
) -> list[str]:
    """Explain the rows whose interval and p-value disagree about 0."""
    named: dict[str, list[str]] = {}
    for row in rows:
        test = significances.get((row.metric, row.subset))
        reason = test and _reason(row, test)
        if reason:
            named.setdefault(reason, []).append(place(row))
    return [f"{some_of(places, _MOST)}: {reason}" for reason, places in named.items()]


def _reason(row: MetricValue, test: Significance) -> str | None:
    """Why interval and p-value disagree; None if they agree or one is missing."""
    if row.low is None or row.high is None or test.p is None:
        return None
    holds_zero = row.low <= 0 <= row.high
    if holds_zero == (not test.significant):
        return None
    if holds_zero:
        return ONLY_P
    return ONLY_CORRECTED if test.p <= LEVEL else ONLY_INTERVAL
