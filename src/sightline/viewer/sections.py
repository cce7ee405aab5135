"""The sections that a benchmark declares (`benchmarks/base.py`), with their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import (
    Against,
    ByJudge,
    ByLabel,
    ByOwnLabels,
    Differences,
    PairCounts,
    ReportSection,
    Shares,
    Together,
)
from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import add_published, paper_of
from sightline.metrics.agreement import DEFINITIONS as AGREEMENTS
from sightline.reporting.metric_pairs import MetricPair
from sightline.reporting.notes import judge_errors, label_of, null_notes, open_end, published_notes
from sightline.reporting.tables import BIAS, CORRECTED, MOST_ROWS
from sightline.types import CorrectedValue, MetricValue, PublishedValue, subset_name
from sightline.viewer.environment import interval, number
from sightline.viewer.index_types import GroupFilter, RightShare
from sightline.viewer.plots import (
    PERCENT_SCALE,
    NamedResult,
    PageChart,
    PlotCell,
    PlotPoint,
    Scale,
    chance_of,
    chance_points,
    common_scale,
    human_rows,
    leading,
    meaning,
    measured,
    metric_plot,
    metric_scale,
    number_of,
    radar_chart,
    scatter_chart,
    words_of,
)

# -- Sections that are stacked bars: pairs by how many answers are right, shares of responses

PAIR_PARTS: Mapping[RightShare, str] = {
    "all": "both right",
    "some": "one right",
    "none": "none right",
    "undecided": "undecided",
}
"""The parts of the bars of pairs."""

UNDECIDED_PAIRS = (
    "undecided: pairs in which the number of right answers depends on an undecided verdict or no answer;"
    " metrics count these as not right"
)


class BarRow(Struct, frozen=True):
    """A row of stacked bars: the number and the share of each part; `extra` is a further column."""

    name: str
    run: str
    n: float
    parts: tuple[tuple[str, float, float], ...]
    extra: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}: " + ", ".join(f"{part} {count:,.10g}" for part, count, _ in self.parts)

    @property
    def segments(self) -> list[tuple[str, str]]:
        """The start and the width of each part, in percent of the bar."""
        ends = [sum(share for _, _, share in self.parts[:nth]) for nth in range(len(self.parts))]
        return [
            (f"{start:.2f}%", f"{share:.2f}%") for start, (_, _, share) in zip(ends, self.parts, strict=True)
        ]


class Bars(Struct, frozen=True):
    """Stacked bars: parts that add up to all."""

    kind: ClassVar[str] = "bars"
    title: str
    head: str
    unit: str
    parts: tuple[str, ...]
    rows: tuple[BarRow, ...]
    several_runs: bool
    extra: str = ""
    notes: tuple[str, ...] = ()
    label: str = ""


def pair_counts(section: PairCounts, runs: Sequence[NamedResult]) -> Bars | None:
    """The pairs of which both answers, one or none are right, by label; None without numbers."""
    found = [
        (name, run.name, counts, run.value(section.differ, _subset(section, name)))
        for name in [
            "",
            *dict.fromkeys(name for run in runs for name in run.by_label(section.both, section.label)),
        ]
        for run in runs
        if (counts := _right_counts(run, section.label, name))
    ]
    if not found:
        return None
    has_undecided = any(counts["undecided"] for _, _, counts, _ in found)
    parts = {share: words for share, words in PAIR_PARTS.items() if share != "undecided" or has_undecided}
    rows = [_pair_row(name or "All", run, counts, parts, differ) for name, run, counts, differ in found]
    notes = (UNDECIDED_PAIRS,) if has_undecided else ()
    several = len(runs) > 1
    return Bars(
        "Pairs",
        words_of(section.label),
        "pairs",
        tuple(parts.values()),
        tuple(rows),
        several,
        "same twice",
        notes,
        section.label,
    )


def _subset(section: PairCounts, name: str) -> str:
    return subset_name(section.label, name) if name else "all"


def _right_counts(run: NamedResult, label: str, name: str) -> dict[RightShare, int]:
    """The pairs of a run by how many of their answers are right; empty without scored pairs."""
    if run.count is None:
        return {}
    labels = ((label, name),) if name else ()
    counts = {share: run.count(GroupFilter(right=share, labels=labels)) for share in PAIR_PARTS}
    return counts if sum(counts.values()) else {}


def _pair_row(
    name: str,
    run: str,
    counts: Mapping[RightShare, int],
    shown: Mapping[RightShare, str],
    differ: MetricValue | None,
) -> BarRow:
    n = sum(counts.values())
    same = "" if differ is None or differ.value is None else f"{(100 - differ.value) * differ.n / 100:,.0f}"
    parts = tuple((words, counts[share], 100 * counts[share] / n) for share, words in shown.items())
    return BarRow(name, run, n, parts, same)


def shares(section: Shares, runs: Sequence[NamedResult]) -> Bars | None:
    """The shares of responses that add up to all, by label; None without numbers."""
    first = section.parts[0][0]
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run.by_label(first, section.label)):
        for run in runs:
            values = [run.value(metric, subset_name(section.label, name)) for metric, _ in section.parts]
            defined = [one for one in values if one is not None and one.value is not None]
            if len(defined) == len(section.parts):
                parts = tuple(
                    (words, round(number_of(one) * one.n / 100), number_of(one))
                    for one, (_, words) in zip(defined, section.parts, strict=True)
                )
                rows.append(BarRow(name.replace(":", " : "), run.name, defined[0].n, parts))
    if not rows:
        return None
    words = tuple(words for _, words in section.parts)
    return Bars(section.title, words_of(section.label), "responses", words, tuple(rows), len(runs) > 1)


# -- A section with metrics beside those of other answers: MM-R3's Sampling against All

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
    """Metrics beside those of other answers; None if no run measures a difference."""
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


# -- Sections that are forest plots: a metric by label, several metrics, by judge, corrected by humans


class MetricRow(Struct, frozen=True):
    """A row of a forest plot: a value with its plot, and the published figures beside it."""

    name: str
    run: str
    value: MetricValue
    plot: PlotCell
    published: tuple[PublishedValue | None, ...] = ()


class Forest(Struct, frozen=True):
    """Values of metrics below each other on one scale.

    `head` is the heading of the first column. `label` is the label whose values name the rows, '' for none.
    """

    kind: ClassVar[str] = "forest"
    title: str
    subtitle: str
    head: str
    rows: tuple[MetricRow, ...]
    scale: Scale
    several_runs: bool
    columns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chart: PageChart | None = None
    label: str = ""

    @property
    def kinds(self) -> set[str]:
        return {point.kind for row in self.rows for point in row.plot.points}


def by_label(section: ByLabel, runs: Sequence[NamedResult]) -> Forest | None:
    """A metric under each value of a label; None without numbers."""
    found = [(run, run.by_label(section.metric, section.label)) for run in runs]
    names = list(dict.fromkeys(name for _, values in found for name in values))
    cells = [(name, run.name, values[name]) for name in names for run, values in found if name in values]
    total = [("All", run.name, value) for run in runs if (value := run.value(section.metric)) is not None]
    if len(names) < 2:
        return None
    chart = radar_chart(runs, section.metric, section.label) if section.radar else None
    words = words_of(section.label)
    made = _forest(f"{section.metric} by {words}", words, [*cells, *total], runs, chart)
    return replace(made, label=section.label)


def together(section: Together, runs: Sequence[NamedResult]) -> Forest | None:
    """Several metrics over all samples; None without numbers."""
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
    """The metric by each judge, with their agreement as a note; None without numbers."""
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
    chart: PageChart | None = None,
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


# -- Sections that are scatter plots: one metric against another


class ScatterSection(Struct, frozen=True):
    """A scatter plot with a table of its points."""

    kind: ClassVar[str] = "scatter"
    title: str
    chart: PageChart
    names: tuple[str, str]
    points: Sequence[MetricPair]


def against(section: Against, runs: Sequence[NamedResult]) -> ScatterSection | None:
    """One metric against another, with the rows of the paper that print both; None without numbers."""
    names = (section.x, section.y)
    drawn = scatter_chart(runs, names)
    x = "the cost of 1,000 answers" if section.x == "cost" else section.x
    return drawn and ScatterSection(f"{section.y} against {x}", drawn[0], names, drawn[1])


SectionView = Forest | Bars | ScatterSection | DifferencesSection


def section_views(runs: Sequence[NamedResult]) -> list[SectionView]:
    """The sections of some runs of one benchmark; those without numbers are left out."""
    views = [view for section in _sections(runs) if (view := _view(section, runs)) is not None]
    price = against(Against("cost", leading(runs)[0]), runs)
    views += [price] if price is not None else []
    return [*views, *(corrected(metric, runs) for metric in _corrected_metrics(runs))]


def _sections(runs: Sequence[NamedResult]) -> Iterator[ReportSection]:
    declared = benchmark_class(runs[0].result.benchmark).report_sections or _by_default(runs)
    named = {section.label for section in declared if isinstance(section, ByLabel | PairCounts | Shares)}
    for section in declared:
        if not isinstance(section, ByOwnLabels):
            yield section
            continue
        own = [label for label in _labels(section.metrics[0], runs) if label not in {*named, "judge"}]
        yield from (ByLabel(metric, label) for label in own for metric in section.metrics)


def _by_default(runs: Sequence[NamedResult]) -> list[ReportSection]:
    metric = leading(runs)[0]
    return [
        ByJudge(metric) if label == "judge" else ByLabel(metric, label) for label in _labels(metric, runs)
    ]


def _labels(metric: str, runs: Sequence[NamedResult]) -> list[str]:
    """The labels of few values under which a metric was computed."""
    labels = dict.fromkeys(
        label_of(one)[0] for run in runs for one in run.result.metrics if one.metric == metric
    )
    return [label for label in labels if label and len(runs[0].by_label(metric, label)) <= MOST_ROWS]


def _view(section: ReportSection, runs: Sequence[NamedResult]) -> SectionView | None:
    match section:
        case ByLabel():
            return by_label(section, runs)
        case PairCounts():
            return pair_counts(section, runs)
        case Shares():
            return shares(section, runs)
        case Against():
            return against(section, runs)
        case Together():
            return together(section, runs)
        case Differences():
            return differences_section(section, runs)
        case ByJudge():
            return by_judge(section, runs)


def _corrected_metrics(runs: Sequence[NamedResult]) -> list[str]:
    """The corrected metrics that lead; the first one if none of them does."""
    metrics = list(dict.fromkeys(one.metric for run in runs for one in run.result.corrected))
    return [name for name in metrics if name in leading(runs)] or metrics[:1]


# -- The first part of a page about runs: the leading metrics, and the result beside published values

MOST_COLUMNS = 3
"""The metrics of the table of published values."""

SHOWN_ROWS = 9
"""The published rows that are shown; others are folded."""


class Stat(Struct, frozen=True):
    """A leading metric of a run with its plot, and the other end where undecided verdicts leave a range."""

    name: str
    meaning: str
    value: MetricValue
    plot: PlotCell
    other_end: float | None


class ResultRow(Struct, frozen=True):
    """A row of a table of results: a run, humans, a row of the paper by its name, or chance."""

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
    """The leading metrics, those of one unit on one scale."""
    benchmark = run.result.benchmark
    found = [value for name in leading([run]) if (value := run.value(name)) is not None]
    by_unit = {unit: [one for one in found if one.unit == unit] for unit in {one.unit for one in found}}
    scales = {
        unit: common_scale([metric_scale([run], one.metric, [one]) for one in of], of)
        for unit, of in by_unit.items()
    }
    return [
        Stat(
            one.metric,
            meaning([run], one.metric),
            one,
            metric_plot(
                one,
                scales[one.unit],
                humans=human_rows(benchmark),
                chance=chance_of(benchmark, one.metric),
            ),
            open_end(run.result, one),
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
    judged = judge_errors(run.result)
    facts = f"n {n}" + (f" · judge errors: {judged}" if judged else "")
    return ResultRow(run.name, facts, PlotCell(scale, tuple(points)), values, is_run=True)


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
