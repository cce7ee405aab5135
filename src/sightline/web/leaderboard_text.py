"""The leaderboard in words and files: why values are not comparable; CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator

from sightline.counts import counted
from sightline.reporting.report_table import Cell, Column, PublishedCell, ReportTable, n_cell, value_cell
from sightline.web.leaderboard_table import Leaderboard, LeaderCell

MOST_NAMES = 4
"""A note names so many rows, and counts the others."""

INTERVALS = "intervals: 95 % CI over clusters, which are groups that share a source image"
TITLE = "Leaderboard: the primary metric of each benchmark"


def departures(board: Leaderboard) -> list[tuple[str, str]]:
    """Why values are not comparable with the others of their column.

    Args:
        board: The table.

    Returns:
        The title of the column, and the reason with the rows that it concerns.
    """
    found: dict[tuple[str, str], list[str]] = {}
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell.reason:
                found.setdefault((column.title, cell.reason), []).append(row.name)
    return [(title, f"{_names(names)}: {reason}") for (title, reason), names in found.items()]


def csv_table(board: Leaderboard) -> ReportTable:
    """Everything that the leaderboard shows, a row for each value.

    Args:
        board: The table.

    Returns:
        The table for CSV.
    """
    columns = (
        *(_text(name) for name in ("model", "kind", "options", "benchmark", "setting", "metric", "unit")),
        Column("value", "value", ""),
        Column("count", "n", "n"),
        *(_text(name) for name in ("undecided", "judge", "source", "not comparable")),
        Column("count", "run", "run"),
    )
    return ReportTable(TITLE, columns, tuple(_csv_rows(board)))


def paper_table(board: Leaderboard) -> ReportTable:
    """The leaderboard as papers print it: a row for each model, a column for each benchmark.

    Args:
        board: The table.

    Returns:
        The table for LaTeX; an asterisk marks a published value that is not comparable.
    """
    columns = [Column("text", "Model", "model")]
    for one in board.columns:
        unit = {"percent": "%", "points": "points", "number": ""}[one.definition.unit]
        heads = f"{one.title} ({one.setting})", f"{one.metric} {unit}".rstrip()
        columns += [
            Column("value", "\n".join(heads), f"{one.benchmark} {one.metric}"),
            Column("count", f"{heads[0]}\nn", f"{one.benchmark} n"),
        ]
    rows = tuple(
        (f"{row.name} ({row.facts})" if row.facts else row.name, *(_cells(row.kind, row.cells)))
        for row in board.rows
    )
    notes = [f"{title}, not comparable: {words}" for title, words in departures(board)]
    judges = dict.fromkeys(
        f"{column.title}: judged by {cell.judge}"
        for row in board.rows
        for column, cell in zip(board.columns, row.cells, strict=True)
        if cell.judge
    )
    undecided = [
        f"{column.title}, {row.name}: undecided verdicts count as not right; {cell.undecided}"
        for row in board.rows
        for column, cell in zip(board.columns, row.cells, strict=True)
        if cell.undecided
    ]
    return ReportTable(TITLE, tuple(columns), rows, (INTERVALS, *judges, *undecided, *board.notes, *notes))


def _csv_rows(board: Leaderboard) -> Iterator[tuple[Cell, ...]]:
    for row in board.rows:
        for column, cell in zip(board.columns, row.cells, strict=True):
            if cell.value is not None:
                measured = row.kind == "measured"
                yield (
                    *(row.model, row.kind, row.facts, column.benchmark, column.setting),
                    *(column.metric, column.definition.unit),
                    value_cell(cell.value),
                    n_cell(cell.value) if measured else None,
                    *(cell.undecided, cell.judge, "" if measured else cell.facts, cell.reason),
                    cell.run,
                )


def _cells(kind: str, cells: tuple[LeaderCell, ...]) -> Iterator[Cell]:
    for cell in cells:
        value = cell.value
        if value is None or value.value is None:
            yield from (None, None)
        elif kind == "measured":
            yield from (value_cell(value), n_cell(value))
        else:
            yield from (PublishedCell(value.value, None, not cell.reason, value.unit), None)


def _names(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {counted(more, 'other row')}" if more > 0 else "")


def _text(name: str) -> Column:
    return Column("text", name, name)
