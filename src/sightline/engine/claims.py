"""Claims in the store: while a process sends a request, no other process sends it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread

from sqlalchemy import delete, select, text, update
from sqlalchemy.engine import Connection
from sqlalchemy.sql.elements import ColumnElement

from sightline.engine import schema
from sightline.engine.database import Database, change_rows_in, insert_new, rows_in
from sightline.engine.database_errors import repeat_if_lost
from sightline.errors import EnvironmentFailedError

LEASE_SECONDS = 15.0
"""How long a claim holds without renewal. Requests of a killed process become free after this time.

With 5 seconds, eight processes that started at once on two busy cores renewed their claims too late.
"""
RENEWAL_SECONDS = 1.0
"""The time between two renewals."""

_SERVER_TIMES = text(
    "SELECT extract(epoch FROM clock_timestamp()), extract(epoch FROM pg_postmaster_start_time())"
)


class Claims:
    """The claims of this process. Use it as `store.claims`."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Prepare it; nothing is claimed yet.

        Args:
            database: The database of the store.
            clock: Returns the seconds since 1970.
        """
        self._database = database
        self._clock = clock
        self._owner = uuid.uuid4().hex

    @repeat_if_lost
    def take(self, keys: Sequence[str]) -> set[str]:
        """Reserve requests for this process for LEASE_SECONDS.

        Look them up again after the claim: another process may have answered them in between.

        Args:
            keys: Request keys.

        Returns:
            The keys that this process may send; another process is sending the others.
        """
        table = schema.claims
        binary = self._without_claims_of_others([bytes.fromhex(key) for key in sorted(keys)])
        if not binary:
            return set()
        with self._database.write() as connection:
            now, honoured_since = times(connection, self._clock)
            over = table.c.until < earliest_end(now, honoured_since, LEASE_SECONDS)
            connection.execute(delete(table).where(over))
            rows = ((key, self._owner, now + LEASE_SECONDS) for key in binary)
            insert_new(connection, table, ("key", "owner", "until"), rows)
            query = "SELECT key, owner FROM claims WHERE key IN ({})"
            return {key.hex() for key, owner in rows_in(connection, query, binary) if owner == self._owner}

    @repeat_if_lost
    def renew(self) -> None:
        """Renew every claim of this process for another LEASE_SECONDS."""
        table = schema.claims
        # Those that another thread ends now are skipped: two orders of locking could become a deadlock.
        own = select(table.c.key).where(self._owned).with_for_update(skip_locked=True)
        with self._database.write() as connection:
            until = times(connection, self._clock)[0] + LEASE_SECONDS
            connection.execute(update(table).where(table.c.key.in_(own)).values(until=until))

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """Renew every claim of this process until the block ends.

        A thread of its own does it: the event loop and the thread that writes may be busy for seconds, for
        example while a model loads or where many processes share a machine.

        Yields:
            Nothing.
        """
        ended = Event()

        def renew() -> None:
            while not ended.wait(RENEWAL_SECONDS):
                # The next renewal may succeed; a store that fails is reported by the next write of an answer.
                with suppress(EnvironmentFailedError):
                    self.renew()

        thread = Thread(target=renew, name="sightline-claims", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    @repeat_if_lost
    def release(self) -> None:
        """Give up every claim of this process."""
        with self._database.write() as connection:
            connection.execute(delete(schema.claims).where(self._owned))

    @repeat_if_lost
    def are_held(self) -> bool:
        """Find out whether a process is sending requests.

        Returns:
            True if a claim holds, of this process or another one.
        """
        with self._database.read() as connection:
            limit = earliest_end(*times(connection, self._clock), LEASE_SECONDS)
            held = select(schema.claims.c.key).where(schema.claims.c.until >= limit)
            return connection.execute(held.limit(1)).first() is not None

    def end(self, connection: Connection, keys: Sequence[bytes]) -> None:
        """End claims of this process, in the transaction that stores their results.

        Args:
            connection: The connection of the transaction.
            keys: Request keys.
        """
        query = "DELETE FROM claims WHERE owner = {} AND key IN ({})"
        change_rows_in(connection, query, (self._owner,), keys)

    def _without_claims_of_others(self, keys: Sequence[bytes]) -> list[bytes]:
        """The keys that no other process is sending. This is asked often, so it must not cost a write."""
        with self._database.read() as connection:
            now, _ = times(connection, self._clock)
            query = "SELECT key, owner, until FROM claims WHERE key IN ({})"
            held = {
                key
                for key, owner, until in rows_in(connection, query, keys)
                if owner != self._owner and until >= now
            }
        return [key for key in keys if key not in held]

    @property
    def _owned(self) -> ColumnElement[bool]:
        return schema.claims.c.owner == self._owner


def times(connection: Connection, clock: Callable[[], float]) -> tuple[float, float]:
    """Read the time, and since when claims could be renewed without an interruption.

    A server's own clock is the only one that all machines share. While it restarts, no process can renew its
    claims.

    Args:
        connection: A connection.
        clock: Returns the seconds since 1970; the clock of a database without a server.

    Returns:
        Both in seconds since 1970.
    """
    if connection.dialect.name != "postgresql":
        return clock(), 0.0
    now, started = connection.execute(_SERVER_TIMES).one()
    return float(now), float(started)


def earliest_end(now: float, honoured_since: float, lease_seconds: float) -> float:
    """The time before which a claim or a lease must end to be over.

    Just after a restart of the server none is over: it could not be renewed yet.

    Args:
        now: The time, as `times` returns it.
        honoured_since: Since when claims could be renewed, as `times` returns it.
        lease_seconds: How long one holds without renewal.

    Returns:
        Seconds since 1970; 0 if none is over.
    """
    return now if now - honoured_since > lease_seconds else 0.0
