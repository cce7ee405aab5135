"""Claims in the store: while a process sends a request, no other process sends it.

Where a provider answers requests in a batch, one claim on the batch takes the place of those on its requests
(batch_journal.py).

A claim holds for a time, and its owner renews it. Another process takes it when the owner has ended, or did
not renew it although it could. An owner that cannot be sure of a claim takes it again before it sends.

The budget of a run, and the ledger that its processes share, count what they spend.
"""

from __future__ import annotations

import asyncio
import math
import os
import struct
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from sightline.config import Price
from sightline.errors import EnvironmentFailedError, UserError
from sightline.store.database import (
    Connection,
    Database,
    change_rows_in,
    insert,
    lock_table,
    row_lock,
    rows_in,
)
from sightline.store.failures import repeat_if_lost
from sightline.types import Usage

_RENEW_OWN = "ON CONFLICT (key) DO UPDATE SET until = excluded.until WHERE claims.owner = excluded.owner"

_Row = tuple[bytes, str, float]
"""The key, the owner and the end of a claim."""


class _Found(NamedTuple):
    """Keys that no other process holds; claims on them that lapsed; owners that have ended."""

    free: list[bytes]
    lapsed: set[_Row]
    ended: set[str]


class Claims:
    """The claims of this process. Use it as `store.claims`.

    Several runners may share it: `renewed` concerns the claims of all of them, and the last one releases.
    """

    def __init__(self, database: Database, uptime: Callable[[], float]) -> None:
        """`uptime` is the seconds since the machine started; a server has a clock of its own."""
        self._database = database
        self._uptime = uptime
        self._owner = new_owner()
        self._renewals = Renewals(uptime)
        self._users = 0
        self._leaving = 0
        self._users_change = Lock()
        self._claiming = Lock()

    @property
    def generation(self) -> int:
        """A number to keep before `take`, for `hold`."""
        return self._renewals.generation

    def hold(self, generation: int) -> bool:
        """Decide whether claims surely hold, so that their requests may be sent now."""
        return self._renewals.holds(generation)

    @repeat_if_lost
    def take(self, keys: Sequence[str]) -> set[str]:
        """Reserve requests for this process for CLAIM_SECONDS.

        Look them up again after the claim: another process may have answered them in between.
        """
        began = self._uptime()
        found = self._look([bytes.fromhex(key) for key in sorted(keys)])
        if not found.free:
            return set()
        with self._claiming, self._database.write() as connection:
            now = read_times(connection, self._uptime).now
            self._delete_over(connection, found)
            rows = [(key, self._owner, now + CLAIM_SECONDS) for key in found.free]
            insert(connection, "claims", ("key", "owner", "until"), rows, _RENEW_OWN)
            query = "SELECT key, owner FROM claims WHERE key IN ({})"
            owners = rows_in(connection, query, found.free)
            taken = {key.hex() for key, owner in owners if owner == self._owner}
        self._renewals.record_claims(began)
        return taken

    @repeat_if_lost
    def free(self, keys: Sequence[str]) -> set[str]:
        """Find requests on which no other process has a claim that holds; nothing is claimed."""
        return {key.hex() for key in self._look([bytes.fromhex(key) for key in keys]).free}

    def doubt(self) -> None:
        """Let every request that waits be claimed again before it is sent: its claim may have ended."""
        self._renewals.doubt()

    @repeat_if_lost
    def renew(self) -> None:
        began = self._uptime()
        with self._database.write() as connection:
            until = read_times(connection, self._uptime).now + CLAIM_SECONDS
            # Those that another thread ends now are skipped: two orders of locking could become a deadlock.
            own = f"SELECT key FROM claims WHERE owner = ? {row_lock(connection, 'FOR UPDATE SKIP LOCKED')}"
            connection.change(f"UPDATE claims SET until = ? WHERE key IN ({own})", (until, self._owner))
        self._renewals.record(began)

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew every claim of this process until the block ends.

        A thread of its own does it: the event loop and the thread that writes may be busy for seconds, for
        example while a model loads or where many processes share a machine.
        """
        ended = Event()

        def renew() -> None:
            while not ended.wait(RENEWAL_SECONDS):
                # The next renewal may succeed; a store that fails is reported by the next write of an answer.
                with suppress(EnvironmentFailedError):
                    self.renew()

        with self._users_change:
            if not self._users:
                self._renewals.record(self._uptime())  # nothing is claimed yet
            self._users += 1
        thread = Thread(target=renew, name="sightline-claims", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            with self._users_change:
                self._users -= 1
                self._leaving = max(0, self._leaving - 1)

    def release(self) -> None:
        """Give up every claim of this process, unless another block of `renewed` may still need some.

        Call it once, at the end of the block. Blocks that end together may all call it before any of them
        has ended: the last call gives up the claims.
        """
        with self._users_change:
            if self._users:
                self._leaving += 1
        # A block that begins after the decision claims only when this lock is free. The event loop, which
        # begins and ends blocks, never waits for it.
        with self._claiming:
            with self._users_change:
                may_be_needed = self._leaving < self._users
            if not may_be_needed:
                self._release()

    @repeat_if_lost
    def _release(self) -> None:
        with self._database.write() as connection:
            connection.change("DELETE FROM claims WHERE owner = ?", (self._owner,))

    @repeat_if_lost
    def held(self) -> list[bytes]:
        """Find the requests that processes are sending now, and the batches that they wait for."""
        with self._database.read() as connection:
            times = read_times(connection, self._uptime)
            rows: list[_Row] = connection.rows("SELECT key, owner, until FROM claims")
        over = _over(rows, self._states(rows), times)
        return [row[0] for row in rows if row not in over]

    def end(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """End claims of this process, in the transaction that stores their results."""
        query = "DELETE FROM claims WHERE owner = {} AND key IN ({})"
        change_rows_in(connection, query, (self._owner,), keys)

    def _look(self, keys: Sequence[bytes]) -> _Found:
        """Look which keys no other process holds. This is asked often, so it must not cost a write."""
        query = "SELECT key, owner, until FROM claims WHERE key IN ({})"
        with self._database.read() as connection:
            times = read_times(connection, self._uptime)
            rows = [(key, owner, until) for key, owner, until in rows_in(connection, query, keys)]
        others = [row for row in rows if row[1] != self._owner]
        states = self._states(others)
        ended = {owner for owner, state in states.items() if state == "ended"}
        is_steady = self._renewals.are_steady()
        lapsed = _over(others, states, times) if is_steady else set()
        held = {row[0] for row in others if row[1] not in ended and row not in lapsed}
        return _Found([key for key in keys if key not in held], lapsed, ended)

    def _delete_over(self, connection: Connection, found: _Found) -> None:
        change_rows_in(connection, "DELETE FROM claims WHERE owner IN ({})", (), sorted(found.ended))
        # This process may have waited for the store: then the owners could not renew their claims either.
        if found.lapsed and self._renewals.are_steady():
            # Not if they were renewed since.
            query = "DELETE FROM claims WHERE key = ? AND owner = ? AND until = ?"
            connection.change_many(query, sorted(found.lapsed))

    def _states(self, rows: Iterable[_Row]) -> dict[str, OwnerState]:
        owners = {owner for _, owner, _ in rows}
        return {owner: state_of_owner(owner, one_machine=self._is_one_machine) for owner in owners}

    @property
    def _is_one_machine(self) -> bool:
        return self._database.is_file


def _over(rows: Iterable[_Row], states: Mapping[str, OwnerState], times: LeaseTimes) -> set[_Row]:
    return {row for row in rows if not times.hold(row[2], CLAIM_SECONDS, states[row[1]])}


# -- Owners of claims: the name of a process, from which others on its machine see whether it has ended

OwnerState = Literal["ended", "working", "unknown"]

_PROC = Path("/proc")
_LAYOUT = struct.Struct(">6sII6s4s")
"""The fields of `_Owner`: 24 bytes, so that a name has 32 characters."""


class _Owner(NamedTuple):
    """The fields of a name."""

    boot: bytes
    namespace: int
    process: int
    start: bytes
    part: bytes


def new_owner() -> str:
    process = os.getpid()
    boot, namespace = _machine(process)
    start = _read_status(process)[1] if any(boot) else bytes(6)
    owner = _Owner(boot, namespace, process, start, os.urandom(4))
    return urlsafe_b64encode(_LAYOUT.pack(*owner)).decode()


def state_of_owner(owner: str, *, one_machine: bool) -> OwnerState:
    boot, namespace = _machine(os.getpid())
    try:
        found = _Owner(*_LAYOUT.unpack(urlsafe_b64decode(owner)))
    except (ValueError, struct.error):
        return "unknown"
    if not any(boot):
        return "unknown"
    if found.boot != boot:
        return "ended" if one_machine else "unknown"
    return _state(found) if found.namespace == namespace else "unknown"


def seconds_since_boot() -> float:
    """A clock that nobody sets, and that goes on while a process is stopped or the machine sleeps."""
    # Only Linux has it. Elsewhere the clock may stand still while the machine sleeps, with all its processes.
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


@cache
def _machine(process: int) -> tuple[bytes, int]:
    """The boot and the PID namespace of this process; zeros where /proc does not show them."""
    try:
        # /proc may be that of another namespace.
        if os.readlink(_PROC / "self") == str(process):
            boot_id = (_PROC / "sys/kernel/random/boot_id").read_bytes()
            return sha256(boot_id).digest()[:6], os.stat(_PROC / "self/ns/pid").st_ino & 0xFFFFFFFF
    except OSError:
        pass
    return bytes(6), 0


def _state(owner: _Owner) -> OwnerState:
    try:
        os.kill(owner.process, 0)
    except ProcessLookupError:
        return "ended"
    except PermissionError:  # a process of another user
        pass
    try:
        letter, start = _read_status(owner.process)
    except OSError:
        return "unknown"
    if start != owner.start or letter in "ZX":  # Z: it waits for its parent
        return "ended"
    return "unknown" if letter in "Tt" else "working"


def _read_status(process: int) -> tuple[str, bytes]:
    """Read the letter of a process's state, and when it started."""
    line = (_PROC / str(process) / "stat").read_text(errors="replace")
    letter, *fields = line.rpartition(")")[2].split()
    return letter, int(fields[18]).to_bytes(6, "big")


