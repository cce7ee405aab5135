"""Several results in one table like those of papers: models as rows, varied values as columns; sweep.md."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sightline.benchmarks.registry import benchmark_class
from sightline.benchmarks.released import paper_of
from sightline.errors import unknown_name
from sightline.formats.prediction import FILE_MODEL
from sightline.reporting.notes import (
    COUNTS,
    ResultPoint,
    caveats,
    definition_notes,
    definitions_of,
    interval_notes,
    label_of,
    naming_notes,
    option_text,
    options_text,
    place,
    published_notes,
    row_names,
    run_legend,
    shared_notes,
    short_names,
    task_of,
    undecided_note,
    value_notes,
)
from sightline.reporting.table import Cell, Column, ReportTable, Value, estimate, heading
from sightline.reporting.tables import check_metrics, leading_metrics, markdown
from sightline.text import for_markdown
from sightline.types import MetricValue, PublishedValue, Result, subset_name


def pivot(
    points: Sequence[ResultPoint], by: str | None = None, metrics: Sequence[str] = ()
) -> list[ReportTable]:
    """Tables of results with models as rows and varied values as columns (MM-R3, Tables 8 and 9).

    There is a table for each benchmark and setting; settings that a table of the paper has as columns are in
    one table (II-Bench, Tables 4 and 5). If only a switch was varied, the second half prints its
    difference to the first in brackets (Tables 2-4). Published figures are further rows. A result without
    any answer leaves its cells empty. Without `metrics`, the leading ones are shown.
    """
    check_metrics([point.result for point in points], metrics)
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
        # Of other metrics than the joined table's, another one may have more figures (II-Bench, Table 9).
        *(_pivot(of, None, None if metrics else table, metrics) for (_, table), of in joined.items()),
        *(_pivot(of, by, None, metrics) for of in alone),
    ]


def settings_tables(points: Sequence[ResultPoint]) -> list[ReportTable]:
    """The tables whose columns are settings, as in the paper; none if the results have no such settings."""
    return [_pivot(of, None, table) for (_, table), of in settings_as_columns(points).items()]


def settings_as_columns(points: Sequence[ResultPoint]) -> dict[tuple[str, str], list[ResultPoint]]:
    """Join results of settings that the paper prints beside each other, a column each, in its order.

    Settings of which options vary are not joined.

    Returns:
        Benchmark and table of the paper -> the results.
    """
    joined = {}
    for name in dict.fromkeys(point.result.benchmark for point in points):
        paper = paper_of(name)
        metrics = benchmark_class(name).leading_metrics
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
            if columns != {metrics[0]}:
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


class _Block(NamedTuple):
    """The heading above some columns: its `key` in CSV and JSON, and the lines of its head."""

    key: str
    head: tuple[str, ...] = ()


SETTING = "setting"
"""The varied value of results whose settings are columns."""

OVERALL = _Block("all", ("Overall",))
"""The block of all samples before those of a label (II-Bench, Table 3; ConTextual, Table 5)."""

_Row = tuple[str, ...]
"""The first texts of a row: the model, and a value of the label if its values are rows."""

_Cells = dict[tuple[_Block, str], Value]
"""The numbers of a row by block and metric."""


class _Placed(NamedTuple):
    """A value at its place; `run` is the name of its run in notes."""

    row: _Row
    block: _Block
    run: str
    metric: MetricValue


def _pivot(
    points: Sequence[ResultPoint], by: str | None, table: str | None = None, named: Sequence[str] = ()
) -> ReportTable:
    """A table, with the figures of one of the paper; of the one that fits best if `table` has none.

    Where options vary, they are the blocks of columns, and the values of the label are rows under each model;
    otherwise the values of the label are the blocks.
    """
    points = in_label_order(points)
    across = not any(point.values for point in points)
    results = [point.result for point in points]
    shown = named or leading_metrics(results[0].benchmark, [one.metrics for one in results], by)
    rows: dict[_Row, _Cells] = {}
    blocks: list[_Block] = []
    placed: list[_Placed] = []
    for name, point in zip(row_names(points), points, strict=True):
        has_answers = point.result.unanswered < point.result.probes
        for (row, block), metrics in _places(name, point, shown, by, across=across).items():
            cells = rows.setdefault(row, {})
            blocks += [] if block in blocks else [block]
            for metric in metrics if has_answers else ():
                cells[block, metric.metric] = estimate(metric)
                placed.append(_Placed(row, block, _run_name(name, point), metric))
    switched = all([type(value) for value in p.values.values()] == [bool] for p in points)
    compared = blocks if len(blocks) == 2 and switched else []
    if not any(_of_table(value.metric, table) for value in placed):
        table = _shown_table(placed)
    # The heads of the last column of texts name the varied options, left of their values.
    names = ["model", by] if by and not across else ["model"]
    varied = [by] if by and across else list(points[0].values)
    columns = [Column("text", heading(name), name) for name in names[:-1]]
    columns += [Column("text", heading(*varied, names[-1]), names[-1])]
    for block in blocks:
        for name in shown:
            key = f"{block.key} {name}".strip()
            columns.append(Column("spread", heading(*block.head, name), key, block in compared[1:]))
    return ReportTable(
        _title(points, by),
        tuple(columns),
        tuple(
            (*row, *_row_cells(cells, blocks, shown, compared))
            for row, cells in (rows | _published_rows(placed, table)).items()
        ),
        tuple(_notes(points, placed, shown, table)),
        legend=tuple(_legend(points, [value.metric for value in placed], shown, compared)),
    )


def _places(
    name: str, point: ResultPoint, shown: Sequence[str], by: str | None, *, across: bool
) -> dict[tuple[_Row, _Block], list[MetricValue]]:
    """The metrics of a run at each row and block.

    Papers print those over all samples beside those by label, unless one has no such value (MM-R3, Tables
    10-13).
    """
    places: dict[tuple[_Row, _Block], list[MetricValue]] = {}
    whole = [one for one in point.result.metrics if one.subset == "all" and one.metric in shown]
    if by and across and whole and len(whole) == len(shown):
        places[(name,), OVERALL] = whole
    for metric in point.result.metrics:
        label, value = label_of(metric)
        if label == (by or "") and metric.metric in shown:
            row = (name, value) if by and not across else (name,)
            varied = _Block(options_text(point.values), value_labels(point))
            block = _Block(subset_name(label, value), (value,)) if by and across else varied
            places.setdefault((row, block), []).append(metric)
    return places


def _run_name(name: str, point: ResultPoint) -> str:
    return ", ".join(filter(None, (name, options_text(point.values))))


def _shown_table(placed: Sequence[_Placed]) -> str | None:
    """The table of the paper whose figures are shown; None if it has none.

    Figures of two tables were often taken under other conditions, so only those of one are beside each
    other: the one with figures for most columns, then for most cells; of equal ones the one printed first.
    """
    columns: dict[str, set[object]] = {}
    covered: dict[str, set[object]] = {}
    for (_, *label), block, _, metric in placed:
        for figure in metric.published or ():
            for table in (figure.table, *figure.also):
                columns.setdefault(table, set()).add((block, metric.metric))
                covered.setdefault(table, set()).add((figure.row, block, metric.metric, *label))
    return max(covered, key=lambda table: (len(columns[table]), len(covered[table])), default=None)


def _published_rows(placed: Sequence[_Placed], table: str | None) -> dict[_Row, _Cells]:
    """The rows of a table of the paper, each with a second one, marked '*', for figures that are not
    comparable."""
    figures: dict[_Row, dict[tuple[_Block, str], list[tuple[PublishedValue, Value]]]] = {}
    for (_, *label), block, _, metric in placed:
        for figure in _of_table(metric, table):
            cells = figures.setdefault((figure.row, *label), {})
            cell = Value(figure.value, unit=metric.unit)
            cells.setdefault((block, metric.metric), []).append((figure, cell))
    rows: dict[_Row, _Cells] = {}
    for (name, *label), by_column in figures.items():
        for column, several in by_column.items():
            mark = "" if all(figure.comparable for figure, _ in several) else " *"
            rows.setdefault((f"{name}, {table}{mark}", *label), {})[column] = several[0][1]
    names = list(dict.fromkeys(row[0] for row in rows))
    return dict(sorted(rows.items(), key=lambda item: names.index(item[0][0])))


def _of_table(metric: MetricValue, table: str | None) -> list[PublishedValue]:
    return [figure for figure in metric.published or () if table in (figure.table, *figure.also)]


def _row_cells(
    cells: _Cells, blocks: Sequence[_Block], shown: Sequence[str], compared: Sequence[_Block]
) -> list[Cell]:
    """The cells of a row; those of the second compared block hold the difference from the first."""
    row: list[Cell] = []
    for block in blocks:
        for name in shown:
            cell, first = cells.get((block, name)), cells.get((blocks[0], name))
            if block in compared[1:] and cell and first and None not in (cell.value, first.value):
                cell = replace(cell, difference=(cell.value or 0.0) - (first.value or 0.0))
            row.append(cell)
    return row


def _title(points: Sequence[ResultPoint], by: str | None) -> str:
    varied = list(
        dict.fromkeys([*(name for point in points for name in point.values), *([by] if by else [])])
    )
    task = points[0].result.benchmark if SETTING in varied else ":".join(task_of(points[0].result))
    return f"{task}, by {' and '.join(varied)}" if varied else task


def _notes(
    points: Sequence[ResultPoint],
    placed: Sequence[_Placed],
    shown: Sequence[str],
    table: str | None,
) -> list[str]:
    """What limits the values: of all runs, then of some of them, then of the published figures."""
    metrics = [value.metric for value in placed]
    by_run: dict[str, list[MetricValue]] = {}
    for value in placed:
        # The effect of undecided verdicts has a note of its own for each run.
        by_run.setdefault(value.run, []).append(replace(value.metric, value_if_right=None))
    own = [
        (_run_name(name, point), _caveats(point, shown))
        for name, point in zip(row_names(points), points, strict=True)
    ]
    published = [
        (_place_in_block(value.metric, value.block), figure)
        for value in placed
        for figure in _of_table(value.metric, table)
    ]
    others = dict.fromkeys(
        figure.table
        for metric in metrics
        for figure in metric.published or ()
        if table not in (figure.table, *figure.also)
    )
    return [
        # Without an identity, it is no run: the average of several humans, or their range.
        _count_note([point.result for point in points if point.result.model_identity]),
        *shared_notes(own),
        *shared_notes([(run, value_notes(values)) for run, values in by_run.items()]),
        *published_notes(list(dict.fromkeys(published))),
        *([f"figures of one table are shown, {table}; not shown: {', '.join(others)}"] if others else []),
        *_model_notes(points),
    ]


def _legend(
    points: Sequence[ResultPoint],
    metrics: Sequence[MetricValue],
    shown: Sequence[str],
    compared: Sequence[_Block],
) -> list[str]:
    """What metrics and brackets mean, and how the runs came about."""
    named = zip(row_names(points), points, strict=True)
    return [
        *definition_notes(shown, definitions_of([point.result for point in points])),
        *interval_notes(metrics),
        *([f"in parentheses: {_described(compared[1])} minus {_described(compared[0])}"] if compared else []),
        *_size_notes(metrics),
        *shared_notes([(_run_name(name, point), _run_legend(point, shown)) for name, point in named]),
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
    files = {point.result.model for point in points if point.result.model.startswith(FILE_MODEL)}
    one_name = "each file is a model of its own: `score --model NAME` gives the files of one model one row"
    is_varied = any(SETTING in point.values for point in points)
    return [
        *naming_notes((name, model) for model, name in short.items()),
        *([one_name] if is_varied and len(files) > 1 else []),
    ]


def _count_note(results: Sequence[Result]) -> str:
    found = {name: [getattr(result, name) for result in results] for name in ("samples", "probes", *COUNTS)}
    counts = [
        f"{_range(numbers)} {name.replace('_', ' ')}"
        for name, numbers in found.items()
        if any(numbers) or name in ("samples", "probes", "errors")
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


def _range(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,.10g}" if low == high else f"{low:,.10g} to {high:,.10g}"


def _caveats(point: ResultPoint, names: Sequence[str]) -> list[str]:
    """What limits these metrics of a run."""
    return [*undecided_note(point.result, names), *caveats(point.result)]


def _run_legend(point: ResultPoint, names: Sequence[str]) -> list[str]:
    """How a run and these metrics of it came about, without varied options."""
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
    metrics = [metric for metric in result.metrics if metric.metric in names]
    shown = replace(result, options=options, metrics=metrics)
    return [f"judged by {result.judge}", *run_legend(shown)]


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
