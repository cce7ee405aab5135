"""The table of non-inferiority and equivalence within a margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.metric_types import MetricValue
from sightline.metrics.margin import MarginVerdict
from sightline.reporting.notes import place
from sightline.reporting.report_table import Column, Field, ReportTable, Value, build_table
from sightline.results.comparison import Comparison, MetricSubset

RULE = (
    "non-inferior: the 95 % CI of the difference lies above -{0:g} points (below +{0:g} where lower is"
    " better), a one-sided test at 2.5 %",
    "equivalent: two one-sided tests at 5 %, which is a 90 % CI between -{0:g} and +{0:g} points",
    "each row has its own tests, without a multiple-comparison correction: no correction is needed to claim"
    ' all rows together, but a single "yes" among many rows needs new data',
    "choose the margin before you look at the results",
)


def margin_table(
    comparison: Comparison,
    rows: Sequence[MetricValue],
    verdicts: Mapping[MetricSubset, MarginVerdict],
    margin: float,
) -> ReportTable:
    """A table of the verdicts within a margin, with the rule.

    Args:
        margin: The margin in percentage points.
    """

    def verdict(row: MetricValue) -> MarginVerdict:
        return verdicts.get((row.metric, row.subset), MarginVerdict(reason=row.reason or ""))

    def ninety(row: MetricValue) -> Value:
        return Value(row.value, verdict(row).low, verdict(row).high, unit=row.unit, interval=row.interval)

    fields: list[Field[MetricValue]] = [
        (Column("text", "metric", "metric"), lambda row: row.metric),
        (Column("text", "subset", "subset"), lambda row: row.subset),
        (Column("value", "difference\n90 %", "difference_90"), ninety),
        (Column("text", "better", "better"), lambda row: comparison.definitions[row.metric].better),
        (Column("text", "non-inferior", "non_inferior"), lambda row: _word(verdict(row).non_inferior)),
        (Column("text", "equivalent", "equivalent"), lambda row: _word(verdict(row).equivalent)),
    ]
    reasons = [f"{place(row)}: {verdict(row).reason}" for row in rows if verdict(row).reason]
    notes = [*(line.format(margin) for line in RULE), *reasons]
    return build_table(f"{comparison.task}, within a margin of {margin:g} points", fields, rows, notes)


def _word(verdict: bool | None) -> str:
    return "unknown" if verdict is None else "yes" if verdict else "no"
