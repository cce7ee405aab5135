"""The time of claims and leases: of a server, or since the machine started; no wrong clock changes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from sightline.engine import renewals
from sightline.engine.connection import Connection
from sightline.engine.owners import OwnerState

_SERVER_TIMES = "SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM pg_postmaster_start_time())"


class LeaseTimes(NamedTuple):
    """What decides whether a claim or a lease holds.

    Attributes:
        now: The time in seconds; of a server since 1970, of a SQLite file since its machine started.
    """

    now: float
    honoured_since: float
    is_one_machine: bool

    def hold(self, until: float, lease_seconds: float, state: OwnerState = "unknown") -> bool:
        """Decide whether a claim or a lease holds."""
        if state == "ended" or (self.is_one_machine and until > self.now + lease_seconds):
            return False  # A later end is of another clock: that of before the machine started again.
        if self.now - self.honoured_since <= lease_seconds:
            return True
        patience = renewals.WORKING_SECONDS - renewals.LEASE_SECONDS if state == "working" else 0.0
        return until >= self.now - patience


def read_times(connection: Connection, uptime: Callable[[], float]) -> LeaseTimes:
    """Read the time. A server's own clock is the only one that all machines share.

    Args:
        uptime: Returns the seconds since the machine started; for a database without a server.
    """
    if connection.is_file:
        return LeaseTimes(uptime(), -math.inf, is_one_machine=True)
    ((now, started),) = connection.rows(_SERVER_TIMES)
    return LeaseTimes(float(now), float(started), is_one_machine=False)
