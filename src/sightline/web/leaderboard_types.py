"""The records of the leaderboard: what the reader chose, columns, rows and cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from sightline.metric_types import MetricDefinition, MetricValue, PublishedValue
from sightline.reporting.html.plots import PlotCell, Scale


class Choice(Struct, frozen=True):
    """What the reader chose.

    Attributes:
        settings: Benchmark -> the setting of its column; the most used one for other benchmarks.
        model: A part of the model's name; '' for all models.
        judge: The judge whose verdicts count; '' for that of each run.
        sort: The benchmark that orders the rows; '' for the first.
        published: Whether published rows are shown.
        human: Whether the rows of humans are shown.
    """

    settings: Mapping[str, str]
    model: str = ""
    judge: str = ""
    sort: str = ""
    published: bool = True
    human: bool = True


class LeaderColumn(Struct, frozen=True):
    """A column: a benchmark in one of its settings.

    Attributes:
        benchmark: The name of the benchmark.
        title: Its short title.
        setting: The setting.
        settings: The settings that the store has runs of.
        metric: The primary metric.
        definition: What the metric means.
        scale: The scale of the plots.
        n: What most of its values average over.
        chance: The value that guessing gives, if the benchmark declares one.
    """

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
        plot: Its plot.
        facts: n and the judge, or the table of the paper.
        undecided: How many verdicts are undecided, and the value if all of them were right; '' if they change
            nothing.
        judge: Who decided; '' for a published value.
        reason: Why it is not comparable with the others of the column; '' if it is.
        remark: What else to know about a published value that is comparable, such as who judged it.
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
    """A row: a model, as measured or as published, or humans. `cells` are in the order of the columns.

    Attributes:
        kind: `measured`, `published` or `human`.
        name: The model, without its server where that stays distinct.
        model: The model as the user named it.
        facts: The options that distinguish it.
        cells: The values.
    """

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
