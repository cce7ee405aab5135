"""The papers' printed figures as data, and their place beside the figures of a run.

One file a paper, one entry a printed table. A figure that several tables repeat stands where it was
printed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.errors import UserError, unknown_name
from sightline.types import MetricValue, PublishedValue, Result

FEW_ERRORS = 0.01
"""The share of probes that may lack an answer, or a verdict, before a figure is no longer comparable."""

NOT_THEIRS: Mapping[str, str] = {
    "synthetic": "synthetic scenes, not the data of the paper: no published figures beside them",
    "other_data": "other data than the paper released: no published figures beside them",
}
"""The options that mark data which no paper printed figures of, and what is told of them."""

Place = tuple[str, str]
"""Metric and subset, spelt as in metrics.json: ('acc_p', 'category=Attributes')."""


@cache
def papers() -> tuple[str, ...]:
    """The benchmarks whose papers stand here: one file each, named after it."""
    names = (file.name for file in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name.endswith(".json")))


def published(benchmark: str, setting: str, row: str) -> dict[Place, list[PublishedValue]]:
    """The figures that the paper printed for `row` (a model, or people) in this setting, in percent.

    Empty for a setting that the paper does not have. CODIS prints acc_p and acc_q twice, judged by
    people (Table 3, first) and by GPT-4 (Table 10). `row` may be written in any case and punctuation.

    Raises UserError where the paper has no such row, or Sightline no figures of this benchmark.
    """
    paper = _known(benchmark)
    figures = _figures(paper, setting, _row(paper, benchmark, row))
    return {place: [figure.value for figure in printed] for place, printed in figures.items()}


def rows(benchmark: str) -> list[str]:
    """The rows of the benchmark's paper in printed order; none where there is no paper."""
    if benchmark not in papers():
        return []
    return list(dict.fromkeys(row for table in _paper(benchmark).tables for row in table.rows))


def published_judges(benchmark: str) -> Judges | None:
    """How far the paper's judges and metrics agree with its people; None where it does not say."""
    return _paper(benchmark).judges if benchmark in papers() else None


class Judges(Struct, frozen=True):
    """A printed table of judges and text metrics against people, of the answers that `note` tells.

    `rows` hold the statistics that `columns` name, as a judge report does: roc_auc in percent, spearman -1-1.
    """

    table: str
    note: str
    columns: list[str]
    rows: dict[str, list[float]]


def attach(result: Result, against: str | None = None) -> Result:
    """The same result with the paper's figures beside each metric: `against`, where given, then people.

    Where the paper prints a figure both for exactly what was run (at this size, this temperature) and for
    its own default, the former stands. A figure is not comparable, and says why, where the paper took it
    on something else, and where this run took other samples or other options than the paper, or a subset
    of it fewer. A row without figures for what was run is said in the notes. No figure stands beside data
    that are not the paper's.

    Raises UserError where the paper has no row `against`.
    """
    if result.benchmark not in papers():
        if against is not None:
            raise _no_figures(result.benchmark)
        return result
    paper = _paper(result.benchmark)
    named = [] if against is None else [_row(paper, result.benchmark, against)]
    not_theirs = next((why for option, why in NOT_THEIRS.items() if result.options.get(option)), None)
    if not_theirs is not None:
        return replace(result, notes=list(dict.fromkeys([*result.notes, not_theirs])))
    settings = _settings_of(paper, result)
    humans = [paper.human] if paper.human else []
    by_row = {
        row: {place: figures for name in settings for place, figures in _figures(paper, name, row).items()}
        for row in dict.fromkeys([*named, *humans])
    }
    silent = [f"{paper.paper}: no figure of {row} for what was run" for row in named if not by_row[row]]
    return replace(
        result,
        metrics=[_beside(metric, list(by_row.values()), paper, result) for metric in result.metrics],
        notes=list(dict.fromkeys([*result.notes, *silent])),
    )


class _Marked(Struct, frozen=True, array_like=True):
    """A cell with a footnote."""

    value: float
    mark: str


class _Footnote(Struct, frozen=True):
    """What is said of a cell; `options` are those that it was taken with, unlike the others of its row."""

    text: str
    comparable: bool = False
    options: dict[str, Any] = field(default_factory=dict)


class _Column(Struct, frozen=True, array_like=True):
    """What a column holds; `n` is what its cells average over as the paper says (a share should be k/n), or
    0 where it does not."""

    setting: str
    metric: str
    subset: str
    n: int
    mark: str | None = None


class _Table(Struct, frozen=True):
    """A printed table, less the cells that an earlier one holds already.

    `counts`: the cells are counts of n and not percent. `note` and `comparable` are those of the cells
    without a footnote.
    """

    table: str
    columns: list[_Column]
    rows: dict[str, list[float | _Marked | None]]
    note: str | None = None
    comparable: bool = True
    counts: bool = False
    footnotes: dict[str, _Footnote] = field(default_factory=dict)


class _Setting(Struct, frozen=True):
    """What the paper ran: on how many samples, and the options that tell it from its other settings."""

    samples: int
    options: dict[str, Any]


class _Paper(Struct, frozen=True):
    """A paper: its row of people, where it has one, what it ran, its tables.

    `options` are those of all its figures, `row_options` those of a row, `concerns` the only metrics that
    an option makes a difference to, where it does not to all. An option within another is written
    'sampling.temperature'. `whole` names the metrics that average over what their columns do, unless some of
    it has no key or was not decided.
    """

    paper: str
    unit: str
    options: dict[str, Any]
    settings: dict[str, _Setting]
    tables: list[_Table]
    human: str | None = None
    row_options: dict[str, dict[str, Any]] = field(default_factory=dict)
    concerns: dict[str, list[str]] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)
    judges: Judges | None = None


