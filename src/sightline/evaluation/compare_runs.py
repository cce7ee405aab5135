"""Comparing runs: stored runs are computed again, results folders are read; then group by group."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from sightline.benchmarks.published import paper_of
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.recompute import UNFINISHED, recompute
from sightline.metric_types import MetricValue, Result
from sightline.results.compare import compare
from sightline.results.comparison import Comparison
from sightline.results.judged_run import JudgedRun, read_judged_run
from sightline.results.published import add_published
from sightline.results.run_names import name_or_number
from sightline.results.stored_groups import StoredGroups

RunName = int | Path
"""The number of a stored run, or a results folder."""


def compare_runs(
    store: Store | None, pairs: Sequence[tuple[RunName, RunName]], against: Sequence[str] = ()
) -> Comparison:
    """Compare runs pair by pair. Nothing is sent.

    Args:
        store: The store that holds the numbered runs; None if there are only folders.
    """
    _check_distinct(store, pairs)
    names = dict.fromkeys(name for pair in pairs for name in pair)
    runs = {name: judged_run(store, name) for name in names}
    comparison = compare([(runs[base], runs[other]) for base, other in pairs])
    if not against:
        return comparison
    base, other = (runs[name].result for name in pairs[0])
    return replace(
        comparison,
        base=_with_figures(comparison.base, base, against),
        other=_with_figures(comparison.other, other, against),
    )


def _check_distinct(store: Store | None, pairs: Sequence[tuple[RunName, RunName]]) -> None:
    """Raise UserError if a run is compared with itself."""
    for base, other in pairs:
        if _resolved(base) == _resolved(other):
            name = name_or_number(store, base) if store and isinstance(base, int) else str(base)
            raise UserError(f"{name} is compared with itself", expected="two different runs")


def _resolved(name: RunName) -> RunName:
    return name.resolve() if isinstance(name, Path) else name


def _with_figures(values: Sequence[MetricValue], result: Result, against: Sequence[str]) -> list[MetricValue]:
    """The values of one side with the figures that the paper prints in these rows for its setting."""
    paper = paper_of(result.benchmark)
    rows = [] if paper is None else [paper.row(row) for row in against]
    figures = {
        (metric.metric, metric.subset): [one for one in metric.published or () if one.row in rows]
        for metric in add_published(result, *against).metrics
    }
    return [replace(value, published=figures.get((value.metric, value.subset)) or None) for value in values]


def judged_run(store: Store | None, name: RunName) -> JudgedRun:
    """Judge a stored run again, or read a judged one from its folder."""
    if isinstance(name, Path):
        return read_judged_run(name)
    if store is None:
        raise ValueError(f"run {name} needs a store")
    _, finished = store.runs.get(name)
    if not finished:
        raise UserError(f"run {name} {UNFINISHED}", file=store.name, expected="runs that finished")
    groups = StoredGroups()
    result = recompute(store, name, on_group=lambda judged: groups.add(judged.group))
    return JudgedRun(name=name_or_number(store, name), result=result, groups=groups)
