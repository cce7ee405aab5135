"""Results as tables: every metric with its counts, intervals, published figures and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import unknown_name
from sightline.metric_types import MetricValue, PublishedValue, Result
from sightline.reporting.breakdown import breakdown
from sightline.reporting.corrected import corrected_tables
from sightline.reporting.leading import leading_metrics
from sightline.reporting.notes import (
    definition_notes,
    label_of,
    place,
    published_notes,
    run_notes,
    shared_notes,
    value_notes,
)
from sightline.reporting.report_table import (
    Column,
    Field,
    ReportTable,
    build_table,
    clusters_cell,
    heading,
    n_cell,
    published_cell,
    value_cell,
)
from sightline.reporting.varied_options import short_names
from sightline.results.run_names import are_named, is_run_name

MOST_ROWS = 16
"""A label with more values than this is broken down on request only."""


def summary(results: Sequence[Result], by: str | None = None, runs: Sequence[str] = ()) -> list[ReportTable]:
    """The tables of one or several results, the fullest first.

    Without `by`, a table of every metric over all; for a single result also the metrics corrected by humans,
    and a compact table of the leading metrics for each label of at most MOST_ROWS values. With `by`, every
    metric under each value of that label. Several results share one table.

    Args:
        by: The name of a label, such as 'category', or None.
    """
    if by is not None:
        known = dict.fromkeys(label for result in results for label in labels(result))
        if by not in known:
            raise unknown_name("label", by, known)
    full = _full(results, by, runs)
    if by is not None or len(results) != 1:
        return [full]
    short, long = _by_length(results[0])
    omitted = [
        f"not in this report: {name} with {count} values (--by {name})" for name, count in long.items()
    ]
    full = replace(full, notes=(*full.notes, *omitted))
    return [full, *corrected_tables(results[0]), *_breakdowns(results[0], short, full.notes)]


def labels(result: Result) -> list[str]:
    """The labels by which a result is broken down."""
    return list(dict.fromkeys(label_of(metric)[0] for metric in result.metrics if metric.subset != "all"))


def run_names(results: Sequence[Result], runs: Sequence[str] = ()) -> list[str]:
    """Short names for results."""
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
    """The title of a table of results.

    Args:
        by: The label of the table; None for a table over all samples.
    """
    settings = dict.fromkeys(f"{result.benchmark}:{result.setting}" for result in results)
    models = list(dict.fromkeys(result.model for result in results))
    if are_named(runs):
        models = list(runs) if len(runs) == 1 else list(short_names(models).values())
    named = [", ".join(settings)] + (models if len(models) == 1 else [])
    return ", ".join(named) + (f", by {by}" if by else "")


def _model_notes(results: Sequence[Result], runs: Sequence[str]) -> list[str]:
    """The models of runs that the table calls by their names, in one note."""
    named = [
        f"{run} is {result.model}"
        for run, result in zip(runs, results, strict=False)
        if is_run_name(run) and run != result.model
    ]
    return ["; ".join(named)] if named else []


class _MetricRow(Struct, frozen=True):
    """A row: a value, and the name of its run."""

    run: str
    metric: MetricValue


def _full(results: Sequence[Result], by: str | None, runs: Sequence[str]) -> ReportTable:
    """Every metric over all, or under the values of a label, with all published figures."""
    names = run_names(results, runs)
    lines = _lines(results, names, by)
    fields: list[Field[_MetricRow]] = [
        (Column("text", "metric", "metric"), lambda line: line.metric.metric),
        *([(Column("text", heading(by), by), lambda line: label_of(line.metric)[1])] if by else []),
        *([(Column("text", "run", "run"), lambda line: line.run)] if len(results) > 1 else []),
        (Column("value", "value\n95 %", ""), lambda line: value_cell(line.metric)),
        (Column("count", "n", "n"), lambda line: n_cell(line.metric)),
        (Column("count", "clusters", "clusters"), lambda line: clusters_cell(line.metric)),
        *_published_fields([line.metric for line in lines]),
    ]
    own = [(name, _notes([line.metric for line in lines if line.run == name])) for name in names]
    whole = [(name, run_notes(result)) for name, result in zip(names, results, strict=True)]
    definitions = {name: one for result in results for name, one in result.metric_definitions.items()}
    legend = definition_notes((line.metric.metric for line in lines), definitions)
    return build_table(
        title_of(results, by, runs),
        fields,
        lines,
        [
            *_model_notes(results, runs),
            *([] if by else _leading_notes(results)),
            *legend,
            *shared_notes(own),
            *shared_notes(whole),
        ],
    )


def _leading_notes(results: Sequence[Result]) -> list[str]:
    """Which metrics of a benchmark lead, where the table has others."""
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
    """The rows; the values of one metric and subset in different runs follow each other."""
    runs = [
        {(m.metric, m.subset): _MetricRow(name, m) for m in result.metrics if label_of(m)[0] == (by or "")}
        for name, result in zip(names, results, strict=True)
    ]
    places = dict.fromkeys(where for run in runs for where in run)
    metrics = list(dict.fromkeys(metric for metric, _ in places))
    ordered = sorted(places, key=lambda where: metrics.index(where[0]))
    return [run[where] for where in ordered for run in runs if where in run]


def _by_length(result: Result) -> tuple[list[str], dict[str, int]]:
    """The labels with few values, and those with many with their number."""
    held: dict[str, dict[str, None]] = {}
    for metric in result.metrics:
        name, value = label_of(metric)
        if name:
            held.setdefault(name, {})[value] = None
    long = {name: len(values) for name, values in held.items() if len(values) > MOST_ROWS}
    return [name for name in held if name not in long], long


def _breakdowns(result: Result, shown: Sequence[str], known: Sequence[str]) -> list[ReportTable]:
    """A compact table for each of these labels, without the notes of the full table."""
    found = [breakdown(result, label) for label in shown]
    return [
        replace(compact, notes=tuple(note for note in compact.notes if note not in known))
        for compact in found
        if compact is not None
    ]


def _published_fields(metrics: Iterable[MetricValue]) -> list[Field[_MetricRow]]:
    """A column for each row of the paper, and a second one if it prints two figures for one value."""
    tables: dict[tuple[str, int], list[str]] = {}
    for metric in metrics:
        for where, value in _numbered(metric).items():
            tables.setdefault(where, []).append(value.table)
    rows = list(dict.fromkeys(row for row, _ in tables))
    ordered = sorted(tables, key=lambda where: (rows.index(where[0]), where[1]))
    return [_published_field(where, _tables(tables[where])) for where in ordered]


def _published_field(where: tuple[str, int], tables: str) -> Field[_MetricRow]:
    column = Column("published", heading(where[0], tables), f"{where[0]} ({tables})")
    return column, lambda line: published_cell(line.metric, _numbered(line.metric).get(where))


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


def _notes(metrics: Sequence[MetricValue]) -> list[str]:
    values = [(place(metric), value) for metric in metrics for value in metric.published or ()]
    brackets = ["in parentheses: this run minus the published figure"] if values else []
    return [*published_notes(values), *brackets, *value_notes(metrics)]
