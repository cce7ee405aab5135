"""Tests of the differences of a comparison: significance, and non-inferiority and equivalence in a margin."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sightline.metric_types import MetricValue
from sightline.metrics.margin import MarginVerdict, margin_verdict
from sightline.metrics.significance import Significance, significance
from sightline.metrics.tally import SCALES
from sightline.results.comparison import Comparison, MetricSubset


def significance_of(comparison: Comparison, rows: Sequence[MetricValue]) -> dict[MetricSubset, Significance]:
    """Test the differences of a comparison for significance, corrected for testing several of them."""
    defined = [row for row in rows if row.value is not None]
    tests = significance([comparison.groups[row.metric][row.subset] for row in defined])
    return {
        (row.metric, row.subset): test
        if test.detectable is None
        else replace(test, detectable=SCALES[row.unit] * test.detectable)
        for row, test in zip(defined, tests, strict=True)
    }


def margin_verdicts(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float
) -> dict[MetricSubset, MarginVerdict]:
    """Test the differences of a comparison for non-inferiority and equivalence.

    Args:
        margin: The margin in percentage points, above 0.
    """
    return {
        (row.metric, row.subset): margin_verdict(
            comparison.groups[row.metric][row.subset], comparison.definitions[row.metric], margin
        )
        for row in rows
        if row.value is not None
    }