# -- What its renewals tell a process: whether its claims hold, and whether others could renew theirs

CLAIM_SECONDS = 15.0
"""How long a claim holds without renewal.

With 5 seconds, eight processes that started at once on two busy cores renewed their claims too late.
"""
WORKING_SECONDS = 60.0
"""The same for a process of this machine that lives and is not stopped: it waits for a processor."""
RENEWAL_SECONDS = 1.0
"""The time between two renewals."""
GRACE_SECONDS = 5.0
"""How long the renewals of a process must have gone on before it takes claims of others that lapsed.

While the store is locked or the machine stands still, nobody can renew. Each process notices that by its own
renewals, and gives the others this time for theirs.
"""


class Renewals:
    """When this process renewed its claims, all together. Threads may share it.

    `generation` changes whenever the claims of before may have lapsed.
    """

    def __init__(self, uptime: Callable[[], float]) -> None:
        """`uptime` is a clock in seconds that goes on while this process is stopped."""
        self.generation = 0
        self._uptime = uptime
        self._lock = Lock()
        self._held_until = -math.inf
        self._last = -math.inf
        self._steady_since = -math.inf

    def record(self, began: float) -> None:
        with self._lock:
            now = self._uptime()
            if now > self._held_until:
                self.generation += 1
            if now - self._last > GRACE_SECONDS:
                self._steady_since = now
            self._last = now
            self._held_until = began + CLAIM_SECONDS

    def record_claims(self, began: float) -> None:
        with self._lock:
            self._held_until = min(self._held_until, began + CLAIM_SECONDS)

    def doubt(self) -> None:
        """Make every claim uncertain, so that it is taken again before its request is sent."""
        with self._lock:
            self.generation += 1

    def holds(self, generation: int) -> bool:
        """Decide whether claims surely hold until a request is sent."""
        certain = self._held_until - RENEWAL_SECONDS
        return generation == self.generation and self._uptime() < certain

    def are_steady(self) -> bool:
        """Decide whether other processes could renew their claims, by the renewals of this one."""
        with self._lock:
            now = self._uptime()
            return now - self._last <= GRACE_SECONDS and now - self._steady_since > GRACE_SECONDS


