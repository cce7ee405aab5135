"""The journal of batches at providers: which requests are in which batch, until they are answered.

A batch is added before the provider creates it. So nothing is sent twice, even if the process is killed at
any moment: the next one finds the batch here, or by its input file in the provider's list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sightline.engine.answers import State
from sightline.engine.connection import Connection
from sightline.engine.database import Database, change_rows_in, insert, rows_in
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.storable import storable_text
from sightline.engine.threads import run_in_thread
from sightline.models.batch.open_batch import OpenBatch

NEW = "new"
"""The state of a batch that the provider may not have created yet."""

_BATCHES = "SELECT id, address, file, batch, state, requests, created FROM batches ORDER BY id"


class BatchJournal:
    """The batches in one open store. Use it as `store.batches`. Methods that are not async block."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Prepare it; nothing is read yet.

        Args:
            database: The database of the store.
            clock: Returns the seconds since 1970.
        """
        self._database = database
        self._clock = clock

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        """Add a batch that will be created from an uploaded file, as `Journal.add`."""
        return await run_in_thread(self._add, address, file, [bytes.fromhex(key) for key in keys])

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        """Find the batches that hold any of some requests, as `Journal.find`."""
        return await run_in_thread(self.holding, keys)

    async def record_id(self, number: int, batch: str | None) -> None:
        """Record the provider's id of a batch, as `Journal.record_id`."""
        await run_in_thread(self._record_id, number, batch)

    async def record_state(self, number: int, state: str) -> None:
        """Record the state of a batch, as `Journal.record_state`."""
        await run_in_thread(self._record_state, number, state[:40])

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        """Remove requests that a batch did not answer, as `Journal.remove`."""
        await run_in_thread(self._remove, number, [bytes.fromhex(key) for key in keys])

    @repeat_if_lost
    def holding(self, keys: Sequence[str]) -> list[OpenBatch]:
        """Find the batches that hold any of some requests.

        Args:
            keys: Request keys, none of which has an answer.

        Returns:
            The batches, in the order in which they were added.
        """
        found: dict[int, set[str]] = defaultdict(set)
        with self._database.read() as connection:
            query = "SELECT key, batch FROM batch_requests WHERE key IN ({})"
            for key, number in rows_in(connection, query, [bytes.fromhex(key) for key in keys]):
                found[number].add(bytes(key).hex())
            if not found:
                return []  # as for most runs: this is asked often
            rows = [row for row in connection.rows(_BATCHES) if row[0] in found]
        return [_open_batch(row, found[row[0]]) for row in rows]

    @repeat_if_lost
    def all(self) -> list[OpenBatch]:
        """List all batches.

        Returns:
            The batches, in the order in which they were added, without the keys of their requests.
        """
        with self._database.read() as connection:
            return [_open_batch(row) for row in connection.rows(_BATCHES)]

    @repeat_if_lost
    def close_answered(self) -> None:
        """Remove the requests whose answers are in the store, and the batches that have no others."""
        with self._database.read() as connection:
            if not connection.rows("SELECT id FROM batches LIMIT 1"):
                return
        with self._database.write() as connection:
            drop_answered(connection)

    @repeat_if_lost
    def _add(self, address: str, file: str, keys: Sequence[bytes]) -> OpenBatch | None:
        with self._database.write() as connection:
            taken = (
                "SELECT key FROM batch_requests WHERE key IN ({})",
                "SELECT requests.key FROM requests JOIN answers ON answers.request = requests.id "
                f"WHERE answers.state = {State.ANSWERED.value} AND requests.key IN ({{}})",
            )
            if any(True for query in taken for _ in rows_in(connection, query, keys)):
                return None
            about = (file, NEW, len(keys), self._clock())
            add = (
                "INSERT INTO batches (address, file, state, requests, created) VALUES (?, ?, ?, ?, ?) "
                "RETURNING id"
            )
            ((number,),) = connection.rows(add, (storable_text(address), *about))
            rows = [(key, number) for key in sorted(keys)]
            insert(connection, "batch_requests", ("key", "batch"), rows, "ON CONFLICT DO NOTHING")
            own = "SELECT count(*) FROM batch_requests WHERE batch = ?"
            if connection.rows(own, (number,))[0][0] != len(rows):
                connection.roll_back()  # another process was faster
                return None
        state, requests, created = about[1:]
        row = (number, address, file, None, state, requests, created)
        return _open_batch(row, (key.hex() for key in keys))

    @repeat_if_lost
    def _record_id(self, number: int, batch: str | None) -> None:
        with self._database.write() as connection:
            connection.change("UPDATE batches SET batch = ? WHERE id = ?", (batch, number))
            if not batch:
                connection.change("UPDATE batches SET state = ? WHERE id = ?", (NEW, number))

    @repeat_if_lost
    def _record_state(self, number: int, state: str) -> None:
        with self._database.write() as connection:
            connection.change("UPDATE batches SET state = ? WHERE id = ?", (state, number))

    @repeat_if_lost
    def _remove(self, number: int, keys: Sequence[bytes]) -> None:
        with self._database.write() as connection:
            query = "DELETE FROM batch_requests WHERE batch = {} AND key IN ({})"
            change_rows_in(connection, query, (number,), keys)
            _drop_empty(connection)


def drop_answered(connection: Connection) -> int:
    """Drop the requests of batches that have an answer, and the batches that have no other request.

    Args:
        connection: A connection that writes.

    Returns:
        The number of requests.
    """
    answered = (
        "SELECT requests.id FROM requests JOIN answers ON answers.request = requests.id "
        "WHERE requests.key = batch_requests.key AND answers.state = ?"
    )
    query = f"DELETE FROM batch_requests WHERE EXISTS ({answered})"
    dropped = connection.change(query, (State.ANSWERED.value,))
    _drop_empty(connection)
    return dropped


def _drop_empty(connection: Connection) -> None:
    requests = "SELECT batch_requests.key FROM batch_requests WHERE batch_requests.batch = batches.id"
    connection.change(f"DELETE FROM batches WHERE NOT EXISTS ({requests})")


def _open_batch(row: Sequence[Any], keys: Iterable[str] = ()) -> OpenBatch:
    names = ("number", "address", "file", "batch", "state", "requests", "created")
    return OpenBatch(**dict(zip(names, row, strict=True)), keys=frozenset(keys))
