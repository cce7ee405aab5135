"""The text of sweep.md: the results of a sweep as tables, then its points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sightline.escaping import for_markdown
from sightline.reporting.markdown import markdown
from sightline.reporting.pivot import pivot
from sightline.reporting.report_table import Column, ReportTable
from sightline.reporting.varied_options import ResultPoint


class PointLine(NamedTuple):
    """A point of a sweep: its name, the name of its results folder, and how it ended."""

    point: str
    folder: str | None
    state: str


def sweep_markdown(task: str, results: Sequence[ResultPoint], points: Sequence[PointLine]) -> str:
    """The text of sweep.md."""
    tables = [*(pivot(results) if results else []), points_table(points)]
    return f"# {for_markdown(task)}\n\n{markdown(tables)}\n"


def points_table(points: Sequence[PointLine]) -> ReportTable:
    """The points of a sweep as a table."""
    columns = tuple(Column("text", name, name) for name in PointLine._fields)
    return ReportTable("Points", columns, tuple(points))