# -- Repeats a write to the store while a block runs, so that other processes see that this one works


@asynccontextmanager
async def renewed(renew: Callable[[], Awaitable[None]], seconds: float) -> AsyncIterator[None]:
    """Call a function again and again, until the block ends.

    An error of a renewal does not change the outcome of the block: the next one may succeed.
    """
    renewal = asyncio.create_task(_renew(renew, seconds))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal


async def _renew(renew: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        with suppress(EnvironmentFailedError, UserError):
            await renew()


# -- The time of claims and leases: of a server, or since the machine started; no wrong clock changes it

_SERVER_TIMES = "SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM pg_postmaster_start_time())"


class LeaseTimes(NamedTuple):
    """What decides whether a claim or a lease holds.

    `now` is in seconds: of a server since 1970, of a SQLite file since its machine started.
    """

    now: float
    honoured_since: float
    is_one_machine: bool

    def hold(self, until: float, lease_seconds: float, state: OwnerState = "unknown") -> bool:
        if state == "ended" or (self.is_one_machine and until > self.now + lease_seconds):
            return False  # A later end is of another clock: that of before the machine started again.
        if self.now - self.honoured_since <= lease_seconds:
            return True
        patience = WORKING_SECONDS - CLAIM_SECONDS if state == "working" else 0.0
        return until >= self.now - patience


def read_times(connection: Connection, uptime: Callable[[], float]) -> LeaseTimes:
    """Read the time. A server's own clock is the only one that all machines share."""
    if connection.is_file:
        return LeaseTimes(uptime(), -math.inf, is_one_machine=True)
    ((now, started),) = connection.rows(_SERVER_TIMES)
    return LeaseTimes(float(now), float(started), is_one_machine=False)


# -- The budget of a run: a maximum number of calls, and a maximum cost where prices are configured


class Spending(Struct):
    """Tokens and money that answers cost. Money is in the currency of the configured prices.

    `estimated` counts the answers whose server reported no tokens.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    estimated: int = 0

    def add(self, usage: Usage, cost: float, *, is_estimated: bool = False) -> None:
        """Count one more answer."""
        self.prompt_tokens += usage.prompt_tokens or 0
        self.completion_tokens += usage.completion_tokens or 0
        self.cost += cost
        self.estimated += is_estimated

    def plus(self, later: Spending) -> Spending:
        return Spending(
            self.prompt_tokens + later.prompt_tokens,
            self.completion_tokens + later.completion_tokens,
            self.cost + later.cost,
            self.estimated + later.estimated,
        )


class Spent(Struct):
    """What counts towards a budget, of the calls to one model."""

    calls: int = 0
    outstanding: int = 0
    answered: int = 0
    cost: float = 0.0
    highest: float = 0.0

    @property
    def committed(self) -> float:
        """The cost of the answers, and the expected cost of the outstanding ones."""
        return self.cost + self.outstanding * self.highest

    def plus(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.outstanding + other.outstanding,
            self.answered + other.answered,
            self.cost + other.cost,
            max(self.highest, other.highest),
        )


class Budget(Struct, frozen=True):
    """Limits of a run, None for no limit; `price` is the price of the model that receives the requests."""

    max_requests: int | None = None
    max_cost: float | None = None
    price: Price | None = None

    @property
    def is_limited(self) -> bool:
        return self.max_requests is not None or self.max_cost is not None

    def room(
        self, model: str, spent: Mapping[str, Spent], wanted: int, expected_cost: float | None = None
    ) -> int:
        """Decide how many more requests may be sent to a model.

        With a maximum cost, each outstanding request counts like the most expensive answer so far, and at
        most twice as many requests are outstanding as there are answers, because one answer predicts the cost
        of the next poorly.
        """
        own = spent.get(model, Spent())
        if self.max_requests is not None:
            wanted = min(wanted, self.max_requests - sum(one.calls for one in spent.values()))
        if self.max_cost is None:
            return max(0, wanted)
        if expected_cost is None:
            wanted = min(wanted, 2 * own.answered + 1 - own.outstanding)
            if sum(one.cost for one in spent.values()) >= self.max_cost:
                return 0
        others = sum(one.committed for name, one in spent.items() if name != model)
        each = max(own.highest, expected_cost or 0.0)
        room = 0
        while room < wanted and others + own.cost + each * (own.outstanding + room + 1) <= self.max_cost:
            room += 1
        return room

    def has_room_for_attempt(self, spent: Mapping[str, Spent]) -> bool:
        """Decide whether a request may be sent once more. Its cost counts as outstanding already."""
        return self.max_requests is None or sum(one.calls for one in spent.values()) < self.max_requests

    def cost_of(self, usage: Usage) -> float:
        return self.price.of(usage) if self.price is not None else 0.0


# -- The ledger of a run: what each of its processes has spent, in the store that they share

ACCOUNT_LEASE_SECONDS = 30.0
"""How long a process counts as running without a renewal, unless it can be seen that it has ended."""

_LEFT = 0.0
"""`until` of a process that has left."""

Room = Callable[[Mapping[str, Spent]], Spent]
"""What is added to the spending of a model, given what was spent on each model."""


class _Entry(NamedTuple):
    """What a process has spent by model, and whether it runs."""

    spent: dict[str, Spent]
    is_running: bool


class Ledger:
    """The part of one process in the ledger of a run. All methods block."""

    def __init__(self, database: Database, uptime: Callable[[], float], run: bytes) -> None:
        """`uptime` is the seconds since the machine started; a server has a clock of its own."""
        self._database = database
        self._uptime = uptime
        self._run = run
        self._process = new_owner()

    @repeat_if_lost
    def join(self) -> None:
        """Begin; if no other process runs, what earlier ones have spent is forgotten."""
        with self._database.write() as connection:
            _lock(connection)
            if not any(entry.is_running for entry in self._others(connection)):
                connection.change("DELETE FROM spending WHERE run = ?", (self._run,))
            self._write(connection, {})

    @repeat_if_lost
    def write(self, spent: Mapping[str, Spent]) -> None:
        """Tell the other processes that this one runs, and what it has spent."""
        with self._database.write() as connection:
            self._write(connection, spent)

    @repeat_if_lost
    def reserve(self, spent: Mapping[str, Spent], model: str, room: Room) -> tuple[Spent, bool]:
        """Add to what this process has spent, as far as the spending of all processes allows."""
        with self._database.write() as connection:
            _lock(connection)
            others = self._others(connection)
            added = room(_sums([spent, *(_final(entry) for entry in others)]))
            self._write(connection, {**spent, model: spent.get(model, Spent()).plus(added)})
        return added, any(
            one.outstanding for entry in others if entry.is_running for one in entry.spent.values()
        )

    @repeat_if_lost
    def leave(self, spent: Mapping[str, Spent]) -> None:
        """End: what this process has spent counts as long as another one runs."""
        with self._database.write() as connection:
            self._write(connection, spent, until=_LEFT)

    def _write(self, connection: Connection, spent: Mapping[str, Spent], until: float | None = None) -> None:
        if until is None:
            until = read_times(connection, self._uptime).now + ACCOUNT_LEASE_SECONDS
        row = (msgspec.json.encode(spent), until, self._run, self._process)
        if not connection.change(
            "UPDATE spending SET body = ?, until = ? WHERE run = ? AND process = ?", row
        ):
            connection.change("INSERT INTO spending (body, until, run, process) VALUES (?, ?, ?, ?)", row)

    def _others(self, connection: Connection) -> list[_Entry]:
        times = read_times(connection, self._uptime)

        def is_running(process: str, until: float) -> bool:
            state = state_of_owner(process, one_machine=times.is_one_machine)
            return until != _LEFT and times.hold(until, ACCOUNT_LEASE_SECONDS, state)

        query = "SELECT process, body, until FROM spending WHERE run = ? AND process != ?"
        return [
            _Entry(msgspec.json.decode(body, type=dict[str, Spent]), is_running(process, until))
            for process, body, until in connection.rows(query, (self._run, self._process))
        ]


def _lock(connection: Connection) -> None:
    """Let one process at a time read the ledger and write to it."""
    lock_table(connection, "spending", "EXCLUSIVE")


def _final(entry: _Entry) -> Mapping[str, Spent]:
    """What counts of a process: the requests that an ended one had in flight count as answered."""
    if entry.is_running:
        return entry.spent
    return {
        model: msgspec.structs.replace(one, cost=one.committed, outstanding=0)
        for model, one in entry.spent.items()
    }


def _sums(all_spent: Sequence[Mapping[str, Spent]]) -> dict[str, Spent]:
    sums: dict[str, Spent] = {}
    for spent in all_spent:
        for model, one in spent.items():
            sums[model] = sums.get(model, Spent()).plus(one)
    return sums
