"""Claims in the store: while a process sends a request, no other process on this store sends it.

A process that works is a row of `workers`, which holds for LEASE_SECONDS and which its heartbeat renews. Its
claims are the rows of `claims` with its name, and the runs that it works on have its name, too: they hold as
long as its row does. A process whose row is over loses all claims to the first one that needs any of them.
Then its row is gone, and before it sends a request again, it claims it anew and looks it up.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from sightline.errors import EnvironmentFailedError
from sightline.store.database import (
    Connection,
    Database,
    change_rows_in,
    insert,
    repeat_if_lost,
    rows_in,
    run_in_thread,
)

LEASE_SECONDS = 15.0
"""How long the row of a process holds without renewal.

With 5 seconds, eight processes that started at once on two busy cores renewed too late.
"""
HEARTBEAT_SECONDS = 1.0
"""The time between two renewals."""
GRACE_SECONDS = 5.0
"""How long the heartbeat of a process must have gone on before it takes the claims of one that is late.

While the store is locked or the machine sleeps, nobody can renew. Each process notices that by its own
heartbeat, and gives the others this time for theirs.
"""


class _Look(NamedTuple):
    """Keys that no other process holds, and the processes that are over with the ends of their rows."""

    free: list[bytes]
    over: set[tuple[str, float | None]]


class Claims:
    """The claims of this process. Use it as `store.claims`. Methods that are not async block."""

    def __init__(self, database: Database, uptime: Callable[[], float]) -> None:
        """`uptime` is the seconds since the machine started; a server has a clock of its own."""
        self.generation = 0
        """Changes when the claims of before were lost. Keep it before `take`, for `hold`."""
        self.name = new_name()
        self._database = database
        self._uptime = uptime
        self._has_row = False
        self._until = self._renewed = self._steady_since = -math.inf
        self._writing = Lock()
        self._users, self._users_change = 0, Lock()
        self._stop = Event()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Renew the row of this process until the block ends; the last block of several gives up all claims.

        A thread renews it: the event loop may be busy for seconds, for example while a model loads.
        """
        with self._users_change:
            self._users += 1
            if self._users == 1:
                self._stop = Event()
                Thread(target=self._beat, args=(self._stop,), name="sightline-claims", daemon=True).start()
        try:
            yield
        finally:
            with suppress(EnvironmentFailedError):  # what is not given up ends with the lease
                await run_in_thread(self._leave)

    def hold(self, generation: int) -> bool:
        """Decide whether claims surely hold, so that their requests may be sent now."""
        return generation == self.generation and self._uptime() < self._until - HEARTBEAT_SECONDS

    @repeat_if_lost
    def take(self, keys: Iterable[str]) -> set[str]:
        """Claim requests, as far as no other process holds them.

        Look them up again after the claim: another process may have answered them in between.
        """
        look = self._look([bytes.fromhex(key) for key in sorted(keys)])
        if not look.free:
            return set()
        began = self._uptime()
        with self._writing:
            with self._database.write() as connection:
                had_row = self.sign(connection)
                for name, until in sorted(look.over, key=str):
                    self._take_over(connection, name, until)
                rows = [(key, self.name) for key in look.free]
                insert(connection, "claims", ("key", "owner"), rows, "ON CONFLICT DO NOTHING")
                owners = rows_in(connection, "SELECT key, owner FROM claims WHERE key IN ({})", look.free)
                taken = {key.hex() for key, owner in owners if owner == self.name}
            self._record(began, had_row)
        return taken

    def renew(self) -> None:
        with self._writing:
            self._renew()

    def end(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """End claims of this process, in the transaction that stores their results."""
        change_rows_in(connection, "DELETE FROM claims WHERE owner = {} AND key IN ({})", (self.name,), keys)

    def sign(self, connection: Connection) -> bool:
        """Write the row of this process in a transaction; returns whether it was there."""
        row = (self._now(connection) + LEASE_SECONDS, self.name)
        had_row = bool(connection.change("UPDATE workers SET until = ? WHERE name = ?", row))
        if not had_row:
            connection.change("INSERT INTO workers (until, name) VALUES (?, ?)", row)
        return had_row

    def held(self) -> list[bytes]:
        """Find the requests that processes are sending now."""
        return self._held("SELECT key, name, until FROM claims JOIN workers ON name = owner")

    def held_runs(self) -> set[int]:
        """Find the runs that processes are working on now."""
        return set(self._held("SELECT id, name, until FROM runs JOIN workers ON name = worker"))

    @repeat_if_lost
    def _held(self, query: str) -> list[Any]:
        with self._database.read() as connection:
            now, rows = self._now(connection), connection.rows(query)
        return [held for held, name, until in rows if _in_time(until, now) and not self._has_ended(name)]

    def _look(self, keys: Sequence[bytes]) -> _Look:
        """Look which keys no other process holds. This is asked often, so it must not cost a write."""
        query = (
            "SELECT claims.key, claims.owner, workers.until FROM claims "
            "LEFT JOIN workers ON workers.name = claims.owner WHERE claims.key IN ({})"
        )
        with self._database.read() as connection:
            now = self._now(connection)
            rows = [row for row in rows_in(connection, query, keys) if row[1] != self.name]
        over = {
            (name, until)
            for name, until in {row[1:] for row in rows}
            if self._has_ended(name) or (not _in_time(until, now) and self._is_steady())
        }
        held = {key for key, *worker in rows if tuple(worker) not in over}
        return _Look([key for key in keys if key not in held], over)

    def _take_over(self, connection: Connection, name: str, until: float | None) -> None:
        """Remove a process that is over, with its claims, unless it renewed its row meanwhile."""
        gone = "DELETE FROM workers WHERE name = ? AND until = ?"
        if until is None or connection.change(gone, (name, until)):
            connection.change("DELETE FROM claims WHERE owner = ?", (name,))

    def _beat(self, stop: Event) -> None:
        while True:
            with self._writing:
                if stop.is_set():
                    return
                # The next renewal may succeed; a store that fails is reported by the next write of an answer.
                with suppress(EnvironmentFailedError):
                    self._renew()
            stop.wait(HEARTBEAT_SECONDS)

    @repeat_if_lost
    def _renew(self) -> None:
        began = self._uptime()
        with self._database.write() as connection:
            had_row = self.sign(connection)
        self._record(began, had_row)

    def _record(self, began: float, had_row: bool) -> None:
        """Note a renewal, which began at this time."""
        now = self._uptime()
        if self._has_row and not had_row:
            self.generation += 1
        if now - self._renewed > GRACE_SECONDS:
            self._steady_since = now
        self._has_row, self._renewed, self._until = True, now, began + LEASE_SECONDS

    def _is_steady(self) -> bool:
        """Whether other processes could renew their rows, by the renewals of this one."""
        now = self._uptime()
        return now - self._renewed <= GRACE_SECONDS < now - self._steady_since

    def _leave(self) -> None:
        # A block that begins after the decision claims only when `_writing` is free. The event loop, which
        # begins blocks, never waits for it.
        with self._writing:
            with self._users_change:
                self._users -= 1
                is_last = not self._users
                if is_last:
                    self._stop.set()
            if is_last:
                self.release()

    @repeat_if_lost
    def release(self) -> None:
        """Give up every claim of this process."""
        with self._database.write() as connection:
            connection.change("DELETE FROM claims WHERE owner = ?", (self.name,))
            connection.change("DELETE FROM workers WHERE name = ?", (self.name,))
        self._has_row, self._until = False, -math.inf

    def _now(self, connection: Connection) -> float:
        """The time of rows, which no wrong clock changes: of the server, or since the machine started."""
        if connection.is_file:
            return self._uptime()
        return float(connection.rows("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def _has_ended(self, name: str) -> bool:
        return has_ended(name, one_machine=self._database.is_file)


def _in_time(until: float | None, now: float) -> bool:
    """Whether a row holds. One with a later end is of another clock: before the machine started again."""
    return until is not None and now <= until <= now + LEASE_SECONDS


# -- Names of processes, from which others on their machine see whether they have ended

_PROC = Path("/proc")


def seconds_since_boot() -> float:
    """A clock that nobody sets, and that goes on while a process is stopped or the machine sleeps."""
    # Only Linux has it. Elsewhere the clock may stand still while the machine sleeps, with all its processes.
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


def new_name() -> str:
    """Boot, PID namespace, process, when it started, and a random part."""
    process = os.getpid()
    boot, namespace = _machine(process)
    return f"{boot}.{namespace}.{process}.{_started(process) if boot else ''}.{os.urandom(4).hex()}"


def has_ended(name: str, *, one_machine: bool) -> bool:
    """Whether it is certain that a process has ended; `one_machine`: all processes of the store are here."""
    own_boot, own_namespace = _machine(os.getpid())
    boot, namespace, process, start, *_ = [*name.split("."), "", "", "", ""]
    if not (own_boot and boot and process.isdecimal()):
        return False
    if boot != own_boot:
        return one_machine
    if namespace != own_namespace:
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # of another user, or no process
        pass
    with suppress(OSError):
        return _started(int(process)) != start
    return False


@cache
def _machine(process: int) -> tuple[str, str]:
    """The boot and the PID namespace of this process; '' where /proc does not show them."""
    try:
        # /proc may be that of another namespace.
        if os.readlink(_PROC / "self") == str(process):
            boot = (_PROC / "sys/kernel/random/boot_id").read_text()[:8]
            return boot, str(os.stat(_PROC / "self/ns/pid").st_ino)
    except OSError:
        pass
    return "", ""


def _started(process: int) -> str:
    """When a process started, in ticks since the boot; '' if it has ended and waits for its parent."""
    line = (_PROC / str(process) / "stat").read_text(errors="replace")
    letter, *fields = line.rpartition(")")[2].split()
    return "" if letter in "ZX" else fields[18]
