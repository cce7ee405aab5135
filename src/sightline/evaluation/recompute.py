"""Results of earlier runs, computed again from their stored answers, and comparisons of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from sightline.benchmarks.published import paper_of
from sightline.errors import UserError
from sightline.evaluation.compare import compare
from sightline.evaluation.folder import JudgedRun, StoredGroups, read_judged_run
from sightline.evaluation.judges import HumanJudge, JudgedGroup
from sightline.evaluation.options import recorded_tags
from sightline.evaluation.plan import CollectedAnswers, read_stored_probes
from sightline.evaluation.prepared import recorded_measures, recorded_panel
from sightline.evaluation.result import add_published, aggregate
from sightline.evaluation.runs import latest_finished_run, name_or_number, read_stored_run
from sightline.metrics.significance import Comparison
from sightline.store.store import Store
from sightline.types import MetricValue, Result

UNFINISHED = "is not finished. Repeat the command to send the missing requests (in a new run)"


def recompute(
    store: Store,
    run: int | None = None,
    against: Sequence[str] = (),
    *,
    humans: Sequence[HumanJudge] = (),
    on_group: Callable[[JudgedGroup], None] | None = None,
) -> Result:
    """Judge and count a stored run again. Nothing is sent.

    Rules decide again; the replies of judge models and the verdicts of humans come from the store. A note
    says so if the run did not finish.

    Args:
        run: The number of the run; None takes the latest that finished.
        against: The rows of published tables to compare with; none takes those that the run named.
    """
    stored, notes = latest_finished_run(store) if run is None else (read_stored_run(store, run), [])
    if not stored.is_finished:
        notes = [f"run {stored.number} {UNFINISHED}"]
    description = replace(stored.description, notes=[*stored.description.notes, *notes])
    benchmark = stored.benchmark
    aggregated = aggregate(
        description,
        CollectedAnswers(
            probes=lambda: read_stored_probes(store, stored.number),
            answers=store.answers,
            reasoning_tags=recorded_tags(stored.description),
            retries="retry_truncated" in stored.description.options,
        ),
        recorded_panel(benchmark, stored, store, humans),
        store.answers,
        measures=recorded_measures(benchmark, stored, store),
        on_group=on_group,
    )
    return add_published(aggregated.result, *(against or description.against))


# -- Comparing runs: stored runs are computed again, results folders are read; then group by group

RunName = int | Path
"""The number of a stored run, or a results folder."""


def compare_runs(
    store: Store | None, pairs: Sequence[tuple[RunName, RunName]], against: Sequence[str] = ()
) -> Comparison:
    """Compare runs pair by pair; `store` is None if there are only folders. Nothing is sent."""
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
    for base, other in pairs:
        if _resolved(base) == _resolved(other):
            name = name_or_number(store, base) if store and isinstance(base, int) else str(base)
            raise UserError(f"{name} is compared with itself", expected="two different runs")


def _resolved(name: RunName) -> RunName:
    return name.resolve() if isinstance(name, Path) else name


def _with_figures(values: Sequence[MetricValue], result: Result, against: Sequence[str]) -> list[MetricValue]:
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
