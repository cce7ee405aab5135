"""Builds indexes and comparisons of runs in the background: one thread, one after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable

from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.types import IndexState, RunSummary

READABLE = ("ready", "stale")
"""The steps in which there is an index to show."""

Job = tuple[int, ...]
"""A run to index, or two runs to compare."""


class Builds:
    """What pages asked for. The thread ends with the process."""

    def __init__(self, index: OutcomeIndex) -> None:
        self._index = index
        self._wanted: set[Job] = set()
        self._errors: dict[Job, str] = {}
        self._queue: queue.SimpleQueue[Job] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="index", daemon=True).start()

    def start(self, *runs: int) -> None:
        """Index a run or compare two runs, after what was asked for before."""
        if runs not in self._wanted:
            self._errors.pop(runs, None)
            self._wanted.add(runs)
            self._queue.put(runs)

    def state(self, run: RunSummary) -> IndexState:
        """Say whether the index of a run can be read; an absent or stale one is built."""
        state = run.state
        if state.step in ("absent", "stale") and not state.error:
            self.start(run.run)
        if state.step == "absent" and (run.run,) in self._wanted:
            return IndexState("building")
        return state

    def compared(self, base: int, other: int) -> IndexState:
        """Say whether the comparison of two indexed runs can be read; an absent one is made."""
        if self._index.comparisons.find(base, other) is not None:
            return IndexState("ready")
        if error := self._errors.get((base, other)):
            return IndexState("failed", error=error)
        self.start(base, other)
        return IndexState("building")

    def start_missing(self, runs: Iterable[RunSummary]) -> int:
        """Build the indexes of all runs that have none, and are finished."""
        missing = [run for run in runs if run.result is None and run.line.is_complete and not run.state.error]
        for run in missing:
            self.start(run.run)
        return len(missing)

    def _work(self) -> None:
        while True:
            job = self._queue.get()
            try:
                if len(job) == 1:
                    self._index.build(*job)
                else:
                    self._index.comparisons.build(*job)
            except Exception as error:  # Its page shows the reason.
                self._errors[job] = str(error)
            finally:
                self._wanted.discard(job)
