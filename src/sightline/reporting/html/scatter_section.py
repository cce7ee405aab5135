"""Sections that are scatter plots: one metric against another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from sightline.benchmarks.published import paper_of
from sightline.benchmarks.report_sections import Against
from sightline.reporting.html.charts import Scatter, Value2D, scatter
from sightline.reporting.html.run_results import NamedResult, metric_scale
from sightline.results.published import add_published


class ScatterSection(Struct, frozen=True):
    """A scatter plot with a table of its points."""

    kind: ClassVar[str] = "scatter"
    title: str
    chart: Scatter
    names: tuple[str, str]
    points: tuple[Value2D, ...]


def against(section: Against, runs: Sequence[NamedResult]) -> ScatterSection | None:
    """One metric against another, with the rows of the paper that print both.

    Returns:
        The section; None without numbers.
    """
    points = [
        Value2D(run.name, x.value, y.value, True)
        for run in runs
        if (x := run.value(section.x)) and (y := run.value(section.y))
        if x.value is not None and y.value is not None
    ]
    if not points:
        return None
    points += _published_points(section, runs[0])
    if len(points) < 2:
        return None
    values = [value for run in runs if (value := run.value(section.x))]
    x_scale = metric_scale(runs, section.x, values)
    y_scale = metric_scale(runs, section.y, [value for run in runs if (value := run.value(section.y))])
    names = (section.x, section.y)
    chart = scatter(points, x_scale, y_scale, names)
    return ScatterSection(f"{section.y} against {section.x}", chart, names, tuple(points))


def _published_points(section: Against, run: NamedResult) -> list[Value2D]:
    """The rows of the paper that print both metrics."""
    paper = paper_of(run.result.benchmark)
    if paper is None:
        return []
    compared = NamedResult(run.name, add_published(run.result, *paper.row_names))
    x, y = (
        {figure.row: figure.value for figure in (value.published if value else None) or []}
        for value in (compared.value(section.x), compared.value(section.y))
    )
    return [Value2D(row, x[row], y[row], False) for row in x if row in y]
