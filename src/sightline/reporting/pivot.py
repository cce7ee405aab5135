"""Several results in one table like those of papers: models as rows, varied values as columns; sweep.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import paper_of
from sightline.errors import unknown_name
from sightline.reporting.notes import (
    ALWAYS,
    FILE_MODEL,
    ResultPoint,
    definition_notes,
    interval_notes,
    label_of,
    option_text,
    options_text,
    place,
    published_notes,
    row_names,
    run_notes,
    shared_notes,
    short_names,
    task_of,
    undecided_note,
    value_notes,
)
from sightline.reporting.table import Cell, Column, ReportTable, Value, estimate, heading
from sightline.reporting.tables import leading_metrics, markdown
from sightline.text import for_markdown
from sightline.types import MetricValue, PublishedValue, Result, subset_name


def pivot(points: Sequence[ResultPoint], by: str | None = None) -> list[ReportTable]:
    """Tables of results with models as rows and varied values as columns (MM-R3, Tables 8 and 9).

    There is a table for each benchmark and setting; settings that a table of the paper has as columns are in
    one table (II-Bench, Tables 4 and 5). If only a switch was varied, the second half prints its
    difference to the first in brackets (Tables 2-4). Published figures are further rows. A result without
    any answer leaves its cells empty.
    """
    labels = dict.fromkeys(label_of(m)[0] for p in points for m in p.result.metrics if m.subset != "all")
    if by is not None and by not in labels:
        raise unknown_name("label", by, labels)
    joined = settings_as_columns([] if by else points)
    in_columns = [task_of(point.result) for of in joined.values() for point in of]
    tasks = dict.fromkeys(task_of(point.result) for point in points)
    alone = [
        [point for point in points if task_of(point.result) == task]
        for task in tasks
        if task not in in_columns
    ]
    return [
        *(_pivot(of, None, table) for (_, table), of in joined.items()),
        *(_pivot(of, by) for of in alone),
    ]


def settings_tables(points: Sequence[ResultPoint]) -> list[ReportTable]:
    """The tables whose columns are settings, as in the paper; none if the results have no such settings."""
    return [_pivot(of, None, table) for (_, table), of in settings_as_columns(points).items()]


def settings_as_columns(points: Sequence[ResultPoint]) -> dict[tuple[str, str], list[ResultPoint]]:
    """Join results of settings that the paper prints beside the default one, a column each, in its order.

    Settings of which options vary are not joined.

    Returns:
        Benchmark and table of the paper -> the results.
    """
    joined = {}
    for name in dict.fromkeys(point.result.benchmark for point in points):
        paper = paper_of(name)
        metrics, default = benchmark_class(name).leading_metrics, next(iter(benchmark_class(name).settings))
        mine = {
            task_of(point.result)[1]: [
                other for other in points if task_of(other.result) == task_of(point.result)
            ]
            for point in points
            if point.result.benchmark == name
        }
        if paper is None or not metrics or any(point.values for of in mine.values() for point in of):
            continue
        shown: set[str] = set()
        for table in paper.tables:
            printed = table.prints(metrics[0])
            settings = [one for one in printed if one in mine]
            columns = {column.metric for column in table.columns}
            if default not in printed or columns != {metrics[0]}:
                continue
            if len(settings) > 1 and not shown.issuperset(settings):
                shown |= set(settings)
                joined[name, table.table] = [
                    ResultPoint(_of_files(point.result), {SETTING: one})
                    for one in settings
                    for point in mine[one]
                ]
    return joined


def _of_files(result: Result) -> Result:
    """A result of a file that is named after its setting, under a name that all settings share."""
    if not result.model.startswith(FILE_MODEL):
        return result
    setting = rf"(?<![^\W_]){re.escape(result.setting)}(?![^\W_])"
    return replace(result, model=re.sub(setting, "*", result.model))


def in_label_order(points: Sequence[ResultPoint]) -> list[ResultPoint]:
    """Sort points by the labels that the benchmark gives to values of its options."""

    def ranks(point: ResultPoint) -> list[int]:
        options = benchmark_class(point.result.benchmark).options
        labels = [
            (list(options[name].labels), value) for name, value in point.values.items() if name in options
        ]
        return [values.index(value) for values, value in labels if value in values]

    return sorted(points, key=ranks)


def value_labels(point: ResultPoint) -> tuple[str, ...]:
    """The values of the varied options of a result, with the labels that the benchmark gives to them."""
    options = benchmark_class(point.result.benchmark).options
    labels = {name: options[name].label(value) for name, value in point.values.items() if name in options}
    return tuple(
        option_text(value) if labels.get(name) is None else str(labels[name])
        for name, value in point.values.items()
    )


class _Block(Struct, frozen=True):
    """The heading above some columns: its `key` in CSV and JSON, and the lines of its head."""

    key: str
    head: tuple[str, ...] = ()


SETTING = "setting"
"""The varied value of results whose settings are columns."""

OVERALL = _Block("all", ("Overall",))
"""The block of all samples before those of a label (II-Bench, Table 3; ConTextual, Table 5)."""

_Row = tuple[str, ...]
"""The first texts of a row: the model, and a value of the label if its values are rows."""


class _RunMetrics(Struct, frozen=True):
    """The metrics of one run under one block, by name; `run` is its name in notes."""

    row: _Row
    block: _Block
    run: str
    metrics: Mapping[str, MetricValue]


class _PivotLayout(Struct, frozen=True):
    """The label whose values are rows under each model, and the one whose values are blocks of columns.

    Without `row_label` a model has one row; without `column_label` the varied options are the blocks.
    """

    metrics: list[str]
    row_label: str | None = None
    column_label: str | None = None


def _pivot(points: Sequence[ResultPoint], by: str | None, table: str | None = None) -> ReportTable:
    """A table, with the figures of one of the paper; of the one that fits best if `table` has none."""
    points = in_label_order(points)
    varied = any(point.values for point in points)
    runs_metrics = [point.result.metrics for point in points]
    shown = leading_metrics(points[0].result.benchmark, runs_metrics, by)
    layout = _PivotLayout(shown, by if varied else None, None if varied else by)
    runs = _run_metrics(points, layout)
    blocks = list(dict.fromkeys(run.block for run in runs))
    compared = blocks if len(blocks) == 2 and all(_is_switched(point.values) for point in points) else []
    metrics = [metric for run in runs for metric in run.metrics.values()]
    if not any(_of_table(metric, table) for metric in metrics):
        table = _shown_table(runs)
    rows = _measured_rows(runs) | _published_rows(runs, table)
    columns = _text_columns(points, layout)
    for block in blocks:
        columns += [_column(block, name, block in compared[1:]) for name in layout.metrics]
    return ReportTable(
        _title(points, by),
        tuple(columns),
        tuple((*row, *_row_cells(cells, blocks, layout, compared)) for row, cells in rows.items()),
        tuple(_notes(points, runs, layout, compared, table)),
    )


def _text_columns(points: Sequence[ResultPoint], layout: _PivotLayout) -> list[Column]:
    """The columns that name the row; the heads of the last name the varied options, left of their values."""
    names = ["model", layout.row_label] if layout.row_label else ["model"]
    varied = [layout.column_label] if layout.column_label else list(points[0].values)
    return [
        *(Column("text", heading(name), name) for name in names[:-1]),
        Column("text", heading(*varied, names[-1]), names[-1]),
    ]


def _run_metrics(points: Sequence[ResultPoint], layout: _PivotLayout) -> list[_RunMetrics]:
    """The metrics of each run under each value of the label; none for a run without any answer."""
    label = layout.row_label or layout.column_label or ""
    runs = []
    for name, point in zip(row_names(points), points, strict=True):
        run = ", ".join(filter(None, (name, options_text(point.values))))
        by_value: dict[str, dict[str, MetricValue]] = {}
        for metric in point.result.metrics:
            metric_label, value = label_of(metric)
            if metric_label == label and metric.metric in layout.metrics:
                by_value.setdefault(value, {})[metric.metric] = metric
        has_answers = point.result.unanswered < point.result.probes
        whole = _over_all(point.result, layout)
        if whole:
            runs.append(_RunMetrics((name,), OVERALL, run, whole if has_answers else {}))
        for value, metrics in by_value.items():
            row = (name, value) if layout.row_label else (name,)
            block = _Block(subset_name(label, value), (value,)) if layout.column_label else _block(point)
            runs.append(_RunMetrics(row, block, run, metrics if has_answers else {}))
    return runs


def _over_all(result: Result, layout: _PivotLayout) -> dict[str, MetricValue]:
    """The metrics over all samples, which papers print beside those by label; none if one has no such value
    (MM-R3, Tables 10-13)."""
    whole = {
        one.metric: one for one in result.metrics if one.subset == "all" and one.metric in layout.metrics
    }
    return whole if layout.column_label and len(whole) == len(layout.metrics) else {}


def _block(point: ResultPoint) -> _Block:
    return _Block(options_text(point.values), value_labels(point))


def _is_switched(values: Mapping[str, Any]) -> bool:
    return len(values) == 1 and isinstance(next(iter(values.values())), bool)


def _column(block: _Block, name: str, differences: bool) -> Column:
    return Column("spread", heading(*block.head, name), f"{block.key} {name}".strip(), differences)


_Cells = dict[tuple[_Block, str], Value]
"""The numbers of a row by block and metric."""


def _measured_rows(runs: Sequence[_RunMetrics]) -> dict[_Row, _Cells]:
    rows: dict[_Row, _Cells] = {}
    for run in runs:
        cells = rows.setdefault(run.row, {})
        for name, metric in run.metrics.items():
            cells[run.block, name] = estimate(metric)
    return rows


def _shown_table(runs: Sequence[_RunMetrics]) -> str | None:
    """The table of the paper whose figures are shown; None if it has none.

    Figures of two tables were often taken under other conditions, so only those of one are beside each
    other: the one that has figures for most columns and rows, of equal ones the one printed first.
    """
    covered: dict[str, set[tuple[str, _Block, str, _Row]]] = {}
    for run in runs:
        for name, metric in run.metrics.items():
            for figure in metric.published or ():
                place = (figure.row, run.block, name, run.row[1:])
                for table in (figure.table, *figure.also):
                    covered.setdefault(table, set()).add(place)
    return max(covered, key=lambda table: len(covered[table]), default=None)


def _published_rows(runs: Sequence[_RunMetrics], table: str | None) -> dict[_Row, _Cells]:
    """The rows of a table of the paper, each with a second one, marked '*', for figures that are not
    comparable."""
    figures: dict[tuple[str, str, _Row], dict[tuple[_Block, str], list[tuple[PublishedValue, Value]]]] = {}
    for run in runs:
        for name, metric in run.metrics.items():
            for figure in _of_table(metric, table):
                row_figures = figures.setdefault((figure.row, table or "", run.row[1:]), {})
                cell = Value(figure.value, unit=metric.unit)
                row_figures.setdefault((run.block, name), []).append((figure, cell))
    rows: dict[_Row, _Cells] = {}
    for (row, printed, label), row_figures in figures.items():
        for column, several in row_figures.items():
            mark = "" if all(figure.comparable for figure, _ in several) else " *"
            rows.setdefault((f"{row}, {printed}{mark}", *label), {})[column] = several[0][1]
    names = list(dict.fromkeys(row[0] for row in rows))
    return dict(sorted(rows.items(), key=lambda item: names.index(item[0][0])))


def _of_table(metric: MetricValue, table: str | None) -> list[PublishedValue]:
    return [figure for figure in metric.published or () if table in (figure.table, *figure.also)]


def _row_cells(
    cells: _Cells, blocks: Sequence[_Block], layout: _PivotLayout, compared: Sequence[_Block]
) -> list[Cell]:
    """The cells of a row; those of the second compared block hold the difference from the first."""
    row: list[Cell] = []
    for block in blocks:
        for name in layout.metrics:
            cell, first = cells.get((block, name)), cells.get((blocks[0], name))
            if block in compared[1:] and cell and first:
                cell = replace(cell, difference=_difference(cell.value, first.value))
            row.append(cell)
    return row


def _difference(value: float | None, first: float | None) -> float | None:
    return None if value is None or first is None else value - first


def _title(points: Sequence[ResultPoint], by: str | None) -> str:
    varied = list(
        dict.fromkeys([*(name for point in points for name in point.values), *([by] if by else [])])
    )
    task = points[0].result.benchmark if SETTING in varied else ":".join(task_of(points[0].result))
    return f"{task}, by {' and '.join(varied)}" if varied else task


def _notes(
    points: Sequence[ResultPoint],
    runs: Sequence[_RunMetrics],
    layout: _PivotLayout,
    compared: Sequence[_Block],
    table: str | None,
) -> list[str]:
    """The notes of the table: on all runs, then on some of them, then on the published figures."""
    metrics = [metric for run in runs for metric in run.metrics.values()]
    metrics_by_run: dict[str, list[MetricValue]] = {}
    for run in runs:
        metrics_by_run.setdefault(run.run, []).extend(run.metrics.values())
    notes_by_run = [
        (", ".join(filter(None, (name, options_text(point.values)))), _run_notes(point, layout.metrics))
        for name, point in zip(row_names(points), points, strict=True)
    ]
    published = [
        (_place_in_block(metric, run.block), figure)
        for run in runs
        for metric in run.metrics.values()
        for figure in _of_table(metric, table)
    ]
    others = dict.fromkeys(
        figure.table
        for metric in metrics
        for figure in metric.published or ()
        if table not in (figure.table, *figure.also)
    )
    definitions = {
        name: definition for point in points for name, definition in point.result.metric_definitions.items()
    }
    results = [point.result for point in points]
    return [
        *_model_notes(points),
        *definition_notes(layout.metrics, definitions),
        *interval_notes(metrics),
        *([f"in parentheses: {_described(compared[1])} minus {_described(compared[0])}"] if compared else []),
        _count_note(results),
        *_size_notes(metrics),
        *shared_notes(
            [(run, value_notes(_without_if_right(values))) for run, values in metrics_by_run.items()]
        ),
        *shared_notes(notes_by_run),
        *published_notes(list(dict.fromkeys(published))),
        *([f"figures of one table are shown, {table}; not shown: {', '.join(others)}"] if others else []),
    ]


def _place_in_block(metric: MetricValue, block: _Block) -> str:
    """The name of a value with its subset and its block, without naming a subset twice."""
    return place(metric) if metric.subset == block.key else f"{place(metric)} {block.key}".strip()


def _described(block: _Block) -> str:
    """'All (unchanged=off)', or 'cot=off' if the head says no more."""
    head = ", ".join(block.head)
    return block.key if head in block.key else f"{head} ({block.key})"


def _model_notes(points: Sequence[ResultPoint]) -> list[str]:
    short = short_names(point.result.model for point in points)
    shortened = [f"{name} is {model}" for model, name in short.items() if name != model]
    files = {point.result.model for point in points if point.result.model.startswith(FILE_MODEL)}
    one_name = "each file is a model of its own: `score --model NAME` gives the files of one model one row"
    is_varied = any(SETTING in point.values for point in points)
    return [
        *(["; ".join(shortened)] if shortened else []),
        *([one_name] if is_varied and len(files) > 1 else []),
    ]


def _count_note(results: Sequence[Result]) -> str:
    not_sent = ["not_sent"] if any(result.not_sent for result in results) else []
    counts = [
        f"{_range([getattr(result, name) for result in results])} {name.replace('_', ' ')}"
        for name in ("samples", "probes", *ALWAYS, *not_sent)
    ]
    return f"each run: {', '.join(counts[:2])}: {', '.join(counts[2:])}"


def _size_notes(metrics: Sequence[MetricValue]) -> list[str]:
    """The n and the clusters of each metric, as ranges over the cells."""
    by_name: dict[str, list[MetricValue]] = {}
    for metric in metrics:
        by_name.setdefault(metric.metric, []).append(metric)
    sizes = [
        f"{name} {_range([value.n for value in values])}"
        f" ({_range([value.clusters for value in values])} clusters)"
        for name, values in by_name.items()
    ]
    return [f"n: {', '.join(sizes)}"] if sizes else []


def _without_if_right(metrics: Sequence[MetricValue]) -> list[MetricValue]:
    """The metrics without the effect of undecided verdicts, which has a note of its own for each run."""
    return [replace(metric, value_if_right=None) for metric in metrics]


def _range(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,.10g}" if low == high else f"{low:,.10g} to {high:,.10g}"


def _run_notes(point: ResultPoint, names: Sequence[str]) -> list[str]:
    """The notes on a run and these metrics of it, without counts and varied options."""
    result = point.result
    sampling = result.options.get("sampling")
    settings = benchmark_class(result.benchmark).settings
    fixed = settings[result.setting].options if SETTING in point.values else {}
    options = {
        name: value
        for name, value in result.options.items()
        if name not in point.values and (name not in fixed or value != fixed[name])
    }
    if isinstance(sampling, Mapping):
        varied = {name.removeprefix("gen ") for name in point.values}
        options["sampling"] = {name: value for name, value in sampling.items() if name not in varied}
    missing = []
    if result.unanswered == result.probes:
        missing = ["no probe has an answer, so there is no value"]
    elif result.errors:
        missing = [f"{result.errors:,} of {result.probes:,} probes failed and count as not right"]
    metrics = [metric for metric in result.metrics if metric.metric in names]
    _, *notes = run_notes(replace(result, options=options, metrics=metrics))
    return [*missing, *undecided_note(result, names), *notes]


# -- The text of sweep.md: the results of a sweep as tables, then its points


class PointLine(NamedTuple):
    """A point of a sweep: its name, the name of its results folder, and how it ended."""

    point: str
    folder: str | None
    state: str


def sweep_markdown(task: str, results: Sequence[ResultPoint], points: Sequence[PointLine]) -> str:
    tables = [*(pivot(results) if results else []), points_table(points)]
    return f"# {for_markdown(task)}\n\n{markdown(tables)}\n"


def points_table(points: Sequence[PointLine]) -> ReportTable:
    columns = tuple(Column("text", name, name) for name in PointLine._fields)
    return ReportTable("Points", columns, tuple(points))
