"""A section with metrics beside those of other answers: MM-R3's Sampling against All."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from msgspec import Struct

from sightline.benchmarks.report_sections import Differences
from sightline.metric_types import MetricValue
from sightline.reporting.html.plots import PERCENT_SCALE, PlotCell, PlotPoint, Scale, measured
from sightline.reporting.html.run_results import NamedResult
from sightline.reporting.notes import null_notes

SIGNED_SCALE = Scale(-100.0, 100.0, (-100.0, -50.0, 0.0, 50.0, 100.0))
"""The scale of mean cosine similarities, times 100, if one is negative."""


class DifferenceRow(Struct, frozen=True):
    """A metric of a run beside that of other answers; `there` is the value minus the difference."""

    name: str
    run: str
    here: MetricValue
    there: float
    difference: MetricValue
    plot: PlotCell


class DifferencesSection(Struct, frozen=True):
    """Metrics beside those of other answers; without rows, the notes say why."""

    kind: ClassVar[str] = "differences"
    title: str
    here: str
    there: str
    rows: tuple[DifferenceRow, ...]
    scale: Scale
    several_runs: bool
    notes: tuple[str, ...]


def differences_section(section: Differences, runs: Sequence[NamedResult]) -> DifferencesSection | None:
    """Draw metrics beside those of other answers.

    Returns:
        The section; None if no run measures a difference.
    """
    listed = [
        (run, here, found)
        for name, difference in section.metrics
        for run in runs
        if (here := run.value(name)) is not None and (found := run.value(difference)) is not None
    ]
    if not listed:
        return None
    values = [
        (run, here, found)
        for run, here, found in listed
        if here.value is not None and found.value is not None
    ]
    bounds = [here.low or here.value or 0.0 for _, here, _ in values]
    bounds += [(here.value or 0.0) - (found.value or 0.0) for _, here, found in values]
    scale = SIGNED_SCALE if min(bounds, default=0.0) < 0 else PERCENT_SCALE
    notes = [f"{section.there}: the value of the run minus the difference"] if values else []
    return DifferencesSection(
        section.title,
        section.here,
        section.there,
        tuple(_rows(values, section.there, scale)),
        scale,
        len(runs) > 1,
        (*notes, *null_notes([found for _, _, found in listed])),
    )


def _rows(
    values: Sequence[tuple[NamedResult, MetricValue, MetricValue]], other: str, scale: Scale
) -> Iterator[DifferenceRow]:
    for run, here, found in values:
        there = (here.value or 0.0) - (found.value or 0.0)
        points = (PlotPoint("published", there, name=other), *measured(here))
        yield DifferenceRow(here.metric, run.name, here, there, found, PlotCell(scale, points))