class _Figure(Struct, frozen=True):
    """A printed figure, what its column averages over (0: not known), and the samples and options that the
    paper took it with."""

    value: PublishedValue
    n: int
    samples: int
    options: dict[str, Any]


@cache
def _paper(benchmark: str) -> _Paper:
    text = files(__package__).joinpath(f"{benchmark}.json").read_bytes()
    return msgspec.json.decode(text, type=_Paper)


def _known(benchmark: str) -> _Paper:
    if benchmark not in papers():
        raise _no_figures(benchmark)
    return _paper(benchmark)


def _no_figures(benchmark: str) -> UserError:
    return UserError(
        f"no published figures of '{benchmark}' to compare with", expected=f"one of {', '.join(papers())}"
    )


def _row(paper: _Paper, benchmark: str, row: str) -> str:
    known = rows(benchmark)
    for name in known:
        if _plain(name) == _plain(row):
            return name
    raise unknown_name(f"row of {paper.paper}:", row, known)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def _figures(paper: _Paper, setting: str, row: str) -> dict[Place, list[_Figure]]:
    """What the tables hold for this row in one of the paper's settings."""
    figures: dict[Place, list[_Figure]] = {}
    for table in paper.tables:
        for column, cell in zip(table.columns, table.rows.get(row, ()), strict=row in table.rows):
            if setting == column.setting and cell is not None:
                figure = _figure(paper, row, table, column, cell)
                figures.setdefault((column.metric, column.subset), []).append(figure)
    return figures


def _figure(paper: _Paper, row: str, table: _Table, column: _Column, cell: float | _Marked) -> _Figure:
    value, mark = (cell.value, cell.mark) if isinstance(cell, _Marked) else (cell, column.mark)
    footnote = table.footnotes[mark] if mark else _Footnote(table.note or "", table.comparable)
    counted = f"counts in the paper, here in percent of {column.n} outputs" if table.counts else ""
    printed = PublishedValue(
        row=row,
        value=100 * value / column.n if table.counts else value,
        table=table.table,
        comparable=footnote.comparable,
        note=_joined(counted, footnote.text),
    )
    setting = paper.settings[column.setting]
    options = {**paper.options, **paper.row_options.get(row, {}), **setting.options, **footnote.options}
    idle = [name for name, metrics in paper.concerns.items() if column.metric not in metrics]
    concerning = {name: options[name] for name in options if name not in idle}
    return _Figure(printed, column.n, setting.samples, concerning)


def _settings_of(paper: _Paper, result: Result) -> list[str]:
    """The paper's names for what was run, which options may have made another setting, the most exact
    last. Empty for what it did not run."""
    ours = _flat(result.options)
    found = [
        name
        for name, setting in paper.settings.items()
        if _agree(setting.options, {**setting.options, **ours} if name == result.setting else ours)
    ]
    return sorted(found, key=lambda name: len(paper.settings[name].options))


def _agree(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    return all(_same(ours.get(name), value) for name, value in theirs.items())


def _same(ours: Any, theirs: Any) -> bool:
    """Whether two values of an option are one, which may be written as a text here: '224' is 224."""
    return bool(ours == theirs) or (isinstance(ours, str) and ours == str(theirs))


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by name, those within another one as 'sampling.temperature'."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        within = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{inner}": v for inner, v in within.items()} or {name: value}
    return flat


def _beside(
    metric: MetricValue, by_row: Sequence[Mapping[Place, Sequence[_Figure]]], paper: _Paper, result: Result
) -> MetricValue:
    figures = [figure for row in by_row for figure in row.get((metric.metric, metric.subset), ())]
    values = [_departed(figure.value, _departure(figure, metric, paper, result)) for figure in figures]
    return replace(metric, published=values or None)


def _departure(figure: _Figure, metric: MetricValue, paper: _Paper, result: Result) -> str:
    """How this value of a run differs from what the paper took for this figure."""
    ours = _flat(result.options)
    others = [
        f"{name.rpartition('.')[2]} {ours[name]} here, {'none' if theirs is None else theirs} in the paper"
        for name, theirs in figure.options.items()
        if ours.get(name) is not None and not _same(ours[name], theirs)
    ]
    if result.samples != figure.samples:
        others.append(f"{result.samples:,} {paper.unit} here, {figure.samples:,} in the paper")
    elif metric.metric in paper.whole and 0 < metric.n < (1 - FEW_ERRORS) * figure.n * _repeats(result):
        others.append(f"over {metric.n:,.0f} here, {figure.n * _repeats(result):,} in the paper")
    if result.errors > FEW_ERRORS * result.probes:
        others.append(f"{result.errors:,} of {result.probes:,} probes without an answer here")
    return _joined(*others) or ""


def _repeats(result: Result) -> int:
    """How often each sample was asked and counts."""
    return int(result.options.get("repeats") or 1)


def _departed(value: PublishedValue, departure: str) -> PublishedValue:
    """What the paper took on something else already keeps its own note."""
    if not value.comparable or not departure:
        return value
    return replace(value, comparable=False, note=_joined(value.note or "", departure))


def _joined(*notes: str) -> str | None:
    return "; ".join(note for note in notes if note) or None
