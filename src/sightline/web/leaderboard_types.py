"""The records of the leaderboard: what the reader chose, columns, rows and cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from sightline.metric_types import MetricDefinition, MetricValue, PublishedValue
from sightline.reporting.html.plots import PlotCell, Scale


class Choice(Struct, frozen=True):
    """What the reader chose."""

    settings: Mapping[str, str]
    model: str = ""
    judge: str = ""
    sort: str = ""
    published: bool = True
    human: bool = True


class LeaderColumn(Struct, frozen=True):
    """A column: a benchmark in one of its settings."""

    benchmark: str
    title: str
    setting: str
    settings: tuple[str, ...]
    metric: str
    definition: MetricDefinition
    scale: Scale
    n: float
    chance: float | None


class LeaderCell(Struct, frozen=True):
    """A value in the table.

    Attributes:
        value: The value; None if there is none.
        facts: n and the judge, or the table of the paper.
        run: The number of the run; None for a published value.
        figure: The published value; None for a measured one.
    """

    value: MetricValue | None
    plot: PlotCell
    facts: str = ""
    undecided: str = ""
    judge: str = ""
    reason: str = ""
    remark: str = ""
    run: int | None = None
    figure: PublishedValue | None = None


class LeaderRow(Struct, frozen=True):
    """A row: a model, as measured or as published, or humans. `cells` are in the order of the columns."""

    kind: str
    name: str
    model: str
    facts: str
    cells: tuple[LeaderCell, ...]


class LeaderEntry(NamedTuple):
    """A cell with its row and its column."""

    row: LeaderRow
    column: LeaderColumn
    cell: LeaderCell


class Leaderboard(Struct, frozen=True):
    """The whole table; `judges` are those that a reader can choose, `notes` concern the whole table."""

    columns: tuple[LeaderColumn, ...]
    rows: tuple[LeaderRow, ...]
    judges: tuple[str, ...]
    sort: str
    notes: tuple[str, ...]

    @property
    def signs(self) -> list[str]:
        """The kinds of points that its plots have, for the legend."""
        return list(dict.fromkeys(point.kind for one in self.entries() for point in one.cell.plot.points))

    def entries(self) -> Iterator[LeaderEntry]:
        """All cells, row by row."""
        for row in self.rows:
            for column, cell in zip(self.columns, row.cells, strict=True):
                yield LeaderEntry(row, column, cell)
