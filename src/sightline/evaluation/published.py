"""Attaches the figures of a paper to the metrics of a run, and says whether they are comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from sightline.benchmarks.published import Figure, FigureKey, Paper, joined, no_figures, paper_of
from sightline.types import MetricValue, PublishedValue, Result

FEW_ERRORS = 0.01
"""The share of probes that may lack an answer, or a verdict, before a figure is no longer comparable."""

NOT_THEIRS: Mapping[str, str] = {
    "synthetic": "the data are synthetic, so published figures are not shown",
    "other_data": "the data are not verifiably those that the paper released, "
    "so published figures are not shown",
}
"""The options that mark data for which the paper printed no figures, and the note for each."""


def add_published(result: Result, *against: str) -> Result:
    """Add the paper's figures to each metric: those of the named rows, then those of humans.

    If the paper prints a figure both for exactly what was run (at this size, this temperature) and for its
    own default, the first counts. A figure is not comparable, and its note says why, if the paper took it
    under other conditions, if this run used other samples or options than the paper, or if too many answers
    are missing. The notes of the result name a row that has no figures for this setting. Data that are not
    the paper's get no figures.

    Args:
        against: Rows of the paper, such as the names of models.
    """
    paper = paper_of(result.benchmark)
    if paper is None:
        if against:
            raise no_figures(result.benchmark)
        return result
    named = [paper.row(row) for row in against]
    not_theirs = next((why for option, why in NOT_THEIRS.items() if result.options.get(option)), None)
    if not_theirs is not None:
        return replace(result, notes=list(dict.fromkeys([*result.notes, not_theirs])))
    settings = _settings_of(paper, result)
    humans = [paper.human] if paper.human else []
    by_row = {
        row: {key: figures for name in settings for key, figures in paper.figures(name, row).items()}
        for row in dict.fromkeys([*named, *humans])
    }
    silent = [f"{paper.paper}: no figure of {row} for this setting" for row in named if not by_row[row]]
    return replace(
        result,
        metrics=[_beside(metric, list(by_row.values()), paper, result) for metric in result.metrics],
        notes=list(dict.fromkeys([*result.notes, *silent])),
    )


def _settings_of(paper: Paper, result: Result) -> list[str]:
    """The paper's names for this setting, which options may have made another setting, the most specific
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
    """Ours may be a text: '224' is 224."""
    return bool(ours == theirs) or (isinstance(ours, str) and ours == str(theirs))


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by name; those within another one as 'sampling.temperature'."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        within = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{inner}": v for inner, v in within.items()} or {name: value}
    return flat


def _beside(
    metric: MetricValue, by_row: Sequence[Mapping[FigureKey, Sequence[Figure]]], paper: Paper, result: Result
) -> MetricValue:
    figures = [figure for row in by_row for figure in row.get((metric.metric, metric.subset), ())]
    values = [_departed(figure.value, _departure(figure, metric, paper, result)) for figure in figures]
    return replace(metric, published=values or None)


def _departure(figure: Figure, metric: MetricValue, paper: Paper, result: Result) -> str:
    """How the conditions of this value differ from those of the paper's figure."""
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
    if result.unanswered > FEW_ERRORS * result.probes:
        others.append(f"{result.unanswered:,} of {result.probes:,} probes without an answer here")
    return joined(*others) or ""


def _repeats(result: Result) -> int:
    return int(result.options.get("repeats") or 1)


def _departed(value: PublishedValue, departure: str) -> PublishedValue:
    """The figure with the difference as its note; a figure that is not comparable anyway keeps its own."""
    if not value.comparable or not departure:
        return value
    return replace(value, comparable=False, note=joined(value.note or "", departure))
