"""The chart of a comparison: a forest plot of its differences."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.errors import UserError
from sightline.metric_types import MetricValue
from sightline.reporting.charts.chart_values import Chart, ChartValue
from sightline.reporting.varied_options import short_names
from sightline.results.comparison import Comparison
from sightline.results.run_names import are_named


def comparison_chart(
    comparison: Comparison, rows: Sequence[MetricValue], margin: float | None = None
) -> Chart:
    """The differences of a table, with the margin of equivalence.

    Args:
        margin: The margin in percentage points; None without one.
    """
    labelled = any(row.subset != "all" for row in rows)
    values = tuple(
        ChartValue(f"difference of {row.metric}", row.subset.partition("=")[2] or "all", "", row)
        if labelled
        else ChartValue("difference", row.metric, "", row)
        for row in rows
        if row.value is not None
    )
    if not values:
        raise UserError("nothing to plot: no difference of the table has a value")
    base, other = comparison.sides
    return Chart(
        f"{comparison.task}: {_named(other.runs, other.model)} minus {_named(base.runs, base.model)}",
        values,
        zero=True,
        margin=margin,
    )


def _named(runs: Sequence[str], model: str) -> str:
    """One side: its names; of runs without a name also the model."""
    if are_named(runs):
        return ", ".join(runs)
    return f"{', '.join(runs)} ({short_names([model])[model]})"
