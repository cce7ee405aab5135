"""Disturbs processes that work on one store, and finds requests that were paid for twice."""

from __future__ import annotations

import math
import os
import random
import signal
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from typing import Any, NamedTuple

from tests.chaos.workload import Process, Server, Workload

Line = Mapping[str, Any]
"""A line of the server's log."""

PATIENCE = 180.0
"""Seconds after which a command must have ended."""
JUST_ANSWERED = 0.010
"""An answer may be lost that the server gave less than this many seconds before a kill."""

WRITING = 0.1
"""Seconds in which a process that goes on writes the requests that it had begun."""


class Case(NamedTuple):
    """One trial: a command of `workload.NAMES`, a disturbance, a seed, and how many seconds it lasts."""

    name: str
    disturbance: str
    seed: int
    seconds: float


class Interruption(NamedTuple):
    """A process that was killed or stopped, when, and when it went on (CLOCK_MONOTONIC)."""

    sender: str
    time: float
    resumed: float = math.inf


class Doubled(NamedTuple):
    """Requests that were sent again, by what the server had done for the earlier one at an interruption.

    Attributes:
        in_flight: How many it was working on, or a stopped process was just writing to it.
        just_answered: How many it had answered within JUST_ANSWERED.
        others: The other ones, which must not exist: both lines of the log.
    """

    in_flight: int
    just_answered: int
    others: Sequence[tuple[Line, Line]]


class Trial(NamedTuple):
    """What a case showed."""

    case: Case
    requests: int
    doubled: Doubled
    interruptions: Sequence[Interruption]
    seconds: float


def run_case(case: Case, workload: Workload, server: Server, store: str) -> Trial:
    """Run a case on an empty store.

    How soon answers are stored also depends on the processor: a process that gets none stores nothing.

    Raises:
        AssertionError: A command failed, or gave other results.
    """
    workload.prepare(case.name)
    server.reset()
    began = time.monotonic()
    prefix = f"{case.disturbance}-{case.name}-{case.seed}"
    interruptions = DISTURBANCES[case.disturbance](case, workload, server, store, prefix)
    log = server.log()
    doubled = find_doubled(log, interruptions)
    return Trial(case, len(log), doubled, interruptions, time.monotonic() - began)


def find_doubled(log: Sequence[Line], interruptions: Sequence[Interruption]) -> Doubled:
    """Find the requests that were sent although an earlier one had succeeded, or was being answered."""
    by_key = defaultdict(list)
    for line in log:
        if not line["failed"]:
            by_key[line["key"]].append(line)
    pairs = [pair for lines in by_key.values() for pair in pairwise(lines)]
    reasons = [_reason(earlier, later, interruptions) for earlier, later in pairs]
    others = [pair for pair, reason in zip(pairs, reasons, strict=True) if reason == "others"]
    return Doubled(reasons.count("in flight"), reasons.count("just answered"), others)


def _reason(earlier: Line, later: Line, interruptions: Sequence[Interruption]) -> str:
    """Why a request had to be sent again."""
    for sender, at, resumed in interruptions:
        if later["sender"] == sender and resumed < later["arrived"] < resumed + WRITING:
            return "in flight"
        if earlier["sender"] == sender and earlier["arrived"] < resumed:
            if earlier["answered"] is None or earlier["answered"] > at:
                return "in flight"
            if earlier["answered"] > at - JUST_ANSWERED:
                return "just answered"
    return "others"


