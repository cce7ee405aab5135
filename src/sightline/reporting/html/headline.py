"""The first part of a page about runs: the leading metrics, and the result beside published values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from sightline.benchmarks.published import paper_of
from sightline.metric_types import MetricValue, PublishedValue
from sightline.reporting.html.plots import (
    PlotCell,
    PlotPoint,
    Scale,
    chance_points,
    metric_plot,
)
from sightline.reporting.html.run_results import (
    NamedResult,
    chance_of,
    human_rows,
    leading,
    meaning,
    metric_scale,
)
from sightline.reporting.notes import published_notes
from sightline.results.published import add_published

MOST_COLUMNS = 3
"""The metrics of the table of published values."""

SHOWN_ROWS = 9
"""The published rows that are shown; others are folded."""


class Stat(Struct, frozen=True):
    """A leading metric of a run with its plot."""

    name: str
    meaning: str
    value: MetricValue
    plot: PlotCell


class ResultRow(Struct, frozen=True):
    """A row of a table of results: a run, humans, a published row, or chance.

    Attributes:
        name: The run or the row of the paper.
    """

    name: str
    source: str
    plot: PlotCell
    values: tuple[MetricValue | None, ...] = ()
    figures: tuple[PublishedValue | None, ...] = ()
    is_run: bool = False
    comparable: bool = True


class ResultTable(Struct, frozen=True):
    """Runs beside the rows of the paper, the best first; `more` are rows that are folded."""

    metrics: tuple[str, ...]
    scale: Scale
    rows: tuple[ResultRow, ...]
    more: tuple[ResultRow, ...]
    notes: tuple[str, ...]
    kinds: tuple[str, ...]


def stats(run: NamedResult) -> list[Stat]:
    """The leading metrics of a run."""
    benchmark = run.result.benchmark
    found = [value for name in leading([run]) if (value := run.value(name)) is not None]
    return [
        Stat(
            one.metric,
            meaning([run], one.metric),
            one,
            metric_plot(
                one,
                metric_scale([run], one.metric, [one]),
                humans=human_rows(benchmark),
                chance=chance_of(benchmark, one.metric),
            ),
        )
        for one in found
    ]


def result_table(runs: Sequence[NamedResult]) -> ResultTable:
    """The runs of one benchmark and setting beside the rows of its paper."""
    metrics = leading(runs)[:MOST_COLUMNS]
    scale = metric_scale(runs, metrics[0], [v for run in runs if (v := run.value(metrics[0])) is not None])
    own = [_run_row(run, metrics, scale) for run in runs]
    published, noted = _published_rows(runs[0], metrics, scale)
    chance = chance_of(runs[0].result.benchmark, metrics[0])
    ordered = sorted([*own, *published], key=_order)
    shown = _of_main_table(published)[:SHOWN_ROWS]
    first = [row for row in ordered if row.is_run or row in shown]
    guess = [ResultRow("Chance", "", PlotCell(scale, tuple(chance_points(chance))))] if chance else []
    kinds = [point.kind for row in (*ordered, *guess) for point in row.plot.points]
    return ResultTable(
        tuple(metrics),
        scale,
        (*first, *guess),
        tuple(row for row in ordered if row not in first),
        tuple(noted),
        tuple(dict.fromkeys(kinds)),
    )


def _of_main_table(rows: Sequence[ResultRow]) -> list[ResultRow]:
    """The rows of the table of the paper that prints most of them."""
    tables = Counter(row.source for row in rows)
    return [row for row in rows if row.source == max(tables, key=tables.__getitem__)]


def _order(row: ResultRow) -> float:
    point = next(iter(row.plot.points), None)
    return -point.value if point else float("inf")


def _run_row(run: NamedResult, metrics: Sequence[str], scale: Scale) -> ResultRow:
    values = tuple(run.value(name) for name in metrics)
    points = [
        PlotPoint("measured", one.value, one.low, one.high)
        for one in values[:1]
        if one and one.value is not None
    ]
    n = f"{values[0].n:,.10g}" if values[0] else "0"
    return ResultRow(run.name, f"n {n}", PlotCell(scale, tuple(points)), values, is_run=True)


def _published_rows(
    run: NamedResult, metrics: Sequence[str], scale: Scale
) -> tuple[list[ResultRow], list[str]]:
    """The rows of the paper that print the first metric for this setting, the best first; notes on them."""
    benchmark = run.result.benchmark
    paper = paper_of(benchmark)
    if paper is None:
        return [], []
    compared = NamedResult(run.name, add_published(run.result, *paper.row_names))
    figures: dict[str, list[PublishedValue | None]] = {}
    for column, name in enumerate(metrics):
        metric = compared.value(name)
        for figure in reversed((metric.published if metric else None) or []):
            figures.setdefault(figure.row, [None] * len(metrics))[column] = figure
    rows = [
        ResultRow(
            row,
            f"published, {first.table}",
            PlotCell(scale, (PlotPoint("human" if row in paper.human_rows else "published", first.value),)),
            figures=tuple(cells),
            comparable=first.comparable,
        )
        for row, cells in figures.items()
        if (first := cells[0]) is not None
    ]
    shown = [
        (name, cell) for cells in figures.values() for name, cell in zip(metrics, cells, strict=True) if cell
    ]
    return sorted(rows, key=_order), published_notes(shown)
