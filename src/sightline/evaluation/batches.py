"""--batch: the journal of what providers answer in batches, and what an evaluation does and says about it.

A batch is in the journal before the provider creates it. So nothing is paid twice, even if the process is
killed at any moment: the next one finds the batch here, or by its input file in the provider's list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from time import time
from typing import Any

from sightline.config import DEFAULT_FILE, Config
from sightline.engine.limits import Counts
from sightline.models.base import Model
from sightline.models.batch_client import OpenBatch
from sightline.models.batches import BatchEndpoint
from sightline.store.answers import State, storable_text
from sightline.store.database import (
    Connection,
    change_rows_in,
    insert,
    repeat_if_lost,
    rows_in,
    run_in_thread,
)
from sightline.store.store import Store
from sightline.text import counted, print_note

NEW = "new"
"""The state of a batch that the provider may not have created yet."""

_BATCHES = "SELECT id, address, file, batch, state, requests, created FROM batches ORDER BY id"


class BatchJournal:
    """The batches in one open store. Methods that are not async block."""

    def __init__(self, store: Store) -> None:
        self._database = store.database
        self._claims = store.claims

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        own_keys = [bytes.fromhex(key) for key in keys]
        return await run_in_thread(self._add, storable_text(address), file, own_keys)

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        return await run_in_thread(self.holding, keys)

    async def reserve(self, batch: OpenBatch) -> OpenBatch | None:
        return await run_in_thread(self._reserve, batch)

    async def release(self, batch: OpenBatch) -> None:
        await run_in_thread(self._release, batch)

    async def record_id(self, number: int, batch: str | None) -> None:
        await run_in_thread(self._record_id, number, batch)

    async def record_state(self, number: int, state: str) -> None:
        await run_in_thread(self._record_state, number, state[:40])

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

    def held(self, keys: Sequence[str]) -> set[str]:
        """Find the requests in batches, which must not be sent."""
        return {key for batch in self.holding(keys) for key in batch.keys}

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

    @repeat_if_lost
    def _add(self, address: str, file: str, keys: Sequence[bytes]) -> OpenBatch | None:
        with self._database.write() as connection:
            taken = (
                "SELECT key FROM batch_requests WHERE key IN ({})",
                f"SELECT key FROM answers WHERE state = {State.ANSWERED.value} AND key IN ({{}})",
            )
            if any(True for query in taken for _ in rows_in(connection, query, keys)):
                return None
            about = (file, NEW, len(keys), time())
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
        state, requests, created = about[1:]
        row = (number, address, file, None, state, requests, created)
        return _open_batch(row, (key.hex() for key in keys))

    def _reserve(self, batch: OpenBatch) -> OpenBatch | None:
        claim = _claim_key(batch)
        if claim.hex() not in self._claims.take([claim.hex()]):
            return None
        # Another process may have created it at the provider, or closed it, before this one reserved it.
        return next((one for one in self.holding(list(batch.keys)) if one.number == batch.number), batch)

    @repeat_if_lost
    def _release(self, batch: OpenBatch) -> None:
        with self._database.write() as connection:
            self._claims.end(connection, [_claim_key(batch)])

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
    answered = "SELECT id FROM answers WHERE answers.key = batch_requests.key AND answers.state = ?"
    query = f"DELETE FROM batch_requests WHERE EXISTS ({answered})"
    dropped = connection.change(query, (State.ANSWERED.value,))
    _drop_empty(connection)
    return dropped


def _claim_key(batch: OpenBatch) -> bytes:
    """The key of the claim on a batch, as if the batch were a request."""
    return sha256(f"batch\0{batch.address}\0{batch.file}".encode()).digest()


def _drop_empty(connection: Connection) -> None:
    requests = "SELECT batch_requests.key FROM batch_requests WHERE batch_requests.batch = batches.id"
    connection.change(f"DELETE FROM batches WHERE NOT EXISTS ({requests})")


def _open_batch(row: Sequence[Any], keys: Iterable[str] = ()) -> OpenBatch:
    names = ("number", "address", "file", "batch", "state", "requests", "created")
    return OpenBatch(**dict(zip(names, row, strict=True)), keys=frozenset(keys))


# -- What an evaluation does and says about batches, and the requests in them


def keep_all(keys: Sequence[str]) -> set[str]:
    """With --batch, no request is held back: the model finds those that are in batches."""
    return set()


def connect_batches(models: Sequence[Model], store: Store, counts: Counts, *, show_progress: bool) -> bool:
    """Connect models that are asked in batches with the journal of a store."""

    def show(state: str) -> None:
        counts.waiting = state

    batched = [model for model in models if isinstance(model, BatchEndpoint)]
    for model in batched:
        model.connect(BatchJournal(store), show, print_note if show_progress else lambda _: None)
    return bool(batched)


def live_models(models: Sequence[Model]) -> list[Model]:
    """The same models, asked request by request: a check of an endpoint does not wait for a batch."""
    return [model.live if isinstance(model, BatchEndpoint) else model for model in models]


def batch_notes(name: str, models: Sequence[Model], config: Config, counts: Counts) -> list[str]:
    notes = []
    if counts.held_back:
        notes.append(
            f"{name}: {counted(counts.held_back, 'request')} not sent: a batch at the provider holds them;"
            " --batch fetches the answers, --fresh TAG asks everything again"
        )
    if isinstance(models[0], BatchEndpoint) and counts.answered and (note := price_note(name, config)):
        notes.append(note)
    return notes


def price_note(name: str, config: Config) -> str:
    """Which price is used where a model has none for batches; '' if it has one, or none at all."""
    price = config.price(name)
    if price is None or price.batch is not None:
        return ""
    return (
        f"{name}: costs of batches are at the price of single requests; most providers charge half:"
        f' [prices."{name}"] batch = {{ prompt = ..., completion = ... }} in {DEFAULT_FILE}'
    )


def open_batches_note(store: Store) -> str:
    """Say which batches go on at providers when a run with --batch ends early."""
    journal = BatchJournal(store)
    journal.close_answered()
    batches = journal.all()
    if not batches:
        return ""
    hosts = ", ".join(sorted({batch.address for batch in batches}))
    requests = counted(sum(batch.requests for batch in batches), "request")
    number = counted(len(batches), "batch", "batches")
    return f"; it fetches what goes on at the provider: {number} ({requests}) at {hosts}"
