"""The ledger of a run: what each of its processes has spent, in the store that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from sightline.engine.budget import Spent
from sightline.engine.connection import Connection
from sightline.engine.database import Database, lock_table
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.lease_times import read_times
from sightline.engine.owners import new_owner, state_of_owner

LEASE_SECONDS = 30.0
"""How long a process counts as running without a renewal, unless it can be seen that it has ended."""
RENEWAL_SECONDS = 1.0
"""How often a process writes what it has spent, although it asks for nothing."""

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
        """Prepare it; nothing is read or written.

        Args:
            uptime: The seconds since the machine started; a server has a clock of its own.
        """
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
            until = read_times(connection, self._uptime).now + LEASE_SECONDS
        row = (msgspec.json.encode(spent), until, self._run, self._process)
        if not connection.change(
            "UPDATE spending SET body = ?, until = ? WHERE run = ? AND process = ?", row
        ):
            connection.change("INSERT INTO spending (body, until, run, process) VALUES (?, ?, ?, ?)", row)

    def _others(self, connection: Connection) -> list[_Entry]:
        times = read_times(connection, self._uptime)

        def is_running(process: str, until: float) -> bool:
            state = state_of_owner(process, one_machine=times.is_one_machine)
            return until != _LEFT and times.hold(until, LEASE_SECONDS, state)

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
    """Model -> what all processes have spent on it."""
    sums: dict[str, Spent] = {}
    for spent in all_spent:
        for model, one in spent.items():
            sums[model] = sums.get(model, Spent()).plus(one)
    return sums
