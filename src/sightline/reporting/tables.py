"""Results as tables, with published figures and notes, and report tables as Markdown, HTML and LaTeX."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import needs_extra, unknown_name
from sightline.formats.jsonl import are_named, is_run_name
from sightline.reporting.notes import (
    approximate_notes,
    caveats,
    chance_notes,
    compact,
    counts_note,
    definition_notes,
    definitions_of,
    interval_notes,
    judge_errors,
    label_of,
    naming_notes,
    null_notes,
    open_end,
    place,
    published_notes,
    run_legend,
    shared_notes,
    short_names,
    undecided_note,
    undecided_value_notes,
    undecided_warning,
    value_notes,
)
from sightline.reporting.table import (
    Cell,
    Column,
    Field,
    PublishedCell,
    ReportTable,
    Value,
    build_table,
    cell_text,
    csv_text,
    estimate,
    flat,
    heading,
    json_text,
    n_cell,
    published_cell,
    size_fields,
    value_cell,
)
from sightline.scoring.similarity import similarity_warning
from sightline.text import counted, for_html, for_latex, for_markdown, for_markdown_cell
from sightline.types import FIRST_ANSWERS, CorrectedValue, MetricValue, PublishedValue, Result, Spent

MOST_ROWS = 16
"""A label with more values than this is broken down on request only."""


def first_view(
    results: Sequence[Result], by: str | None = None, runs: Sequence[str] = (), metrics: Sequence[str] = ()
) -> list[ReportTable]:
    """What a reader sees first: the leading metrics, or the named ones, with what limits them.

    Values that undecided verdicts leave open are ranges, and a sentence above the table says so. Leading
    metrics without a value are left out if others have one. Metrics corrected by humans follow.
    """
    _check_label(results, by)
    check_metrics(results, metrics)
    shown = metrics or [
        name
        for benchmark in dict.fromkeys(result.benchmark for result in results)
        for name in leading_metrics(
            benchmark, [one.metrics for one in results if one.benchmark == benchmark], by
        )
    ]
    first = _full(results, by, runs, shown)
    if len(results) > 1:
        return [first, *spent_tables(results, runs)]
    return [first, *(corrected_tables(results[0]) if by is None else [])]


def spent_tables(results: Sequence[Result], runs: Sequence[str] = ()) -> list[ReportTable]:
    """A table of what the answers of several runs took, if that is known of one."""
    named = list(zip(run_names(results, runs), results, strict=True))

    def row(name: str, result: Result) -> tuple[Cell, ...]:
        spent = result.spent or Spent(0)
        leading = leading_metrics(result.benchmark, [result.metrics])[:1]
        first = next((m for m in result.metrics if [m.metric] == leading and m.subset == "all"), None)
        return (
            name,
            *leading,
            value_cell(first),
            round(spent.tokens / max(spent.answers, 1)) if spent.tokens else None,
            *(spent_cell(spent, field) for field in ("cost", "p50", "p95")),
        )

    columns = (
        Column("text", "run", "run"),
        Column("text", "metric", "metric"),
        Column("value", "value\n95 %", "value"),
        Column("count", "tokens an\nanswer", "tokens"),
        Column("value", "cost", "cost"),
        Column("value", "p50\ns", "p50"),
        Column("value", "p95\ns", "p95"),
    )
    if not any(one.spent for one in results):
        return []
    rows = [row(*one) for one in named]
    known = [nth for nth in range(len(columns)) if nth < 3 or any(one[nth] is not None for one in rows)]
    cells = tuple(tuple(one[nth] for nth in known) for one in rows)
    return [ReportTable("quality and cost", tuple(columns[nth] for nth in known), cells)]


def spent_cell(spent: Spent | None, field: str) -> Cell:
    """The cost of the answers, or a quantile of their latency in seconds; empty if it is unknown."""
    value = getattr(spent, field, None)
    return None if value is None else Value(value, unit="number")


def check_metrics(results: Sequence[Result], names: Sequence[str]) -> None:
    """Raise UserError for a name of no metric of these results."""
    known = dict.fromkeys(metric.metric for result in results for metric in result.metrics)
    for name in names:
        if name not in known:
            raise unknown_name("metric", name, known)


def _check_label(results: Sequence[Result], by: str | None) -> None:
    if by is not None:
        known = dict.fromkeys(label for result in results for label in labels(result))
        if by not in known:
            raise unknown_name("label", by, known)


def summary(results: Sequence[Result], by: str | None = None, runs: Sequence[str] = ()) -> list[ReportTable]:
    """The tables of one or several results, the fullest first.

    Without `by`, a table of every metric over all; for a single result also the metrics corrected by humans,
    and a compact table of the leading metrics for each label of at most MOST_ROWS values. With `by`, every
    metric under each value of that label. Several results share one table.

    Args:
        by: The name of a label, such as 'category', or None.
    """
    _check_label(results, by)
    full = _full(results, by, runs)
    if by is not None or len(results) != 1:
        return [full]
    (result,) = results
    held: dict[str, set[str]] = {}
    for metric in result.metrics:
        if metric.subset not in ("all", FIRST_ANSWERS):
            held.setdefault(label_of(metric)[0], set()).add(metric.subset)
    omitted = [
        f"not in this report: {label} with {len(values)} values (--by {label})"
        for label, values in held.items()
        if len(values) > MOST_ROWS
    ]
    full = replace(full, legend=(*full.legend, *omitted))
    short = [breakdown(result, label) for label, values in held.items() if len(values) <= MOST_ROWS]
    # The notes of the full table are not said again.
    own = [
        replace(one, notes=tuple(note for note in one.notes if note not in full.all_notes))
        for one in short
        if one
    ]
    return [full, *corrected_tables(result), *own]


def labels(result: Result) -> list[str]:
    return list(dict.fromkeys(label_of(metric)[0] for metric in result.metrics if metric.subset != "all"))


def run_names(results: Sequence[Result], runs: Sequence[str] = ()) -> list[str]:
    parts = [(r.model, f"{r.benchmark}:{r.setting}", f"judge {r.judge}") for r in results]
    telling = [nth for nth in range(3) if len({part[nth] for part in parts}) > 1]
    if runs:
        named = zip(runs, parts, strict=True)
        return [
            run if is_run_name(run) else ", ".join((run, *(part[nth] for nth in telling)))
            for run, part in named
        ]
    names = [", ".join(part[nth] for nth in telling or [0]) for part in parts]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, 1)]
    return names


def title_of(results: Sequence[Result], by: str | None, runs: Sequence[str] = ()) -> str:
    settings = dict.fromkeys(f"{result.benchmark}:{result.setting}" for result in results)
    models = list(dict.fromkeys(result.model for result in results))
    if are_named(runs):
        models = list(runs) if len(runs) == 1 else list(short_names(models).values())
    named = [", ".join(settings)] + (models if len(models) == 1 else [])
    return ", ".join(named) + (f", by {by}" if by else "")


_JUDGE_ERRORS = Column("text", "judge\nerrors", "judge_errors")
"""The judgements that a judge could not give or that hold no verdict, beside the metrics that it decides."""


class _MetricRow(Struct, frozen=True):
    """A row: a value, the name of its run, and the other end of what undecided verdicts leave open."""

    run: str
    metric: MetricValue
    judge_errors: str
    other_end: float | None


def _full(
    results: Sequence[Result], by: str | None, runs: Sequence[str], only: Sequence[str] = ()
) -> ReportTable:
    """The table of all metrics, or only of some, with ranges where undecided verdicts leave values open."""
    names = run_names(results, runs)
    chosen = _lines(results, names, by)
    if only:
        chosen = [line for line in chosen if line.metric.metric in only]
    lines = [line for line in chosen if line.metric.value is not None] or chosen if only else chosen
    fields: list[Field[_MetricRow]] = [
        (Column("text", "metric", "metric"), lambda line: _metric_cell(line.metric)),
        *([(Column("text", heading(by), by), lambda line: label_of(line.metric)[1])] if by else []),
        *([(Column("text", "run", "run"), lambda line: line.run)] if len(results) > 1 else []),
        (
            Column("value", "value\n95 %", ""),
            lambda line: replace(estimate(line.metric), other_end=line.other_end if only else None),
        ),
        *size_fields(lambda line: line.metric),
        *([(_JUDGE_ERRORS, lambda line: line.judge_errors)] if any(map(judge_errors, results)) else []),
        *_published_fields([line.metric for line in lines], of_ranges=not only),
    ]
    named = ((run, one.model) for run, one in zip(runs, results, strict=False) if is_run_name(run))
    valued = (line.metric.metric for line in lines if line.metric.value is not None)
    by_run = [(name, [line.metric for line in chosen if line.run == name]) for name in names]
    runs_of = list(zip(names, results, strict=True))
    notes = [
        *shared_notes([(name, [counts_note(one, with_spent=len(results) == 1)]) for name, one in runs_of]),
        *shared_notes([(name, caveats(result)) for name, result in runs_of]),
        *shared_notes([(name, [*null_notes(of), *_figure_notes(of)]) for name, of in by_run]),
        *approximate_notes(line.metric for line in lines),
        *naming_notes(named),
    ]
    legend = [
        *([] if by or only else _leading_notes(results)),
        *definition_notes(valued, definitions_of(results)),
        *([BRACKETS] if any(line.metric.published for line in lines) else []),
        *shared_notes([(name, undecided_value_notes(of)) for name, of in by_run]),
        *shared_notes([(name, run_legend(result)) for name, result in runs_of]),
    ]
    warnings = shared_notes([(name, warnings_of(result, only)) for name, result in runs_of])
    legend = [note for note in legend if note not in notes]
    made = build_table(title_of(results, by, runs), fields, lines, notes, legend)
    return replace(made, lead="; ".join(warnings))


def warnings_of(result: Result, metrics: Sequence[str] = ()) -> list[str]:
    """What changes how metrics are read, in a sentence each; without names, the leading ones."""
    return undecided_warning(result, metrics or leading_metrics(result.benchmark, [result.metrics]))


BRACKETS = "in parentheses: this run minus the published figure"


def _figure_notes(metrics: Sequence[MetricValue]) -> list[str]:
    return published_notes([(place(metric), value) for metric in metrics for value in metric.published or ()])


def _metric_cell(metric: MetricValue) -> str:
    return f"{metric.metric}, first answers" if metric.subset == FIRST_ANSWERS else metric.metric


def _leading_notes(results: Sequence[Result]) -> list[str]:
    by_benchmark: dict[str, list[Result]] = {}
    for result in results:
        by_benchmark.setdefault(result.benchmark, []).append(result)
    notes = []
    for benchmark, same in by_benchmark.items():
        leading = leading_metrics(benchmark, [result.metrics for result in same])
        if {m.metric for result in same for m in result.metrics if m.subset == "all"} - set(leading):
            of_which = f" of {benchmark}" if len(by_benchmark) > 1 else ""
            notes.append(f"leading metrics{of_which}: {', '.join(leading)}")
    return notes


def _lines(results: Sequence[Result], names: Sequence[str], by: str | None) -> list[_MetricRow]:
    """The rows; the values of one metric and subset in different runs follow each other.

    Values with first answers stand below those with all answers.
    """

    def is_shown(metric: MetricValue) -> bool:
        return label_of(metric)[0] == (by or "") or (not by and metric.subset == FIRST_ANSWERS)

    runs = [
        {
            (m.metric, m.subset): _MetricRow(
                name, m, judge_errors(result) if m.judge == result.judge else "", open_end(result, m)
            )
            for m in result.metrics
            if is_shown(m)
        }
        for name, result in zip(names, results, strict=True)
    ]
    places = dict.fromkeys(where for run in runs for where in run)
    metrics = list(dict.fromkeys(metric for metric, _ in places))
    ordered = sorted(places, key=lambda where: metrics.index(where[0]))
    return [run[where] for where in ordered for run in runs if where in run]


def _published_fields(metrics: Iterable[MetricValue], *, of_ranges: bool) -> list[Field[_MetricRow]]:
    """A column for each row of the paper, and a second one if it prints two figures for one value.

    A figure has its difference from a value that is open only if it is shown as a value (`of_ranges`).
    """
    tables: dict[tuple[str, int], list[str]] = {}
    for metric in metrics:
        for where, value in _numbered(metric).items():
            tables.setdefault(where, []).append(value.table)
    rows = list(dict.fromkeys(row for row, _ in tables))
    ordered = sorted(tables, key=lambda where: (rows.index(where[0]), where[1]))
    return [_published_field(where, _tables(tables[where]), of_ranges=of_ranges) for where in ordered]


def _published_field(where: tuple[str, int], tables: str, *, of_ranges: bool) -> Field[_MetricRow]:
    def cell(line: _MetricRow) -> Cell:
        made = published_cell(line.metric, _numbered(line.metric).get(where))
        is_range = line.other_end is not None and not of_ranges
        return replace(made, difference=None) if is_range and isinstance(made, PublishedCell) else made

    return Column("published", heading(where[0], tables), f"{where[0]} ({tables})"), cell


def _numbered(metric: MetricValue) -> dict[tuple[str, int], PublishedValue]:
    """The published figures of a value, by row and by their number within the row."""
    numbered: dict[tuple[str, int], PublishedValue] = {}
    for value in metric.published or ():
        nth = sum(row == value.row for row, _ in numbered)
        numbered[value.row, nth] = value
    return numbered


def _tables(names: Iterable[str]) -> str:
    """'Table 3', 'Table 4', 'README' -> 'Tables 3, 4, README'."""
    names = list(dict.fromkeys(names))
    if len(names) == 1:
        return names[0]
    return "Tables " + ", ".join(name.removeprefix("Table ") for name in names)


# -- The compact table of a result by one label: leading metrics with the first figures of the paper

_LabelRow = tuple[str, Mapping[str, MetricValue]]
"""A value of the label, and the metrics under it."""


def breakdown(result: Result, label: str) -> ReportTable | None:
    """The leading metrics under each value of a label.

    The leading metrics are `Benchmark.leading_metrics`, or the first three of the label. n and clusters are
    those of the first metric; a note gives the n of metrics that average over other numbers. Published
    figures are those of the first metric, and of others for which the paper prints none over all samples, so
    that no other table shows them (CODIS, Table 6).

    Returns:
        The table; None if none of the metrics has a value under the label.
    """
    by_value: dict[str, dict[str, MetricValue]] = {}
    for metric in result.metrics:
        name, value = label_of(metric)
        if name == label:
            by_value.setdefault(value, {})[metric.metric] = metric
    lines: list[_LabelRow] = list(by_value.items())
    defined = {name for _, held in lines for name, metric in held.items() if metric.value is not None}
    shown = [name for name in leading_metrics(result.benchmark, [result.metrics], label) if name in defined]
    if not shown:
        return None
    first, *others = shown
    overall = {metric.metric for metric in result.metrics if metric.subset == "all" and metric.published}
    compared = [first, *(name for name in others if name not in overall)]
    fields: list[Field[_LabelRow]] = [
        (Column("text", heading(label), label), lambda line: line[0]),
        *size_fields(lambda line: line[1].get(first)),
        *(_value_field(name) for name in shown),
    ]
    figures: list[tuple[str, PublishedValue]] = []
    for name in compared:
        printed = [(value, _first_figures(held.get(name))) for value, held in lines]
        figures += [(value, figure) for value, by_row in printed for figure in by_row.values()]
        tables = {row: figure.table for _, by_row in printed for row, figure in by_row.items()}
        before = f"{name}\n" if others else ""
        fields += [_figure_field(name, row, f"{before}{row}\n{table}") for row, table in tables.items()]
    metrics = [held[name] for _, held in lines for name in shown if name in held]
    notes = [*_other_counts(lines, first, others), *published_notes(figures), *value_notes(metrics)]
    return build_table(f"By {label}", fields, lines, notes)


def _first_figures(metric: MetricValue | None) -> dict[str, PublishedValue]:
    """The first figure in each row of the paper, in its order."""
    found: dict[str, PublishedValue] = {}
    for one in (metric.published if metric else None) or ():
        found.setdefault(one.row, one)
    return found


def _value_field(name: str) -> Field[_LabelRow]:
    return Column("value", f"{name}\n95 %", name), lambda line: value_cell(line[1].get(name))


def _figure_field(name: str, row: str, head: str) -> Field[_LabelRow]:
    column = Column("published", head, f"{name} {row}", differences=False)
    return column, lambda line: published_cell(line[1].get(name), _first_figures(line[1].get(name)).get(row))


def _other_counts(lines: Sequence[_LabelRow], first: str, others: Sequence[str]) -> list[str]:
    """The numbers that metrics average over if they differ from those of the first metric."""
    counts = {
        name: [f"{held[name].n:g}" if name in held else "none" for _, held in lines]
        for name in (first, *others)
    }
    return [
        f"n is that of {first}; of {name}: {', '.join(counts[name])}"
        for name in others
        if counts[name] != counts[first]
    ]


# -- The metrics that compact views of results show, and in which order


def leading_metrics(
    benchmark: str, runs: Sequence[Sequence[MetricValue]], label: str | None = None
) -> list[str]:
    """The metrics that compact views show; `label` is the one whose values the view shows."""
    declared = benchmark_class(benchmark)
    shown_values = [[m for m in run if label_of(m)[0] == (label or "")] for run in runs]
    names = list(dict.fromkeys(metric.metric for run in shown_values for metric in run))
    shown: list[str] = []
    for name in [name for name in declared.leading_metrics if name in names] or names[:3]:
        companion = declared.companions.get(name, "")
        differs = companion in names and any(_differ(run, name, companion) for run in shown_values)
        shown += [name, companion] if differs else [name]
    if shown and any(_differ(run, "score", shown[0]) for run in shown_values):
        shown = ["score", *shown]  # of the tool of a file; where each is right or wrong, `acc` says the same
    exact = declared.exact_metric
    if exact not in names or not any(similarity_warning(run) for run in runs):
        return shown
    others = [name for name in shown if name != exact]
    has_headline = any(m.metric in others[:1] and m.value is not None for run in shown_values for m in run)
    return [*others[:1], exact, *others[1:]] if has_headline else [exact, *others]


def _differ(metrics: Iterable[MetricValue], name: str, other: str) -> bool:
    """Whether two metrics of a run have different values in any subset."""
    values = {(metric.metric, metric.subset): metric.value for metric in metrics}
    return any(
        values[name, subset] != values.get((other, subset)) for metric, subset in values if metric == name
    )


# -- The table of metrics of a judge, corrected by humans who labelled a sample of the clusters

CORRECTED = (
    "corrected: the humans' value plus what the judge knows of the other clusters (prediction-powered"
    " inference, PPI++). It holds if the labelled clusters are a random sample"
)
FINITE = (
    "of these alone: the corrected value as what humans would say of exactly these clusters; its interval"
    " covers the choice of the labelled ones only, that of corrected also the choice of all clusters"
)
SAMPLED = "on labelled: the judge's value of the clusters that humans labelled, as the humans' value"
BIAS = "bias: the judge's value minus the humans', on the labelled clusters"
WEIGHT = (
    "weight: how much the judge counts, from 0 (the humans alone) to 1; lambda of PPI++, the mean over the"
    " labelled clusters, for each of which the others give it"
)
NARROWED = "narrowed: by how much the corrected interval is narrower than that of the humans alone"
NEEDED = (
    "to halve: how many more clusters humans have to label for a corrected interval of half the width; '-' if"
    " labels of all clusters would not be enough"
)


def corrected_tables(result: Result) -> list[ReportTable]:
    """The corrected metrics; no table without a judge of all answers and humans for some of them."""
    values = result.corrected
    if not values:
        return []
    judges = short_names(value.judge for value in values)
    fields: list[Field[CorrectedValue]] = [
        (Column("text", "metric", "metric"), lambda one: one.metric),
        *([(Column("text", "judge", "judge"), lambda one: judges[one.judge])] if len(judges) > 1 else []),
        (Column("value", "judge\n95 %", "judged"), lambda one: value_cell(one.judged)),
        (Column("value", "on labelled\n95 %", "sampled"), lambda one: value_cell(one.sampled) or Value(None)),
        (Column("value", "humans\n95 %", "human"), lambda one: value_cell(one.human)),
        (Column("value", "corrected\n95 %", "corrected"), lambda one: value_cell(one.corrected)),
        (
            Column("value", "of these alone\n95 %", "finite", aside=True),
            lambda one: value_cell(one.finite) or Value(None),
        ),
        (Column("value", "bias\n95 %", "bias"), lambda one: value_cell(one.bias)),
        (Column("value", "weight", "weight", aside=True), lambda one: Value(one.weight, unit="number")),
        (Column("value", "narrowed\n%", "narrowed", aside=True), lambda one: Value(one.narrowed)),
        (Column("count", "labelled", "labelled", aside=True), lambda one: one.labelled),
        (Column("count", "clusters", "clusters", aside=True), lambda one: one.judged.clusters),
        (
            Column("count", "to halve", "needed", aside=True),
            lambda one: "-" if one.needed is None else one.needed,
        ),
    ]
    notes, legend = _corrected_notes(result), [SAMPLED, CORRECTED, FINITE, BIAS, WEIGHT, NARROWED, NEEDED]
    return [build_table("Corrected by humans", fields, values, notes, legend)]


def _corrected_notes(result: Result) -> list[str]:
    values = result.corrected
    read = ", ".join(dict.fromkeys(value.judge for value in values))
    humans = ", ".join(dict.fromkeys(value.humans for value in values))
    partly = max(value.partly for value in values)
    left_out = [f"{counted(partly, 'cluster')} with some labels only: left out"] if partly else []
    return [
        f"{read} read all clusters, {humans} a part of them",
        *left_out,
        *undecided_note(result, {value.metric for value in values}),
        *null_notes(part for value in values for part in (value.human, value.corrected, value.bias)),
    ]


# -- Results of several settings in one table: a row per metric, a column per model, few notes


_OverviewRow = tuple[tuple[str, str], Mapping[str, MetricValue]]
"""A setting and a metric of it, and its value for each model."""


def overview(title: str, results: Sequence[Result]) -> ReportTable:
    """A table of all metrics over all samples, grouped by setting, with the models as columns.

    The results need the same models under each setting. Counts and options are in the report of each run.
    """

    def of_model(model: str, name: str) -> Field[_OverviewRow]:
        return Column("value", heading(name, "95 %"), model), lambda line: value_cell(line[1].get(model))

    values: dict[tuple[str, str], dict[str, MetricValue]] = {}
    chance: dict[str, list[str]] = {}
    for result in results:
        setting = f"{result.benchmark}:{result.setting}"
        for metric in result.metrics:
            if metric.subset == "all":
                values.setdefault((setting, metric.metric), {})[result.model] = metric
        chance.setdefault(result.benchmark, []).extend(chance_notes(result))
    fields: list[Field[_OverviewRow]] = [
        (Column("text", "", "setting"), lambda line: line[0][0]),
        (Column("text", "metric", "metric"), lambda line: line[0][1]),
        *(of_model(*named) for named in short_names(result.model for result in results).items()),
        (Column("count", "n", "n"), lambda line: n_cell(next(iter(line[1].values())))),
    ]
    metrics = [metric for result in results for metric in result.metrics]
    notes = shared_notes([(f"{one.benchmark}:{one.setting}, {one.model}", one.notes) for one in results])
    legend = [
        *definition_notes((metric.metric for metric in metrics), definitions_of(results)),
        *shared_notes(list(chance.items())),
        *interval_notes(metrics),
    ]
    return build_table(title, fields, values.items(), notes, legend)


# -- Report tables in Markdown, and the report of a results folder


def report_markdown(result: Result, name: str | None = None) -> str:
    """The text of report.md: every table with its notes, then the run with all effective options."""
    whole, *by_label = summary([result], runs=[name] if name else [])
    sections = [
        f"# {for_markdown(whole.title)}",
        markdown([replace(whole, title="Overall"), *by_label]),
        f"## Run\n\n{_run(result)}",
    ]
    return "\n\n".join(sections) + "\n"


def markdown(tables: Iterable[ReportTable]) -> str:
    """Tables as Markdown: a heading, the table and its notes as a list, each."""
    return "\n\n".join(_section(table) for table in tables)


def _section(table: ReportTable) -> str:
    heads = [for_markdown_cell(*column.head.split("\n")) for column in table.columns]
    rows = [
        [for_markdown_cell(cell_text(cell, column)) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows
    ]
    marks = ["---" if column.kind == "text" else "---:" for column in table.columns]
    notes = "\n".join(f"- {for_markdown(note)}" for note in table.all_notes)
    blocks = [f"## {for_markdown(table.title)}", for_markdown(table.lead), _grid(heads, marks, rows), notes]
    return "\n\n".join(block for block in blocks if block)


def _run(result: Result) -> str:
    facts = {
        "benchmark": result.benchmark,
        "setting": result.setting,
        "model": result.model,
        "model identity": result.model_identity,
        "judge": result.judge,
        "data digest": result.data_digest,
        **{f"version of {name}": value for name, value in result.versions.items()},
        **{f"option {name}": value for name, value in result.options.items()},
    }
    rows = [[for_markdown_cell(name), for_markdown_cell(compact(value))] for name, value in facts.items()]
    return _grid(["", ""], ["---", "---"], rows)


def _grid(heads: Sequence[str], marks: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, marks, *rows))


# -- Report tables in HTML, as a fragment of a page


def html(tables: Iterable[ReportTable]) -> str:
    """Tables as HTML: a `table` with its title as caption, and its notes as a list, each."""
    return "".join(f"{line}\n" for table in tables for line in _text_lines(table))


def _text_lines(table: ReportTable) -> list[str]:
    heads = "".join(_element("th", column, _html_head(column)) for column in table.columns)
    rows = [
        "".join(
            _element("td", column, for_html(cell_text(cell, column)))
            for cell, column in zip(row, table.columns, strict=True)
        )
        for row in table.rows
    ]
    notes = [f"<li>{for_html(note)}</li>" for note in table.all_notes]
    return [
        *([f"<p>{for_html(table.lead)}</p>"] if table.lead else []),
        "<table>",
        f"<caption>{for_html(table.title)}</caption>",
        f"<thead><tr>{heads}</tr></thead>",
        "<tbody>",
        *(f"<tr>{row}</tr>" for row in rows),
        "</tbody>",
        "</table>",
        *(["<ul>", *notes, "</ul>"] if notes else []),
    ]


def _html_head(column: Column) -> str:
    return "<br>".join(map(for_html, column.head.split("\n")))


def _element(name: str, column: Column, content: str) -> str:
    side = "" if column.kind == "text" else ' style="text-align: right"'
    return f"<{name}{side}>{content}</{name}>"


# -- Report tables in LaTeX, with the rules of the package booktabs

_MINUS = re.compile(r"(?<!\d)-(?=\d)")
_NOT_OF_A_LABEL = re.compile(r"[^a-z0-9]+")


def latex(tables: Iterable[ReportTable]) -> str:
    """Tables as LaTeX: a `table` each, with its title as caption and label; its notes are comments behind it.

    A float cannot break over pages, so that long notes would not fit in it. The author of the paper decides
    which of them the caption says.
    """
    return "\n".join(map(_table, tables))


def _table(table: ReportTable) -> str:
    body = [list(map(_cell, row, table.columns)) for row in table.rows]
    title = for_latex(table.title)
    label = _NOT_OF_A_LABEL.sub("-", table.title.lower()).strip("-")
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{title}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{''.join('l' if column.kind == 'text' else 'r' for column in table.columns)}}}",
        r"\toprule",
        *_latex_head(table.columns),
        r"\midrule",
        *map(_row, body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        *(f"% {for_latex(note)}" for note in table.all_notes),
    ]
    return "\n".join(lines) + "\n"


def _latex_head(columns: Sequence[Column]) -> list[str]:
    """The lines of the headings; shorter headings begin further down.

    Above the last line, a heading that neighbours share stands once over all of them with a rule, as in the
    tables of papers: a category over its metrics.
    """
    heads = [column.head.split("\n") for column in columns]
    most = max(map(len, heads))
    padded = [[""] * (most - len(lines)) + lines for lines in heads]
    found: list[str] = []
    for nth in range(most - 1):
        cells, rules, start = [], [], 1
        for shared, group in groupby(padded, key=lambda lines: lines[: nth + 1]):
            width, text = len(list(group)), for_latex(shared[nth])
            if width > 1 and text:
                cells.append(rf"\multicolumn{{{width}}}{{c}}{{{text}}}")
                rules.append(rf"\cmidrule(lr){{{start}-{start + width - 1}}}")
            else:
                cells += [text] * width
            start += width
        found += [_row(cells), *([" ".join(rules)] if rules else [])]
    return [*found, _row([for_latex(lines[-1]) for lines in padded])]


def _row(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _cell(cell: Cell, column: Column) -> str:
    """A cell; numbers have minus signs, and plain brackets, which stand behind a value."""
    text = for_latex(cell_text(cell, column))
    if isinstance(cell, str):
        return text
    return _MINUS.sub("$-$", text.replace("{[}", "[").replace("{]}", "]"))


WRITERS: Mapping[str, Callable[[Sequence[ReportTable]], str]] = {
    "markdown": lambda tables: f"{markdown(tables)}\n",
    "csv": lambda tables: "\n".join(map(csv_text, tables)),
    "latex": latex,
    "html": html,
    "json": json_text,
}
"""The formats of `--format` that are texts, and what writes them."""

_Content = TypeVar("_Content")


def tables_text(tables: Sequence[ReportTable], form: str) -> str:
    if form not in WRITERS:
        raise unknown_name("format", form, WRITERS)
    return WRITERS[form](tables)


# -- Report tables as one text in any format, and as the value of a notebook cell


class Tables(Struct, Generic[_Content], frozen=True):
    """Tables for a script or a notebook, which displays them, with the record that they show."""

    content: _Content
    tables: tuple[ReportTable, ...]

    def text(self, form: str = "markdown") -> str:
        """The tables as text."""
        return tables_text(self.tables, form)

    def frame(self) -> Any:
        """The main table as a pandas DataFrame with unrounded numbers; needs the extra `table`."""
        return import_pandas().DataFrame(flat(self.tables[0]))

    def _repr_html_(self) -> str:
        """The tables as a notebook shows them."""
        return html(self.tables)

    def __str__(self) -> str:
        """The tables as the command prints them."""
        from sightline.reporting.table import show

        file = io.StringIO()
        show(self.tables, file, 120)
        return file.getvalue()


def import_pandas() -> Any:
    with needs_extra("table", "pandas is not installed"):
        import pandas
    return pandas
