"""Sections that are forest plots: a metric by label, several metrics, by judge, corrected by humans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.report_sections import ByJudge, ByLabel, Together
from sightline.metric_types import CorrectedValue, MetricValue, PublishedValue
from sightline.metrics.agreement_definitions import DEFINITIONS as AGREEMENTS
from sightline.reporting.corrected import BIAS, CORRECTED
from sightline.reporting.html.charts import Radar, radar
from sightline.reporting.html.figures import interval, number
from sightline.reporting.html.plots import PlotCell, Scale, metric_plot
from sightline.reporting.html.run_results import (
    NamedResult,
    chance_of,
    human_rows,
    meaning,
    metric_scale,
    number_of,
    words_of,
)
from sightline.reporting.notes import label_of, null_notes, published_notes

MOST_SPOKES = 12
"""The most labels of a radar chart."""


class MetricRow(Struct, frozen=True):
    """A row of a forest plot: a value with its plot, and the published figures beside it."""

    name: str
    run: str
    value: MetricValue
    plot: PlotCell
    published: tuple[PublishedValue | None, ...] = ()


class Forest(Struct, frozen=True):
    """Values of metrics below each other on one scale; `head` is the heading of the first column."""

    kind: ClassVar[str] = "forest"
    title: str
    subtitle: str
    head: str
    rows: tuple[MetricRow, ...]
    scale: Scale
    several_runs: bool
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chart: Radar | None = None

    @property
    def kinds(self) -> set[str]:
        """The signs of the plots."""
        return {point.kind for row in self.rows for point in row.plot.points}


def by_label(section: ByLabel, runs: Sequence[NamedResult]) -> Forest | None:
    """A metric under each value of a label.

    Returns:
        The section; None without numbers.
    """
    found = [(run, run.by_label(section.metric, section.label)) for run in runs]
    names = list(dict.fromkeys(name for _, values in found for name in values))
    cells = [(name, run.name, values[name]) for name in names for run, values in found if name in values]
    total = [("All", run.name, value) for run in runs if (value := run.value(section.metric)) is not None]
    if len(names) < 2:
        return None
    chart = None
    if section.radar and 3 <= len(names) <= MOST_SPOKES:
        scale = metric_scale(runs, section.metric, [value for _, _, value in cells])
        lines = [(run.name, [number_of(values.get(name)) for name in names]) for run, values in found]
        chart = radar(names, lines, scale)
    words = words_of(section.label)
    return _forest(f"{section.metric} by {words}", words, [*cells, *total], runs, chart)


def together(section: Together, runs: Sequence[NamedResult]) -> Forest | None:
    """Several metrics over all samples.

    Returns:
        The section; None without numbers.
    """
    cells = [
        (name, run.name, value)
        for name in section.metrics
        for run in runs
        if (value := run.value(name)) is not None
    ]
    if not cells:
        return None
    made = _forest(section.title, "metric", cells, runs)
    if all(value.value is None for _, _, value in cells):
        return replace(made, rows=())  # The notes say why there is no value.
    return made


def by_judge(section: ByJudge, runs: Sequence[NamedResult]) -> Forest | None:
    """The metric by each judge; the agreement of the judges is a note.

    Returns:
        The section; None without numbers.
    """
    cells = [
        (judge, run.name, value)
        for run in runs
        for judge, value in run.by_label(section.metric, "judge").items()
    ]
    if not cells:
        return None
    agreement = [
        f"{run.name}: {one.metric} {label_of(one)[1]}: {number(one.value, one.unit)} (n {one.n:,.10g})"
        for run in runs
        for one in run.result.metrics
        if one.metric in AGREEMENTS and one.value is not None
    ]
    made = _forest(f"{section.metric} by judge", "judge", cells, runs)
    return replace(made, notes=tuple(agreement))


def corrected(metric: str, runs: Sequence[NamedResult]) -> Forest:
    """A metric by judge, humans and both."""
    found = [(run, one) for run in runs for one in run.result.corrected if one.metric == metric]
    cells = [
        (name, run.name, value)
        for run, one in found
        for name, value in (
            (one.judge, one.judged),
            (f"{one.humans}, {one.labelled:,} clusters", one.human),
            (f"{one.judge}, corrected", one.corrected),
        )
    ]
    made = _forest(f"{metric} corrected by humans", "judge", cells, runs)
    biases = [
        f"{run.name}: bias of {one.judge} {number(one.bias.value, one.bias.unit)}"
        f" {interval(one.bias.low, one.bias.high, one.bias.unit, one.bias.interval)}{_narrowed(one)}"
        for run, one in found
        if one.bias.value is not None
    ]
    return replace(made, notes=(CORRECTED, BIAS, *biases, *made.notes))


def _narrowed(corrected: CorrectedValue) -> str:
    """What the judge adds to the humans, and what more labels would."""
    if corrected.narrowed is None:
        return ""
    enough = f"{corrected.needed:,} more labelled clusters" if corrected.needed else "not even all labels"
    percent = number(corrected.narrowed)
    return (
        f"; the corrected interval is {percent} % narrower than that of the humans; {enough} would halve it"
    )


def _forest(
    title: str,
    head: str,
    cells: Sequence[tuple[str, str, MetricValue]],
    runs: Sequence[NamedResult],
    chart: Radar | None = None,
) -> Forest:
    values = [value for _, _, value in cells]
    benchmark, humans = runs[0].result.benchmark, human_rows(runs[0].result.benchmark)
    scale = metric_scale(runs, values[0].metric, values)
    columns = list(dict.fromkeys(one.row for value in values for one in value.published or ()))
    rows = tuple(
        MetricRow(
            name,
            run,
            value,
            metric_plot(value, scale, humans=humans, chance=chance_of(benchmark, value.metric)),
            tuple(_figure(value, row) for row in columns),
        )
        for name, run, value in cells
    )
    shown = [(name, one) for name, _, value in cells for one in value.published or ()]
    metrics = dict.fromkeys(value.metric for value in values)
    subtitle = meaning(runs, values[0].metric) if len(metrics) == 1 else ""
    notes = (*published_notes(shown), *null_notes(values))
    return Forest(title, subtitle, head, rows, scale, len(runs) > 1, tuple(columns), notes, chart)


def _figure(value: MetricValue, row: str) -> PublishedValue | None:
    return next((one for one in value.published or () if one.row == row), None)
