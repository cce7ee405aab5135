"""The figures that a benchmark's paper printed, as data: one JSON file a paper, one entry a printed table.

A figure that several tables repeat is stored where the paper printed it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.errors import UserError, unknown_name
from sightline.formats.files import json_digest
from sightline.types import PublishedValue

FigureKey = tuple[str, str]
"""Metric and subset, spelled as in metrics.json: ('acc_p', 'category=Attributes')."""


class PublishedJudges(Struct, frozen=True):
    """A printed table that compares judges and text metrics with humans; `note` says on which answers.

    `rows` hold the statistics that `columns` name, as in a judge report: roc_auc in percent, spearman from
    -1 to 1.
    """

    table: str
    note: str
    columns: list[str]
    rows: dict[str, list[float]]


class MarkedCell(Struct, frozen=True, array_like=True):
    """A cell with a footnote."""

    value: float
    mark: str


class Footnote(Struct, frozen=True):
    """The footnote of a cell; `options` are those of the cell that differ from the rest of its row."""

    text: str
    comparable: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class FigureColumn(Struct, frozen=True, array_like=True):
    """What a column holds.

    `n` is what its cells average over according to the paper (a share should be k/n), 0 if the paper does
    not say.
    """

    setting: str
    metric: str
    subset: str
    n: int
    mark: str | None = None


class PublishedTable(Struct, frozen=True):
    """A printed table, without the cells that an earlier table holds.

    With `counts`, the cells are counts of n and not percent. `note` and `comparable` apply to the cells
    without a footnote.
    """

    table: str
    columns: list[FigureColumn]
    rows: dict[str, list[float | MarkedCell | None]]
    note: str | None = None
    comparable: bool = True
    counts: bool = False
    footnotes: dict[str, Footnote] = field(default_factory=dict)


class PublishedSetting(Struct, frozen=True):
    """What the paper ran: the number of samples, and the options that distinguish the setting."""

    samples: int
    options: dict[str, Any]


class Paper(Struct, frozen=True):
    """A paper: its row of humans, if it has one, its further rows of humans, what it ran, its tables.

    `options` hold for all its figures, `row_options` for those of a row. `concerns` lists the metrics that
    an option affects, where it does not affect all. An option within another one is written
    'sampling.temperature'. `whole` names the metrics whose n must equal the n of the column, unless a unit
    has no answer key or was not decided. `equivalence` maps a builder to the share of its variants that
    humans found equivalent to their originals.
    """

    paper: str
    unit: str
    options: dict[str, Any]
    settings: dict[str, PublishedSetting]
    tables: list[PublishedTable]
    human: str | None = None
    other_humans: list[str] = field(default_factory=list)
    row_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    concerns: dict[str, list[str]] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)
    judges: PublishedJudges | None = None
    equivalence: dict[str, PublishedValue] = field(default_factory=dict)

    @property
    def row_names(self) -> list[str]:
        """The rows of all tables in printed order, each once."""
        return list(dict.fromkeys(row for table in self.tables for row in table.rows))

    @property
    def human_rows(self) -> list[str]:
        """The rows of humans: the one that stands beside every result, then the others."""
        return [*([self.human] if self.human else []), *self.other_humans]

    def row(self, name: str) -> str:
        """Find a row by its name in any case and punctuation."""
        for printed in self.row_names:
            if _plain(printed) == _plain(name):
                return printed
        raise unknown_name(f"row of {self.paper}:", name, self.row_names)

    def figures(self, setting: str, row: str) -> dict[FigureKey, list[Figure]]:
        """List the figures of a row in a setting, which is named as in the paper."""
        figures: dict[FigureKey, list[Figure]] = {}
        for table in self.tables:
            for column, cell in zip(table.columns, table.rows.get(row, ()), strict=row in table.rows):
                if setting == column.setting and cell is not None:
                    figure = _figure(self, row, table, column, cell)
                    figures.setdefault((column.metric, column.subset), []).append(figure)
        return figures


class Figure(Struct, frozen=True):
    """A printed figure with its conditions.

    `n` is what its column averages over (0: unknown). `samples` and `options` are those of the paper's run.
    """

    value: PublishedValue
    n: int
    samples: int
    options: dict[str, Any]


def paper_of(benchmark: str) -> Paper | None:
    """Read the figures of a benchmark's paper; None if it is not installed or declares no figures."""
    file = benchmark_class(benchmark).published
    return None if file is None else _read(file)


