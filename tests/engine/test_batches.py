"""What the engine does for models that are asked in batches, and for requests that are in one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any

import pytest

from sightline.config import Price
from sightline.engine.limits import Budget, Counts
from sightline.engine.selector import REVISIT_SECONDS
from sightline.models.base import Capabilities
from sightline.store.answers import Attempt, KeyedRequest
from sightline.store.database import Connection
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request, Usage

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]


def slow_batches(scripted: Any, reply: Any = None) -> Any:
    model = scripted(reply, batch_size=100, seconds=3600.0)
    model.capabilities = Capabilities(gather=15.0)
    return model


def test_requests_that_failed_are_sent_again_in_one_batch(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def reply(text: str, before: int) -> Answer | Failure:
        return Failure("transient", "HTTP 500") if before < int(text) % 3 else Answer("yes")

    model = slow_batches(scripted, reply)
    counts = in_no_time(ask(store, asking(*range(30)), model, in_batches=True))
    assert (counts.answered, model.batches) == (30, [30, 20, 10])


def test_a_request_in_a_batch_is_not_sent_and_its_claim_is_given_up(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, model = asking("a", "b", "c"), scripted()
    keys = [keyed.request.key for keyed in requests]
    asyncio.run(store.batches.add("http://host/v1", "file-1", keys[:2]))
    counts = asyncio.run(ask(store, requests, model))
    assert (counts.in_batches, counts.sent, model.asked) == (2, 1, ["c"])
    assert store.claims.held() == []
    fetched = asyncio.run(ask(store, requests, model, in_batches=True))
    assert (fetched.in_batches, fetched.sent, fetched.cached) == (0, 2, 1)


def test_a_request_in_a_batch_that_is_answered_is_cached(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, model = asking("a"), scripted()
    asyncio.run(store.batches.add("http://host/v1", "file-1", [requests[0].request.key]))
    asyncio.run(ask(store, requests, model, in_batches=True))
    counts = asyncio.run(ask(store, requests, model))
    assert (counts.in_batches, counts.cached) == (0, 1)


def test_a_batch_of_another_process_is_waited_for_and_taken_over_when_that_one_has_ended(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, other = asking("a", "b", "c", "d"), Store.open(store.name)
    keys = [keyed.request.key for keyed in requests]
    asyncio.run(other.batches.add("http://host/v1", "file-1", keys[:3]))
    model = scripted()

    async def work() -> Counts:
        run = asyncio.create_task(ask(store, requests, model, in_batches=True))
        while "d" not in model.asked:
            await asyncio.sleep(0.01)
        await asyncio.sleep(3 * REVISIT_SECONDS)
        assert model.asked == ["d"]
        other.answers.add([Attempt(keys[0], requests[0].canonical, Answer("yes"))])
        other.claims.release()
        counts: Counts = await run
        return counts

    counts = asyncio.run(work())
    assert (counts.cached, counts.answered, sorted(model.asked)) == (1, 3, ["b", "c", "d"])
    assert store.claims.held() == []
    other.close()


def test_requests_that_wait_for_the_batch_of_another_process_cost_no_writes(
    store: Store, scripted: Any, asking: Asking, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, other = asking("a", "b"), Store.open(store.name)
    keys = [keyed.request.key for keyed in requests]
    asyncio.run(other.batches.add("http://host/v1", "file-1", keys))
    written, write = list[str](), store.database.write

    def counted() -> AbstractContextManager[Connection]:
        written.append("a transaction")
        return write()

    monkeypatch.setattr(store.claims, "_renew", lambda: None)
    monkeypatch.setattr(store.database, "write", counted)

    async def work() -> None:
        run = asyncio.create_task(ask(store, requests, scripted(), in_batches=True))
        await asyncio.sleep(4 * REVISIT_SECONDS)
        run.cancel()
        with suppress(asyncio.CancelledError):
            await run

    asyncio.run(work())
    assert written == ["a transaction"], "the one that releases the claims"
    other.close()


@pytest.mark.slow
def test_a_failed_line_that_another_process_has_taken_up_is_not_sent_again(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, other = asking("a", "b"), Store.open(store.name)
    keys = [keyed.request.key for keyed in requests]

    class Stopped(scripted):  # type: ignore[misc]
        """Its process is stopped while its batch goes on; another one fetches the batch meanwhile."""

        async def answer(self, sent: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
            self.batches.append(len(sent))
            batch = await store.batches.add("http://host/v1", "file-1", keys)
            assert batch is not None
            with store.database.write() as connection:
                connection.change("DELETE FROM claims")
            assert other.batches.take(keys).own == set(keys)
            await other.batches.leave(batch, keys)
            await other.batches.remove(batch.number, keys)
            await store.batches.leave(batch, keys)
            for index, _ in enumerate(sent):
                yield index, Failure("transient", "no result")

    model = Stopped(batch_size=100)

    async def work() -> Counts:
        run = asyncio.create_task(ask(store, requests, model, in_batches=True))
        await asyncio.sleep(5 * REVISIT_SECONDS)
        assert model.batches == [2]
        other.answers.add([Attempt(one.request.key, one.canonical, Answer("yes")) for one in requests])
        counts: Counts = await run
        return counts

    counts = asyncio.run(work())
    assert (counts.cached, counts.answered, model.batches) == (2, 0, [2])
    other.close()


def test_with_a_maximum_cost_a_batch_takes_what_fits_at_full_length(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    answer = Answer("yes", usage=Usage(1, 24))
    model = slow_batches(scripted, lambda text, before: answer)
    # 1,024 tokens of an answer without a limit cost 1.024; the answers cost 0.024 each.
    budget = Budget(max_cost=10.5, price=Price(completion=1000.0))
    counts = in_no_time(ask(store, asking(*range(19)), model, in_batches=True, budget=budget))
    assert (counts.stopped, model.batches) == ("", [10, 9])
