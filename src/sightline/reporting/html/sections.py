"""The sections that a benchmark declares (`benchmarks/report_sections.py`), with their numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.report_sections import (
    Against,
    ByJudge,
    ByLabel,
    Differences,
    PairCounts,
    ReportSection,
    Shares,
    Together,
)
from sightline.metric_types import CorrectedValue, MetricValue, PublishedValue
from sightline.metrics.agreement_definitions import DEFINITIONS as AGREEMENTS
from sightline.registry import benchmark_class
from sightline.reporting.corrected import BIAS, CORRECTED
from sightline.reporting.html.charts import Radar, Scatter, Value2D, radar, scatter
from sightline.reporting.html.difference_section import DifferencesSection, differences_section
from sightline.reporting.html.figures import interval, number
from sightline.reporting.html.plots import PlotCell, Scale, metric_plot
from sightline.reporting.html.run_results import (
    NamedResult,
    chance_of,
    human_row,
    leading,
    meaning,
    metric_scale,
)
from sightline.reporting.notes import label_of, null_notes, published_notes
from sightline.reporting.tables import MOST_ROWS
from sightline.results.published import add_published

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


class BarRow(Struct, frozen=True):
    """A row of stacked bars: the number and the share of each part; `extra` is a further column."""

    name: str
    run: str
    n: float
    parts: tuple[tuple[str, float, float], ...]
    extra: str = ""

    @property
    def label(self) -> str:
        """The bar in words."""
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


class ScatterSection(Struct, frozen=True):
    """A scatter plot with a table of its points."""

    kind: ClassVar[str] = "scatter"
    title: str
    chart: Scatter
    names: tuple[str, str]
    points: tuple[Value2D, ...]


SectionView = Forest | Bars | ScatterSection | DifferencesSection


def section_views(runs: Sequence[NamedResult]) -> list[SectionView]:
    """The sections of some runs of one benchmark; those without numbers are left out.

    Args:
        runs: The runs.

    Returns:
        The sections that the benchmark declares; without any, its first leading metric by each label. Then
        the metrics that humans corrected.
    """
    declared = benchmark_class(runs[0].result.benchmark).report_sections or _by_default(runs)
    views = [view for section in declared if (view := _view(section, runs)) is not None]
    return [*views, *(_corrected(metric, runs) for metric in _corrected_metrics(runs))]


def _by_default(runs: Sequence[NamedResult]) -> list[ReportSection]:
    metric = leading(runs)[0]
    labels = dict.fromkeys(
        label_of(one)[0] for run in runs for one in run.result.metrics if one.metric == metric
    )
    few = [label for label in labels if label and len(runs[0].by_label(metric, label)) <= MOST_ROWS]
    return [ByJudge(metric) if label == "judge" else ByLabel(metric, label) for label in few]


def _view(section: ReportSection, runs: Sequence[NamedResult]) -> SectionView | None:
    match section:
        case ByLabel():
            return _by_label(section, runs)
        case PairCounts():
            return _pairs(section, runs)
        case Shares():
            return _shares(section, runs)
        case Against():
            return _against(section, runs)
        case Together():
            return _together(section, runs)
        case Differences():
            return differences_section(section, runs)
        case ByJudge():
            return _by_judge(section, runs)


def _by_label(section: ByLabel, runs: Sequence[NamedResult]) -> Forest | None:
    found = [(run, run.by_label(section.metric, section.label)) for run in runs]
    names = list(dict.fromkeys(name for _, values in found for name in values))
    cells = [(name, run.name, values[name]) for name in names for run, values in found if name in values]
    total = [("All", run.name, value) for run in runs if (value := run.value(section.metric)) is not None]
    if len(names) < 2:
        return None
    chart = None
    if section.radar and 3 <= len(names) <= MOST_SPOKES:
        scale = metric_scale(runs, section.metric, [value for _, _, value in cells])
        lines = [(run.name, [_number(values.get(name)) for name in names]) for run, values in found]
        chart = radar(names, lines, scale)
    return _forest(
        f"{section.metric} by {_words(section.label)}", _words(section.label), [*cells, *total], runs, chart
    )


def _together(section: Together, runs: Sequence[NamedResult]) -> Forest | None:
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


def _by_judge(section: ByJudge, runs: Sequence[NamedResult]) -> Forest | None:
    """The metric by each judge; the agreement of the judges is a note."""
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


def _corrected_metrics(runs: Sequence[NamedResult]) -> list[str]:
    """The corrected metrics that lead; the first one if none of them does."""
    metrics = list(dict.fromkeys(one.metric for run in runs for one in run.result.corrected))
    return [name for name in metrics if name in leading(runs)] or metrics[:1]


def _corrected(metric: str, runs: Sequence[NamedResult]) -> Forest:
    """The metric by judge, humans and both."""
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
    benchmark, human = runs[0].result.benchmark, human_row(runs[0].result.benchmark)
    scale = metric_scale(runs, values[0].metric, values)
    columns = list(dict.fromkeys(one.row for value in values for one in value.published or ()))
    rows = tuple(
        MetricRow(
            name,
            run,
            value,
            metric_plot(value, scale, human=human, chance=chance_of(benchmark, value.metric)),
            tuple(_figure(value, row) for row in columns),
        )
        for name, run, value in cells
    )
    shown = [(name, one) for name, _, value in cells for one in value.published or ()]
    metrics = dict.fromkeys(value.metric for value in values)
    subtitle = meaning(runs, values[0].metric) if len(metrics) == 1 else ""
    notes = (*published_notes(shown), *null_notes(values))
    return Forest(title, subtitle, head, rows, scale, len(runs) > 1, tuple(columns), notes, chart)


def _pairs(section: PairCounts, runs: Sequence[NamedResult]) -> Bars | None:
    rows = []
    for name in [
        "all",
        *dict.fromkeys(name for run in runs for name in run.by_label(section.both, section.label)),
    ]:
        subset = name if name == "all" else f"{section.label}={name}"
        for run in runs:
            both, each, differ = (run.value(m, subset) for m in (section.both, section.each, section.differ))
            if both is not None and each is not None and both.n and each.n == 2 * both.n:
                rows.append(_pair_row("All" if name == "all" else name, run.name, both, each, differ))
    parts = ("both right", "one right", "none right")
    if not rows:
        return None
    return Bars("Pairs", _words(section.label), "pairs", parts, tuple(rows), len(runs) > 1, "same twice")


def _pair_row(
    name: str, run: str, both: MetricValue, each: MetricValue, differ: MetricValue | None
) -> BarRow:
    """Counts of pairs from the shares of right pairs and of right answers."""
    two = round(_number(both) * both.n / 100)
    one = round(_number(each) * each.n / 100) - 2 * two
    counts = {"both right": two, "one right": one, "none right": both.n - two - one}
    same = "" if differ is None or differ.value is None else f"{(100 - differ.value) * differ.n / 100:,.0f}"
    parts = tuple((part, count, 100 * count / both.n) for part, count in counts.items())
    return BarRow(name, run, both.n, parts, same)


def _shares(section: Shares, runs: Sequence[NamedResult]) -> Bars | None:
    first = section.parts[0][0]
    rows = []
    for name in dict.fromkeys(name for run in runs for name in run.by_label(first, section.label)):
        for run in runs:
            values = [run.value(metric, f"{section.label}={name}") for metric, _ in section.parts]
            defined = [one for one in values if one is not None and one.value is not None]
            if len(defined) == len(section.parts):
                parts = tuple(
                    (words, round(_number(one) * one.n / 100), _number(one))
                    for one, (_, words) in zip(defined, section.parts, strict=True)
                )
                rows.append(BarRow(name.replace(":", " : "), run.name, defined[0].n, parts))
    if not rows:
        return None
    words = tuple(words for _, words in section.parts)
    return Bars(section.title, _words(section.label), "responses", words, tuple(rows), len(runs) > 1)


def _against(section: Against, runs: Sequence[NamedResult]) -> ScatterSection | None:
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
    from sightline.benchmarks.published import paper_of

    paper = paper_of(run.result.benchmark)
    if paper is None:
        return []
    compared = NamedResult(run.name, add_published(run.result, *paper.row_names))
    x, y = (
        {figure.row: figure.value for figure in (value.published if value else None) or []}
        for value in (compared.value(section.x), compared.value(section.y))
    )
    return [Value2D(row, x[row], y[row], False) for row in x if row in y]


def _figure(value: MetricValue, row: str) -> PublishedValue | None:
    return next((one for one in value.published or () if one.row == row), None)


def _number(value: MetricValue | None) -> float:
    return 0.0 if value is None or value.value is None else value.value


def _words(label: str) -> str:
    return label.replace("_", " ")
