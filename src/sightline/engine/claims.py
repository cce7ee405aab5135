"""Claims in the store: while a process sends a request, no other process sends it.

Where a provider answers requests in a batch, one claim on the batch takes the place of those on its requests
(batch_journal.py).

A claim holds for a time, and its owner renews it. Another process takes it when the owner has ended, or did
not renew it although it could. An owner that cannot be sure of a claim takes it again before it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import NamedTuple

from sightline.engine import renewals
from sightline.engine.connection import Connection
from sightline.engine.database import Database, change_rows_in, insert, row_lock, rows_in
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.lease_times import LeaseTimes, read_times
from sightline.engine.owners import OwnerState, new_owner, state_of_owner
from sightline.engine.renewals import Renewals
from sightline.errors import EnvironmentFailedError

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
        """Prepare it; nothing is claimed yet.

        Args:
            uptime: The seconds since the machine started; a server has a clock of its own.
        """
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
        """Reserve requests for this process for LEASE_SECONDS.

        Look them up again after the claim: another process may have answered them in between.
        """
        began = self._uptime()
        found = self._look([bytes.fromhex(key) for key in sorted(keys)])
        if not found.free:
            return set()
        with self._claiming, self._database.write() as connection:
            now = read_times(connection, self._uptime).now
            self._delete_over(connection, found)
            rows = [(key, self._owner, now + renewals.LEASE_SECONDS) for key in found.free]
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
        """Renew every claim of this process for another LEASE_SECONDS."""
        began = self._uptime()
        with self._database.write() as connection:
            until = read_times(connection, self._uptime).now + renewals.LEASE_SECONDS
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
            while not ended.wait(renewals.RENEWAL_SECONDS):
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
        """Delete claims of others that are over."""
        change_rows_in(connection, "DELETE FROM claims WHERE owner IN ({})", (), sorted(found.ended))
        # This process may have waited for the store: then the owners could not renew their claims either.
        if found.lapsed and self._renewals.are_steady():
            # Not if they were renewed since.
            query = "DELETE FROM claims WHERE key = ? AND owner = ? AND until = ?"
            connection.change_many(query, sorted(found.lapsed))

    def _states(self, rows: Iterable[_Row]) -> dict[str, OwnerState]:
        """The state of each owner of claims."""
        owners = {owner for _, owner, _ in rows}
        return {owner: state_of_owner(owner, one_machine=self._is_one_machine) for owner in owners}

    @property
    def _is_one_machine(self) -> bool:
        """Whether all processes that use the store are on this machine."""
        return self._database.is_file


def _over(rows: Iterable[_Row], states: Mapping[str, OwnerState], times: LeaseTimes) -> set[_Row]:
    """Those claims that do not hold any more."""
    return {row for row in rows if not times.hold(row[2], renewals.LEASE_SECONDS, states[row[1]])}
