"""Results computed again from the store: the numbers of an earlier run, from its stored answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.evaluation.judge_panel import recorded_panel
from sightline.evaluation.measures import recorded_measures
from sightline.judging.groups import CollectedAnswers
from sightline.judging.judges import HumanJudge
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result
from sightline.plan.stored_probe import read_stored_probes
from sightline.results.aggregate import aggregate
from sightline.results.published import add_published
from sightline.results.stored_run import latest_finished_run, read_stored_run

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
        CollectedAnswers(probes=lambda: read_stored_probes(store, stored.number), answers=store.answers),
        recorded_panel(benchmark, stored, store, humans),
        store.answers,
        measures=recorded_measures(benchmark, stored, store),
        on_group=on_group,
    )
    return add_published(aggregated.result, *(against or description.against))
