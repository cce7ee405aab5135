"""What its renewals tell a process: whether its claims hold, and whether others could renew theirs."""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock

LEASE_SECONDS = 15.0
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
        """Start before the first renewal.

        Args:
            uptime: A clock in seconds, which goes on while this process is stopped.
        """
        self.generation = 0
        self._uptime = uptime
        self._lock = Lock()
        self._held_until = -math.inf
        self._last = -math.inf
        self._steady_since = -math.inf

    def record(self, began: float) -> None:
        """Record that every claim was renewed."""
        with self._lock:
            now = self._uptime()
            if now > self._held_until:
                self.generation += 1
            if now - self._last > GRACE_SECONDS:
                self._steady_since = now
            self._last = now
            self._held_until = began + LEASE_SECONDS

    def record_claims(self, began: float) -> None:
        with self._lock:
            self._held_until = min(self._held_until, began + LEASE_SECONDS)

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
