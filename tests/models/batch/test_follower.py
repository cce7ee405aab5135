"""How long a batch is followed at a provider that fails."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import pytest

from sightline.config import BatchSettings
from sightline.models import batches
from sightline.models.batch_client import Batch, BatchClient, CallFailedError, Journal, OpenBatch
from sightline.models.batches import BatchProgress, Follower
from sightline.types import Answer, Failure

SETTINGS = BatchSettings(appears=0.01, poll=0.01, slowest_poll=0.02)


class FailingClient(BatchClient):
    """A provider that fails to create a batch for a while; the batch may exist nevertheless."""

    def __init__(self, failures: int, *, batch_exists: bool = False) -> None:
        self.failures = failures
        self.batch_exists = batch_exists
        self.created = 0

    async def create(self, file: str) -> Batch:
        self.created += 1
        if self.created <= self.failures:
            raise CallFailedError(Failure("transient", "POST /batches: HTTP 500", status=500))
        return Batch("b", "cancelled", file)

    async def find(self, file: str, created: float) -> Batch | None:
        return Batch("b", "cancelled", file) if self.batch_exists else None


class OneBatch(Journal):
    """A journal of one batch, which keeps what leaves it."""

    def __init__(self) -> None:
        self.removed = list[str]()

    async def record_id(self, number: int, batch: str | None) -> None:
        pass

    async def record_state(self, number: int, state: str) -> None:
        pass

    async def add(self, address: str, file: str, keys: Sequence[str]) -> OpenBatch | None:
        return None

    async def find(self, keys: Sequence[str]) -> list[OpenBatch]:
        return []

    async def reserve(self, batch: OpenBatch) -> OpenBatch | None:
        return batch

    async def release(self, batch: OpenBatch) -> None:
        pass

    async def remove(self, number: int, keys: Sequence[str]) -> None:
        self.removed += keys


def followed(client: BatchClient) -> tuple[list[str], dict[str, Answer | Failure], list[str]]:
    """Follow a new batch; returns what was shown, the results, and the keys that left the journal."""
    shown, results, journal = list[str](), dict[str, Answer | Failure](), OneBatch()

    async def put(key: str, result: Answer | Failure) -> None:
        results[key] = result

    async def follow() -> None:
        record = OpenBatch(
            number=1, address="a", file="f", batch=None, state="new", requests=1,
            created=time.time(), keys=frozenset({"k"}),
        )  # fmt: skip
        async with asyncio.timeout(30):
            watched = Follower(client, journal, SETTINGS, BatchProgress(shown.append), put, "host")
            await watched.follow(record, is_new=True)

    asyncio.run(follow())
    return shown, results, journal.removed


def test_a_provider_that_creates_no_batch_is_left_to_the_next_run_after_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batches, "OUTAGE_SECONDS", 0.1)
    client = FailingClient(failures=10**9)
    shown, results, removed = followed(client)
    assert client.created > 1
    result = results["k"]
    assert isinstance(result, Failure)
    assert (result.kind, result.status) == ("transient", 500)
    assert removed == []
    assert "host creates no batch for now: POST /batches: HTTP 500" in shown
    assert shown[-1] == ""


def test_a_batch_is_created_when_the_provider_works_again() -> None:
    client = FailingClient(failures=2)
    _, results, _ = followed(client)
    assert client.created == 3
    assert "b is cancelled" in str(results["k"])


def test_a_batch_that_exists_after_a_failed_call_is_not_created_again() -> None:
    client = FailingClient(failures=1, batch_exists=True)
    followed(client)
    assert client.created == 1
