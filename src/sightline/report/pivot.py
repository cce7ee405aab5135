"""Several results in one table like those of papers: models as rows, varied values as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import unknown_name
from sightline.metric_types import MetricValue, PublishedValue, Result
from sightline.report.breakdown import label_of
from sightline.report.notes import (
    definition_notes,
    place,
    published_notes,
    run_notes,
    shared_notes,
    value_notes,
)
from sightline.report.report_table import Cell, Column, ReportTable, Spread
from sightline.report.terminal import least_width
from sightline.report.varied_options import (
    ResultPoint,
    leading,
    option_text,
    options_text,
    row_names,
    short_names,
    task_of,
)
from sightline.types import UNCHANGED

COUNTS = ("errors", "misses", "undecided", "truncated")
"""Counts of results that are printed even if they are 0."""


def pivot(points: Sequence[ResultPoint], by: str | None = None) -> list[ReportTable]:
    """Tables of results with models as rows and varied values as columns (MM-R3, Tables 8 and 9).

    There is a table for each benchmark and setting. If only a switch was varied, the second half prints its
    difference to the first in brackets (Tables 2-4). Published figures are further rows. A result without
    any answer leaves its cells empty.

    Args:
        points: The results with their varied options.
        by: A label; its values are columns if nothing was varied (Tables 10-13), otherwise rows under each
            model.

    Returns:
        The tables.

    Raises:
        UserError: No result has subsets of the label `by`.
    """
    labels = dict.fromkeys(label_of(m)[0] for p in points for m in p.result.metrics if m.subset != "all")
    if by is not None and by not in labels:
        raise unknown_name("label", by, labels)
    tasks = dict.fromkeys(task_of(point.result) for point in points)
    return [_pivot([point for point in points if task_of(point.result) == task], by) for task in tasks]


def fitted(table: ReportTable, width: int) -> list[ReportTable]:
    """Split a table into tables of a limited width, as far as possible.

    Args:
        table: The table.
        width: The width in characters.

    Returns:
        The tables; each begins with the text columns, and the columns under one value stay together if
        they fit.
    """
    first = sum(column.kind == "text" for column in table.columns)
    numbers = range(first, len(table.columns))
    dealt: list[list[int]] = [[]]
    for _, block in groupby(numbers, lambda nth: table.columns[nth].head.split("\n")[:-1]):
        together = list(block)
        fits = least_width(_part(table, first, together)) <= width
        for piece in [together] if fits else [[nth] for nth in together]:
            if dealt[-1] and least_width(_part(table, first, [*dealt[-1], *piece])) > width:
                dealt.append([])
            dealt[-1] += piece
    if len(dealt) == 1:
        return [table]
    parts = [_part(table, first, chosen) for chosen in dealt]
    last = replace(parts[-1], notes=table.notes)
    return [parts[0], *(replace(p, title=f"{p.title} (continued)") for p in (*parts[1:-1], last))]


class _Block(Struct, frozen=True):
    """The heading above some columns: its `key` in CSV and JSON, and the lines of its head."""

    key: str
    head: tuple[str, ...] = ()


_Row = tuple[str, ...]
"""The first texts of a row: the model, and a value of the label if its values are rows."""


class _RunMetrics(Struct, frozen=True):
    """The metrics of one run under one block, by name; `run` is its name in notes."""

    row: _Row
    block: _Block
    run: str
    metrics: Mapping[str, MetricValue]


def _pivot(points: Sequence[ResultPoint], by: str | None) -> ReportTable:
    points = sorted(points, key=lambda point: point.values.get(UNCHANGED) is False)
    down = by is not None and any(point.values for point in points)
    shown = leading(points)
    found = _found(points, by, down, shown)
    blocks = list(dict.fromkeys(one.block for one in found))
    contrast = len(blocks) == 2 and all(_is_switched(point.values) for point in points)
    texts = ["model", by] if by and down else ["model"]
    # The names of the varied options stand to the left of their values in the heads.
    over = "\n".join((*(points[0].values if down or by is None else [by]), texts[-1]))
    columns = [Column("text", over if name == texts[-1] else name, name) for name in texts]
    for block in blocks:
        columns += [_column(block, name, contrast and block == blocks[1]) for name in shown]
    rows = _rows(found) | _printed_rows(found)
    return ReportTable(
        _title(points, by),
        tuple(columns),
        tuple((*row, *_cells(cells, blocks, shown, contrast)) for row, cells in rows.items()),
        tuple(_notes(points, found, shown, [_called(block) for block in blocks] if contrast else [])),
    )


def _found(
    points: Sequence[ResultPoint], by: str | None, down: bool, shown: Sequence[str]
) -> list[_RunMetrics]:
    """The shown metrics of each run, under each value of the
    label `by`."""
    found = []
    for name, point in zip(row_names(points), points, strict=True):
        run = ", ".join(filter(None, (name, options_text(point.values))))
        under: dict[str, dict[str, MetricValue]] = {}
        for metric in point.result.metrics:
            label, value = label_of(metric)
            if label == (by or "") and metric.metric in shown:
                under.setdefault(value, {})[metric.metric] = metric
        for value, metrics in under.items():
            block = _block(point.values) if down or by is None else _Block(f"{by}={value}", (value,))
            given = metrics if point.result.errors < point.result.probes else {}
            found.append(_RunMetrics((name, value) if down else (name,), block, run, given))
    return found


def _block(values: Mapping[str, Any]) -> _Block:
    names = {True: "Sampling", False: "All"}
    head = [names[value] if name == UNCHANGED else option_text(value) for name, value in values.items()]
    return _Block(options_text(values), tuple(head))


def _is_switched(values: Mapping[str, Any]) -> bool:
    return len(values) == 1 and isinstance(next(iter(values.values())), bool)


def _column(block: _Block, name: str, differences: bool) -> Column:
    return Column("spread", "\n".join((*block.head, name)), f"{block.key} {name}".strip(), differences)


_Cells = dict[tuple[_Block, str], Spread]
"""The numbers of a row by block and metric."""


def _rows(found: Sequence[_RunMetrics]) -> dict[_Row, _Cells]:
    rows: dict[_Row, _Cells] = {}
    for one in found:
        cells = rows.setdefault(one.row, {})
        for name, m in one.metrics.items():
            cells[one.block, name] = Spread(m.value, m.low, m.high, m.unit)
    return rows


def _printed_rows(found: Sequence[_RunMetrics]) -> dict[_Row, _Cells]:
    """A row for each row and table of the paper, and a second one, marked '*', for figures that are not
    comparable."""
    values: dict[tuple[str, str, _Row], dict[tuple[_Block, str], list[tuple[PublishedValue, Spread]]]] = {}
    for one in found:
        for name, metric in one.metrics.items():
            for value in metric.published or ():
                cells = values.setdefault((value.row, value.table, one.row[1:]), {})
                printed = Spread(value.value, unit=metric.unit)
                cells.setdefault((one.block, name), []).append((value, printed))
    rows: dict[_Row, _Cells] = {}
    for (row, table, label), cells in values.items():
        for where, several in cells.items():
            mark = "" if all(value.comparable for value, _ in several) else " *"
            rows.setdefault((f"{row}, {table}{mark}", *label), {})[where] = several[0][1]
    names = list(dict.fromkeys(row[0] for row in rows))
    return dict(sorted(rows.items(), key=lambda item: names.index(item[0][0])))


def _cells(cells: _Cells, blocks: Sequence[_Block], shown: Sequence[str], contrast: bool) -> list[Cell]:
    made: list[Cell] = []
    for block in blocks:
        for name in shown:
            cell, beside = cells.get((block, name)), cells.get((blocks[0], name))
            if contrast and block != blocks[0] and cell and beside:
                cell = replace(cell, difference=_minus(cell.value, beside.value))
            made.append(cell)
    return made


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other


def _title(points: Sequence[ResultPoint], by: str | None) -> str:
    varied = list(
        dict.fromkeys([*(name for point in points for name in point.values), *([by] if by else [])])
    )
    task = ":".join(task_of(points[0].result))
    return f"{task}, by {' and '.join(varied)}" if varied else task


def _notes(
    points: Sequence[ResultPoint],
    found: Sequence[_RunMetrics],
    shown: Sequence[str],
    contrasted: Sequence[str],
) -> list[str]:
    """The notes of the table; `contrasted` names the two halves that are compared."""
    metrics = [metric for one in found for metric in one.metrics.values()]
    runs = dict.fromkeys(one.run for one in found)
    by_run = [(run, [m for one in found if one.run == run for m in one.metrics.values()]) for run in runs]
    whole = [
        (", ".join(filter(None, (name, options_text(point.values)))), _of_run(point, shown))
        for name, point in zip(row_names(points), points, strict=True)
    ]
    printed = [
        (place(m) if m.subset == one.block.key else f"{place(m)} {one.block.key}".strip(), value)
        for one in found
        for m in one.metrics.values()
        for value in m.published or ()
    ]
    definitions = {name: one for p in points for name, one in p.result.metric_definitions.items()}
    return [
        *_models(points),
        *definition_notes(shown, definitions),
        *(
            ["±: the distance to the farther bound of the 95 % CI"]
            if any(m.low is not None for m in metrics)
            else []
        ),
        *([f"in brackets: {contrasted[1]} minus {contrasted[0]}"] if contrasted else []),
        _counts([point.result for point in points]),
        *_averaged(metrics),
        *_undecided([point.result for point in points]),
        *shared_notes([(run, value_notes(_settled(values))) for run, values in by_run]),
        *shared_notes(whole),
        *published_notes(list(dict.fromkeys(printed))),
    ]


def _called(block: _Block) -> str:
    """'All (unchanged=off)', or 'cot=off' if the head says no more."""
    head = ", ".join(block.head)
    return block.key if head in block.key else f"{head} ({block.key})"


def _models(points: Sequence[ResultPoint]) -> list[str]:
    short = short_names(point.result.model for point in points)
    named = [f"{end} is {whole}" for whole, end in short.items() if end != whole]
    return ["; ".join(named)] if named else []


def _counts(results: Sequence[Result]) -> str:
    """Samples, probes and missing answers, as ranges over the results."""
    words = [
        f"{_range([getattr(r, name) for r in results])} {name}" for name in ("samples", "probes", *COUNTS)
    ]
    return f"each run: {', '.join(words[:2])}: {', '.join(words[2:])}"


def _averaged(metrics: Sequence[MetricValue]) -> list[str]:
    """The n and the clusters of each metric, as ranges over the cells."""
    by_name: dict[str, list[MetricValue]] = {}
    for metric in metrics:
        by_name.setdefault(metric.metric, []).append(metric)
    words = [
        f"{name} {_range([m.n for m in values])} ({_range([m.clusters for m in values])} clusters)"
        for name, values in by_name.items()
    ]
    return [f"n: {', '.join(words)}"] if words else []


def _undecided(results: Sequence[Result]) -> list[str]:
    if not any(result.undecided for result in results):
        return []
    return ["undecided verdicts count as not right; the report of each run says what they could change"]


def _settled(metrics: Sequence[MetricValue]) -> list[MetricValue]:
    """The metrics without the effect of undecided verdicts, which would be too long for several runs."""
    return [replace(metric, value_if_right=None) for metric in metrics]


def _range(numbers: Sequence[float]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low:,.10g}" if low == high else f"{low:,.10g} to {high:,.10g}"


def _of_run(point: ResultPoint, shown: Sequence[str]) -> list[str]:
    """The notes on a run and its shown metrics, without counts and varied options."""
    result = point.result
    sampling = result.options.get("sampling")
    options = {name: value for name, value in result.options.items() if name not in point.values}
    if isinstance(sampling, Mapping):
        varied = {name.removeprefix("gen ") for name in point.values}
        options["sampling"] = {name: value for name, value in sampling.items() if name not in varied}
    missing = []
    if result.errors == result.probes:
        missing = ["no probe has an answer, so there is no value"]
    elif result.errors:
        missing = [f"{result.errors:,} of {result.probes:,} probes have no answer and count as not right"]
    metrics = [metric for metric in result.metrics if metric.metric in shown]
    _, *notes = run_notes(replace(result, options=options, metrics=metrics))
    return [*missing, *notes]


def _part(table: ReportTable, first: int, chosen: Sequence[int]) -> ReportTable:
    """The table with its first columns and the chosen ones, without rows that are empty there."""
    columns = tuple(table.columns[nth] for nth in (*range(first), *chosen))
    rows = tuple(
        (*row[:first], *(row[nth] for nth in chosen))
        for row in table.rows
        if any(row[nth] is not None for nth in chosen)
    )
    return ReportTable(table.title, columns, rows)