def papers() -> list[str]:
    return [name for name in benchmark_names() if benchmark_class(name).published is not None]


def published(benchmark: str, setting: str, row: str) -> dict[FigureKey, list[PublishedValue]]:
    """Look up the figures that a paper printed for a row in a setting, in percent.

    CODIS prints acc_p and acc_q twice, judged by humans (Table 3, first) and by GPT-4 (Table 10).
    """
    paper = paper_of(benchmark)
    if paper is None:
        raise no_figures(benchmark)
    figures = paper.figures(setting, paper.row(row))
    return {key: [figure.value for figure in printed] for key, printed in figures.items()}


def rows(benchmark: str) -> list[str]:
    """List the rows of a benchmark's paper in printed order; none if there is no paper."""
    paper = paper_of(benchmark)
    return [] if paper is None else paper.row_names


def published_judges(benchmark: str) -> PublishedJudges | None:
    """Look up how the paper's judges and metrics agree with its humans; None if it prints no such table."""
    paper = paper_of(benchmark)
    return None if paper is None else paper.judges


def published_equivalence(kind: str) -> list[PublishedValue]:
    """The share in percent of variants that humans found equivalent, by each paper that measured it."""
    found = [paper_of(name) for name in papers()]
    return [paper.equivalence[kind] for paper in found if paper is not None and kind in paper.equivalence]


def no_figures(benchmark: str) -> UserError:
    return UserError(
        f"no published figures of '{benchmark}' to compare with", expected=f"one of {', '.join(papers())}"
    )


def joined(*notes: str) -> str | None:
    """Join notes with semicolons; None if there are none."""
    return "; ".join(note for note in notes if note) or None


@cache
def _read(file: Path) -> Paper:
    return msgspec.json.decode(file.read_bytes(), type=Paper)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _figure(
    paper: Paper, row: str, table: PublishedTable, column: FigureColumn, cell: float | MarkedCell
) -> Figure:
    value, mark = (cell.value, cell.mark) if isinstance(cell, MarkedCell) else (cell, column.mark)
    footnote = table.footnotes[mark] if mark else Footnote(table.note or "", table.comparable)
    counts = f"counts in the paper, here in percent of {column.n} outputs" if table.counts else ""
    printed = PublishedValue(
        row=row,
        value=100 * value / column.n if table.counts else value,
        table=table.table,
        comparable=footnote.comparable,
        note=joined(counts, footnote.text),
    )
    setting = paper.settings[column.setting]
    options = {**paper.options, **paper.row_options.get(row, {}), **setting.options, **footnote.options}
    unaffected = [name for name, metrics in paper.concerns.items() if column.metric not in metrics]
    return Figure(
        printed,
        column.n,
        setting.samples,
        {name: value for name, value in options.items() if name not in unaffected},
    )


# -- Whether samples are those of the paper, by the pinned digests of its released records

DIGITS = 16
"""The number of hexadecimal digits of a pinned digest."""


def record_digest(sample: str, record: Any) -> str:
    return json_digest([sample, record])[:DIGITS]


def foreign_samples(
    benchmark: Benchmark,
    samples: Iterable[str],
    folder: Path | None,
    split: str,
    options: Mapping[str, Any],
) -> list[str]:
    """List the samples whose records the paper did not release in this form.

    A part of the released records, as --limit takes, has no foreign sample.

    Args:
        folder: The data folder, or None.

    Returns:
        The ids, in their order; none for a benchmark that pins no digests.
    """
    if benchmark.released_digests is None:
        return []
    pinned = pinned_digests(benchmark.released_digests)
    records = benchmark.released_records(folder, split, options)
    return [
        name for name in samples if name not in records or record_digest(name, records[name]) not in pinned
    ]


@cache
def pinned_digests(file: Path) -> frozenset[str]:
    return frozenset(msgspec.json.decode(file.read_bytes(), type=list[str]))
