"""A run that is not finished: how far it is, and the last responses, also of a run of another process."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from sightline.engine.probe_chunks import probes_of
from sightline.engine.run_progress import LatestAttempt, ProgressCounts, RunProgress
from sightline.engine.store import Store
from sightline.plan.stored_probe import StoredProbe
from sightline.results.stored_run import StoredRun
from sightline.types import Answer, Failure

RESPONSE_CHARACTERS = 200
"""The characters of a response in the list of the last ones."""


class LastResponse(Struct, frozen=True):
    """One of the last responses, with its latency; `is_error` says that `text` is why there is none."""

    sample: str
    variant: str
    text: str
    is_error: bool
    seconds: float


class LiveView(Struct, frozen=True):
    """What the page of a run shows while it is not finished.

    Attributes:
        seconds_left: The estimated time to the end; None without a rate.
    """

    counts: ProgressCounts
    total: int
    percent: float
    seconds_left: float | None
    last: tuple[LastResponse, ...]
    is_held: bool


class LiveRuns:
    """The runs whose progress was shown; each continues where it was read last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._progress: dict[int, RunProgress] = {}
        self._lock = threading.Lock()

    def view(self, run: StoredRun, now: float) -> LiveView:
        """Read the progress of a run.

        Args:
            now: The time, in seconds since 1970.
        """
        with self._lock:
            if run.number not in self._progress:
                began = next(row.created for row in self._store.runs.all() if row.number == run.number)
                self._progress[run.number] = RunProgress(self._store, run.number, began)
            progress = self._progress[run.number]
        counts = progress.update(now)
        total = max(run.planned_probes, counts.requests)
        done = counts.answered + counts.failed
        return LiveView(
            counts=counts,
            total=total,
            percent=100 * done / total if total else 0.0,
            seconds_left=(total - done) / counts.rate if counts.rate else None,
            last=_last_responses(self._store, run.number, counts.latest),
            is_held=run.number in self._store.leases.held(),
        )


def _last_responses(store: Store, run: int, latest: Sequence[LatestAttempt]) -> tuple[LastResponse, ...]:
    results = store.answers.look_up([attempt.key for attempt in latest])
    probes = {
        probe.key: probe
        for place in {attempt.place for attempt in latest}
        for probe in _probes_at(store, run, place)
    }
    return tuple(
        _last_response(probes[attempt.key], results[attempt.key])
        for attempt in latest
        if attempt.key in probes and attempt.key in results
    )


def _last_response(probe: StoredProbe, result: Answer | Failure) -> LastResponse:
    if isinstance(result, Failure):
        return LastResponse(probe.sample, probe.variant, result.message[:RESPONSE_CHARACTERS], True, 0.0)
    text = result.text[:RESPONSE_CHARACTERS]
    return LastResponse(probe.sample, probe.variant, text, False, result.latency)


def _probes_at(store: Store, run: int, place: int) -> list[StoredProbe]:
    """The probes of the chunk that begins at a position."""
    chunk = next(store.runs.chunks(run, place - 1))
    return [msgspec.json.decode(body, type=StoredProbe) for _, body in probes_of(chunk)]
