"""Indexing a run before a command shows its groups, with progress."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.engine.store import Store
    from sightline.outcome_index.index import OutcomeIndex


def index_run(index: OutcomeIndex, store: Store, run: int, *, quiet: bool = False) -> None:
    """Index a run, unless its index is ready."""
    from sightline.progress import progress
    from sightline.results.stored_run import read_stored_run

    if index.state(run).step == "ready":
        return
    total = read_stored_run(store, run).description.planned_samples
    show = not quiet and sys.stderr.isatty()
    with progress(f"indexing run {run}", total, "samples", show_progress=show) as advance:
        before = 0

        def report(done: int, _: int) -> None:
            nonlocal before
            advance(done - before)
            before = done

        index.build(run, report)
