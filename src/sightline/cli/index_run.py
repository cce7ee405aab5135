"""Indexing a run before a command shows its groups, with progress."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.store.store import Store
    from sightline.viewer.index import OutcomeIndex


def index_run(index: OutcomeIndex, store: Store, run: int, *, quiet: bool = False) -> None:
    from sightline.evaluation.runs import read_stored_run
    from sightline.progress import progress

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
