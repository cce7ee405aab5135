"""The key of an index: what it depends on, in a form that is quick to compute at each visit.

Answers are only added, and the first one of a request counts: what can change is the description of a run,
its probes while it goes on, the requests that had no answer, and the version of this package.
"""

from __future__ import annotations

import hashlib

import msgspec
from msgspec import Struct
from sqlalchemy import func, select

import sightline
from sightline.engine import schema
from sightline.engine.existing_run import no_run
from sightline.engine.store import Store

MOST_WAITING = 500
"""Of more requests without an answer, only the first ones are watched."""


class Awaited(Struct, frozen=True):
    """Requests that had no answer when a run was indexed.

    Attributes:
        last_attempt: The latest attempt in the store, if judges failed; otherwise None.
    """

    keys: tuple[str, ...] = ()
    attempts: bytes = b""
    last_attempt: int | None = None


def index_key(store: Store, run: int) -> bytes:
    runs, probes = schema.runs.c, schema.probes.c
    with store.database.core_read() as connection:
        row = connection.execute(select(runs.body, runs.finished).where(runs.id == run)).one_or_none()
        if row is None:
            raise no_run(run, store.name)
        extent = select(func.count(), func.max(probes.place)).where(probes.run == run)
        chunks, last = connection.execute(extent).one()
    body, finished = row
    goes_on = store.answers.last_attempt() if finished is None else None
    digest = hashlib.sha256(sightline.__version__.encode())
    digest.update(bytes(body))
    digest.update(msgspec.json.encode([finished, chunks, last, goes_on]))
    return digest.digest()


def awaited(store: Store, keys: tuple[str, ...], *, judges_failed: bool) -> Awaited:
    """Note what may be answered later."""
    last = store.answers.last_attempt() if judges_failed else None
    return Awaited(keys, _attempts(store, keys), last)


def is_current(store: Store, earlier: Awaited) -> bool:
    """Say whether nothing was answered since."""
    if earlier.last_attempt is not None and earlier.last_attempt != store.answers.last_attempt():
        return False
    return not earlier.keys or earlier.attempts == _attempts(store, earlier.keys)


def _attempts(store: Store, keys: tuple[str, ...]) -> bytes:
    counting = store.answers.counting([bytes.fromhex(key) for key in keys])
    numbers = sorted((key, number) for key, (number, _) in counting.items())
    return hashlib.sha256(msgspec.msgpack.encode(numbers)).digest()
