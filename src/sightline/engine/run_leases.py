"""Leases of runs: they show which runs a process is working on now, on this machine or another one."""

from __future__ import annotations

from collections.abc import Callable

from sightline.engine.connection import Connection
from sightline.engine.database import Database
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.existing_run import require_run
from sightline.engine.lease_times import read_times

LEASE_SECONDS = 30.0
"""How long a lease holds without renewal. A killed process holds its run for this time."""


class RunLeases:
    """The leases of all runs of the store. Use it as `store.leases`."""

    def __init__(self, database: Database, uptime: Callable[[], float]) -> None:
        """Prepare it; nothing is read yet.

        Args:
            uptime: The seconds since the machine started; a server has a clock of its own.
        """
        self._database = database
        self._uptime = uptime

    @repeat_if_lost
    def renew(self, run: int) -> None:
        """Hold a run for another LEASE_SECONDS."""
        with self._database.write() as connection:
            require_run(connection, run, self._database.name)
            hold(connection, run, self._uptime)

    @repeat_if_lost
    def release(self, run: int) -> None:
        """End the lease of a run."""
        with self._database.write() as connection:
            connection.change("DELETE FROM run_leases WHERE run = ?", (run,))

    @repeat_if_lost
    def held(self) -> set[int]:
        """Find the runs that a process is working on."""
        with self._database.read() as connection:
            times = read_times(connection, self._uptime)
            rows = connection.rows("SELECT run, until FROM run_leases")
            return {run for run, until in rows if times.hold(until, LEASE_SECONDS)}


def hold(connection: Connection, run: int, uptime: Callable[[], float]) -> None:
    """Hold a run for LEASE_SECONDS from now.

    Args:
        uptime: The seconds since the machine started; a server has a clock of its own.
    """
    until = read_times(connection, uptime).now + LEASE_SECONDS
    if not connection.change("UPDATE run_leases SET until = ? WHERE run = ?", (until, run)):
        connection.change("INSERT INTO run_leases (run, until) VALUES (?, ?)", (run, until))