def kill(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Kill a command once, then repeat it."""
    chance = random.Random(case.seed)
    with _started(workload, case.name, f"{prefix}-a", store) as process:
        _wait_for(server, process, chance)
        process.kill()
        interruptions = [Interruption(f"{prefix}-a", time.monotonic())]
    with _started(workload, case.name, f"{prefix}-b", store) as process:
        _end(process, workload, case.name, f"{prefix}-b", store)
    return interruptions


def stop(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Stop one of two processes for longer than the lease."""
    chance = random.Random(case.seed)
    with _two(case, workload, store, prefix) as (one, other):
        _wait_for(server, one, chance)
        _signal(one, signal.SIGSTOP)
        stopped = time.monotonic()
        time.sleep(case.seconds)
        interruptions = [Interruption(f"{prefix}-a", stopped, time.monotonic())]
        _signal(one, signal.SIGCONT)
        _end(one, workload, case.name, f"{prefix}-a", store)
        _end(other, workload, case.name, f"{prefix}-b", store)
    return interruptions


def lock(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Lock the store for longer than the lease while two processes work."""
    chance = random.Random(case.seed)
    with _two(case, workload, store, prefix) as (one, other):
        _wait_for(server, one, chance)
        with _locked(store):
            time.sleep(case.seconds)
        _end(one, workload, case.name, f"{prefix}-a", store)
        _end(other, workload, case.name, f"{prefix}-b", store)
    return []


def skew(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Give two processes clocks that differ by more than the lease."""
    off = random.Random(case.seed).choice((-1, 1)) * case.seconds
    with _two(case, workload, store, prefix, skew=off) as (one, other):
        _end(one, workload, case.name, f"{prefix}-a", store)
        _end(other, workload, case.name, f"{prefix}-b", store)
    return []


def disk(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Let the disk be full from a random write of a command on, then repeat it with room."""
    sender = f"{prefix}-a"
    total = workload.writes(case.name)
    server.reset()
    allowed = random.Random(case.seed).randrange(total)
    ended = workload.disk.run(workload.arguments(case.name, sender, store), allowed)
    assert ended.status in (0, 3), f"status {ended.status}: {workload.output(sender)}"
    assert "internal error" not in workload.output(sender), workload.output(sender)
    workload.check_whole(case.name, sender, store)
    with _started(workload, case.name, f"{prefix}-b", store, out=sender) as process:
        _end(process, workload, case.name, sender, store, f"{prefix}-b")
    workload.check_no_leftovers(sender)
    return [Interruption(sender, ended.full_at)] if ended.full_at is not None else []


def broken(case: Case, workload: Workload, server: Server, store: str, prefix: str) -> Sequence[Interruption]:
    """Let the server break: half a reply, a reset, garbage, a slow drip, or errors only for a time.

    Where too many requests fail in a row, the command ends early, and is repeated.
    """
    server.reset(BREAKDOWNS[case.seed % len(BREAKDOWNS)])
    with _started(workload, case.name, f"{prefix}-a", store) as process:
        process.join(PATIENCE)
        assert process.exitcode in (0, 1), workload.output(f"{prefix}-a")
    with _started(workload, case.name, f"{prefix}-a", store) as process:
        _end(process, workload, case.name, f"{prefix}-a", store)
    return []


BREAKDOWNS = ("half", "reset", "garbage", "drip", "storm")

Disturbance = Callable[[Case, Workload, Server, str, str], Sequence[Interruption]]
DISTURBANCES: Mapping[str, Disturbance] = {
    "kill": kill,
    "stop": stop,
    "lock": lock,
    "skew": skew,
    "disk": disk,
    "broken": broken,
}


@contextmanager
def _started(
    workload: Workload, name: str, sender: str, store: str, skew: float = 0.0, out: str | None = None
) -> Iterator[Process]:
    """A command, which does not outlive the block."""
    process = workload.start(name, sender, store, skew=skew, out=out)
    try:
        yield process
    finally:
        process.kill()
        process.join()


@contextmanager
def _two(
    case: Case, workload: Workload, store: str, prefix: str, skew: float = 0.0
) -> Iterator[tuple[Process, Process]]:
    """Two processes with the same command and store, `-a` and `-b`."""
    with (
        _started(workload, case.name, f"{prefix}-a", store, skew) as one,
        _started(workload, case.name, f"{prefix}-b", store) as other,
    ):
        yield one, other


def _wait_for(server: Server, process: Process, chance: random.Random) -> None:
    """Wait for a random moment of a command: some time after the server got some of its requests."""
    requests, pause = chance.randrange(1, 100), chance.uniform(0, 0.2)
    ended = time.monotonic() + PATIENCE
    while len(server.log()) < requests and process.is_alive() and time.monotonic() < ended:
        time.sleep(0.02)
    time.sleep(pause)


def _end(
    process: Process, workload: Workload, name: str, out: str, store: str, sender: str | None = None
) -> None:
    process.join(PATIENCE)
    assert process.exitcode == 0, workload.output(sender or out)
    workload.check(name, out, store)


def _signal(process: Process, number: signal.Signals) -> None:
    """Send a signal to a process; one that has ended needs none."""
    assert process.pid is not None
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)


@contextmanager
def _locked(store: str) -> Iterator[None]:
    """Hold the lock of the writer of a store."""
    if "://" in store:
        import psycopg

        with psycopg.connect(store) as connection:
            # In the order in which processes write to them: another order is a deadlock.
            connection.execute("LOCK TABLE answers, claims IN EXCLUSIVE MODE")
            yield
        return
    with closing(sqlite3.connect(store, timeout=PATIENCE, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
