"""The journal of batches at providers: which requests are in which batch, until they are answered.

A batch is added before the provider creates it. So nothing is sent twice, even if the process is killed at
any moment: the next one finds the batch here, or by its input file in the provider's list.

A batch may take a day, and claims are renewed each second. So the process that follows a batch has one claim
on it, instead of one on each request: what is in a batch, the journal says already. The claims on the
requests return when the batch has ended, and hold until the results are stored.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sightline.models.batch_client import OpenBatch
from sightline.store.answers import State
from sightline.store.claims import Claims
from sightline.store.database import (
    Connection,
    Database,
    change_rows_in,
    insert,
    repeat_if_lost,
    rows_in,
    run_in_thread,
)
from sightline.store.encoding import storable_text

NEW = "new"
"""The state of a batch that the provider may not have created yet."""

_BATCHES = "SELECT id, address, file, batch, state, requests, created FROM batches ORDER BY id"


class InBatches(NamedTuple):
    """The keys of requests in batches: those that this process may fetch, and those that another one has."""

    own: set[str]
    elsewhere: set[str]


class BatchJournal:
    """The batches in one open store. Use it as `store.batches`. Methods that are not async block."""

    def __init__(self, database: Database, claims: Claims, clock: Callable[[], float]) -> None:
        """`clock` returns the seconds since 1970."""
        self._database = database
        self._claims = claims
        self._clock = clock

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        own_keys = [bytes.fromhex(key) for key in keys]
        return await run_in_thread(self._claim_and_add, storable_text(address), file, own_keys)

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        return await run_in_thread(self.holding, keys)

    async def record_id(self, number: int, batch: str | None) -> None:
        await run_in_thread(self._record_id, number, batch)

    async def record_state(self, number: int, state: str) -> None:
        await run_in_thread(self._record_state, number, state[:40])

    async def leave(self, batch: OpenBatch, keys: Sequence[str]) -> None:
        await run_in_thread(self._leave, batch, keys)

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        await run_in_thread(self._remove, number, [bytes.fromhex(key) for key in keys])

    @repeat_if_lost
    def holding(self, keys: Sequence[str]) -> list[OpenBatch]:
        """Find the batches that hold any of some requests, none of which has an answer."""
        found: dict[int, set[str]] = defaultdict(set)
        with self._database.read() as connection:
            query = "SELECT key, batch FROM batch_requests WHERE key IN ({})"
            for key, number in rows_in(connection, query, [bytes.fromhex(key) for key in keys]):
                found[number].add(bytes(key).hex())
            if not found:
                return []  # as for most runs: this is asked often
            rows = [row for row in connection.rows(_BATCHES) if row[0] in found]
        return [_open_batch(row, found[row[0]]) for row in rows]

    def take(self, keys: Sequence[str]) -> InBatches:
        """Reserve the batches that hold any of some requests for this process, which then follows them."""
        batches = self.holding(keys)
        if not batches:
            return InBatches(set(), set())
        taken = self._claims.take([_claim_key(batch.address, batch.file).hex() for batch in batches])
        if taken:
            batches = self.holding(keys)  # another process may have ended one before it was taken
        held = {key for batch in batches for key in batch.keys}
        in_own = {
            key
            for batch in batches
            if _claim_key(batch.address, batch.file).hex() in taken
            for key in batch.keys
        }
        # The process that followed the batch before may be storing its results.
        own = self._claims.free(list(in_own)) if in_own else set()
        return InBatches(own, held - own)

    @repeat_if_lost
    def followed(self) -> list[bytes]:
        batches = self.all()
        held = set(self._claims.held()) if batches else set()
        numbers = [batch.number for batch in batches if _claim_key(batch.address, batch.file) in held]
        query = "SELECT key FROM batch_requests WHERE batch IN ({})"
        with self._database.read() as connection:
            return [bytes(key) for (key,) in rows_in(connection, query, numbers)]

    @repeat_if_lost
    def all(self) -> list[OpenBatch]:
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

    def _claim_and_add(self, address: str, file: str, keys: Sequence[bytes]) -> OpenBatch | None:
        claim = _claim_key(address, file)
        self._claims.take([claim.hex()])
        batch = self._add(address, file, keys)
        if batch is None:
            self._end_claim(claim)
        return batch

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
            ((number,),) = connection.rows(add, (address, *about))
            rows = [(key, number) for key in sorted(keys)]
            insert(connection, "batch_requests", ("key", "batch"), rows, "ON CONFLICT DO NOTHING")
            own = "SELECT count(*) FROM batch_requests WHERE batch = ?"
            if connection.rows(own, (number,))[0][0] != len(rows):
                connection.roll_back()  # another process was faster
                return None
            self._claims.end(connection, sorted(keys))
        state, requests, created = about[1:]
        row = (number, address, file, None, state, requests, created)
        return _open_batch(row, (key.hex() for key in keys))

    def _leave(self, batch: OpenBatch, keys: Sequence[str]) -> None:
        """Take claims on requests in place of the one on their batch, so that at each moment one holds."""
        taken = self._claims.take(keys)
        self._end_claim(_claim_key(batch.address, batch.file))
        # Further requests of the batch may wait to be fetched by this process, without a claim from now on.
        if len(taken) < len(keys) or len(batch.keys) < batch.requests:
            self._claims.doubt()

    @repeat_if_lost
    def _end_claim(self, claim: bytes) -> None:
        with self._database.write() as connection:
            self._claims.end(connection, [claim])

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
    """Drop the requests of batches that have an answer, and the batches that have no other request."""
    answered = (
        "SELECT requests.id FROM requests JOIN answers ON answers.request = requests.id "
        "WHERE requests.key = batch_requests.key AND answers.state = ?"
    )
    query = f"DELETE FROM batch_requests WHERE EXISTS ({answered})"
    dropped = connection.change(query, (State.ANSWERED.value,))
    _drop_empty(connection)
    return dropped


def _claim_key(address: str, file: str) -> bytes:
    """The key of the claim on a batch, as if the batch were a request."""
    return sha256(f"batch\0{address}\0{file}".encode()).digest()


def _drop_empty(connection: Connection) -> None:
    requests = "SELECT batch_requests.key FROM batch_requests WHERE batch_requests.batch = batches.id"
    connection.change(f"DELETE FROM batches WHERE NOT EXISTS ({requests})")


def _open_batch(row: Sequence[Any], keys: Iterable[str] = ()) -> OpenBatch:
    names = ("number", "address", "file", "batch", "state", "requests", "created")
    return OpenBatch(**dict(zip(names, row, strict=True)), keys=frozenset(keys))
