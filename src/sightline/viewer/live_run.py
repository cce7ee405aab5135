"""A run that is not finished: how far it is, and the last responses, also of a run of another process."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from sightline.evaluation.plan import StoredProbe
from sightline.evaluation.runs import StoredRun
from sightline.store.answers import State
from sightline.store.database import repeat_if_lost, rows_in
from sightline.store.store import Store
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
    """What the page of an unfinished run shows; `seconds_left` is estimated, None without a rate."""

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
        """Read the progress of a run; `now` is in seconds since 1970."""
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
            is_held=run.number in self._store.claims.held_runs(),
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
    return [msgspec.json.decode(body, type=StoredProbe) for _, body in chunk]


# -- How far a run is, whichever process works on it: its requests and answers, read as they arrive

_ATTEMPTS = "SELECT key, id, state, created FROM answers"


class _OfKey(Struct):
    """The part of a stored probe that says which request it is."""

    key: str


_OF_KEY = msgspec.json.Decoder(_OfKey)

_Numbers = npt.NDArray[Any]

RATE_SECONDS = 30.0
"""The time over which the rate of answers is measured."""

LATEST = 8
"""The latest attempts that are kept."""

OVERLAP = 1000
"""Attempts before the last one read are read again: transactions of PostgreSQL may end in another order."""


class LatestAttempt(Struct, frozen=True):
    """An attempt of a run: the key of the request, and the first position of its chunk of probes."""

    key: str
    place: int
    created: float


class ProgressCounts(Struct, frozen=True):
    """How far a run is."""

    requests: int
    answered: int
    failed: int
    cached: int
    in_flight: int
    rate: float
    latest: tuple[LatestAttempt, ...]


class RunProgress:
    """The progress of one run."""

    def __init__(self, store: Store, run: int, began: float) -> None:
        """Read nothing yet; `began` is in seconds since 1970."""
        self._store = store
        self._database = store.database
        self._run = run
        self._began = began
        self._keys = np.empty(0, np.uint64)
        self._places = np.empty(0, np.int64)
        self._states = np.empty(0, np.uint8)
        self._cached = 0
        self._last_place = -1
        self._last_attempt = -1
        self._times: deque[tuple[float, int]] = deque()
        self._latest: dict[int, LatestAttempt] = {}
        self._lock = threading.Lock()

    @repeat_if_lost
    def update(self, now: float) -> ProgressCounts:
        """Read what was added since the last call; `now` is in seconds since 1970."""
        with self._lock:
            if self._last_attempt < 0:
                self._last_attempt = self._store.answers.last_attempt()
            self._read_probes()
            self._read_attempts()
            states = np.bincount(self._states, minlength=3)
            while self._times and self._times[0][0] < now - RATE_SECONDS:
                self._times.popleft()
            seconds = max(1.0, min(RATE_SECONDS, now - self._began))
            return ProgressCounts(
                requests=len(self._keys),
                answered=int(states[1]),
                failed=int(states[2:].sum()),
                cached=self._cached,
                in_flight=self._in_flight(),
                rate=len(self._times) / seconds,
                latest=tuple(self._latest[row] for row in sorted(self._latest, reverse=True)),
            )

    def _read_probes(self) -> None:
        new: dict[bytes, int] = {}
        for chunk in self._store.runs.chunks(self._run, self._last_place):
            self._last_place = chunk[0][0]
            new |= {bytes.fromhex(_OF_KEY.decode(body).key): self._last_place for _, body in chunk}
        known = self._find(_short(list(new))) >= 0
        fresh = [key for key, is_known in zip(new, known, strict=True) if not is_known]
        if not fresh:
            return
        keys = np.concatenate([self._keys, _short(fresh)])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._places = np.concatenate([self._places, [new[key] for key in fresh]])[order]
        self._states = np.concatenate([self._states, np.zeros(len(fresh), np.uint8)])[order]
        with self._database.read() as connection:
            query = f"{_ATTEMPTS} WHERE key IN ({{}}) ORDER BY id"
            self._count(list(rows_in(connection, query, fresh)))

    def _read_attempts(self) -> None:
        """Read the attempts of any run since the last call, and count those of this one."""
        query = f"{_ATTEMPTS} WHERE id > ? ORDER BY id"
        with self._database.read() as connection:
            rows = connection.rows(query, (self._last_attempt - OVERLAP,))
        self._count(rows)
        self._last_attempt = max([self._last_attempt, *(row for _, row, _, _ in rows)])

    def _count(self, attempts: Sequence[tuple[Any, ...]]) -> None:
        """Count attempts, each given by its key, number, state and time, if they are of this run."""
        found = self._find(_short([attempt[0] for attempt in attempts]))
        for at, (key, row, state, created) in zip(found.tolist(), attempts, strict=True):
            if at >= 0:
                self._count_one(at, key, row, state, created)

    def _count_one(self, at: int, key: bytes, row: int, state: int, created: float) -> None:
        is_new = self._states[at] == 0
        if self._states[at] != State.ANSWERED:
            self._states[at] = state
        if created < self._began:
            self._cached += bool(is_new and state == State.ANSWERED)
            return
        if row not in self._latest:
            if is_new:
                self._times.append((created, row))
            self._latest[row] = LatestAttempt(key.hex(), int(self._places[at]), created)
            if len(self._latest) > LATEST:
                del self._latest[min(self._latest)]

    def _find(self, short: _Numbers) -> _Numbers:
        """The index of each key; -1 for a key that is none of this run."""
        if not len(self._keys):
            return np.full(len(short), -1)
        at = np.minimum(np.searchsorted(self._keys, short), len(self._keys) - 1)
        return np.where(self._keys[at] == short, at, -1)

    def _in_flight(self) -> int:
        found = self._find(_short(self._store.claims.held()))
        return int((self._states[np.unique(found[found >= 0])] != State.ANSWERED).sum())


def _short(keys: Sequence[bytes]) -> _Numbers:
    """The first 8 bytes of each key as a number: enough to tell the requests of a run apart."""
    return np.frombuffer(b"".join(key[:8] for key in keys), ">u8").astype(np.uint64)
