"""The leaderboard in words and files: why values are not comparable; CSV and LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sightline.counts import counted
from sightline.reporting.report_table import Cell, Column, PublishedCell, ReportTable, n_cell, value_cell
from sightline.web.leaderboard_types import Leaderboard, LeaderCell

MOST_NAMES = 4
"""A note names so many rows, and counts the others."""

INTERVALS = "intervals: 95 % CI over clusters, which are groups that share a source image"
TITLE = "Leaderboard: the primary metric of each benchmark"


class Remark(NamedTuple):
    """A note on some cells of a column: its mark, its title, and words with the rows that they concern."""

    mark: str
    title: str
    words: str


def remarks(board: Leaderboard) -> list[Remark]:
    """Why values are not comparable with the others of their column, and what else to know about them."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row, column, cell in board.entries():
        if cell.reason:
            found.setdefault(("≠", f"{column.title}, not comparable", cell.reason), []).append(row.name)
        elif cell.remark:
            found.setdefault(("†", column.title, cell.remark), []).append(row.name)
    made = [Remark(mark, title, f"{_names(names)}: {words}") for (mark, title, words), names in found.items()]
    return sorted(made, key=lambda one: one.mark, reverse=True)


def csv_table(board: Leaderboard) -> ReportTable:
    """Everything that the leaderboard shows, a row for each value."""
    columns = (
        *(_text(name) for name in ("model", "kind", "options", "benchmark", "setting", "metric", "unit")),
        Column("value", "value", ""),
        Column("count", "n", "n"),
        *(_text(name) for name in ("undecided", "judge", "source", "not comparable", "remark")),
        Column("count", "run", "run"),
    )
    return ReportTable(TITLE, columns, tuple(_csv_rows(board)))


def paper_table(board: Leaderboard) -> ReportTable:
    """The leaderboard as papers print it: a row for each model, a column for each benchmark."""
    columns = [Column("text", "Model", "model")]
    for one in board.columns:
        unit = {"percent": "%", "points": "points", "number": ""}[one.definition.unit]
        heads = f"{one.title} ({one.setting})", f"{one.metric} {unit}".rstrip()
        columns += [
            Column("value", "\n".join(heads), f"{one.benchmark} {one.metric}"),
            Column("count", f"{heads[0]}\nn", f"{one.benchmark} n"),
        ]
    rows = tuple(
        (f"{row.name} ({row.facts})" if row.facts else row.name, *_cells(row.cells)) for row in board.rows
    )
    notes = [f"{one.mark.replace('≠', '*')} {one.title}: {one.words}" for one in remarks(board)]
    judges = dict.fromkeys(
        f"{column.title}: judged by {cell.judge}" for _, column, cell in board.entries() if cell.judge
    )
    undecided = [
        f"{column.title}, {row.name}: undecided verdicts count as not right; {cell.undecided}"
        for row, column, cell in board.entries()
        if cell.undecided
    ]
    return ReportTable(TITLE, tuple(columns), rows, (INTERVALS, *judges, *undecided, *board.notes, *notes))


def _csv_rows(board: Leaderboard) -> Iterator[tuple[Cell, ...]]:
    for row, column, cell in board.entries():
        if cell.value is not None:
            measured = row.kind == "measured"
            yield (
                *(row.model, row.kind, row.facts, column.benchmark, column.setting),
                *(column.metric, column.definition.unit),
                value_cell(cell.value),
                n_cell(cell.value) if measured else None,
                *(cell.undecided, cell.judge, "" if measured else cell.facts, cell.reason, cell.remark),
                cell.run,
            )


def _cells(cells: tuple[LeaderCell, ...]) -> Iterator[Cell]:
    for cell in cells:
        if cell.figure is not None and cell.value is not None:
            yield from (PublishedCell(cell.figure, None, cell.value.unit), None)
        elif cell.value is None or cell.value.value is None:
            yield from (None, None)
        else:
            yield from (value_cell(cell.value), n_cell(cell.value))


def _names(names: list[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {counted(more, 'other row')}" if more > 0 else "")


def _text(name: str) -> Column:
    return Column("text", name, name)
