"""What the engine does for models that are asked in batches, and for requests that are in one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sightline.config import Price
from sightline.engine.limits import Budget, Counts
from sightline.evaluation.batches import BatchJournal
from sightline.models.base import Capabilities
from sightline.store.answers import KeyedRequest
from sightline.store.store import Store
from sightline.types import Answer, Failure, Usage

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
    counts = in_no_time(ask(store, asking(*range(30)), model))
    assert (counts.answered, model.batches) == (30, [30, 20, 10])


def test_a_request_in_a_batch_is_not_sent_and_its_claim_is_given_up(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, model = asking("a", "b", "c"), scripted()
    keys = [keyed.request.key for keyed in requests]
    asyncio.run(BatchJournal(store).add("http://host/v1", "file-1", keys[:2]))
    counts = asyncio.run(ask(store, requests, model, held_back=BatchJournal(store).held))
    assert (counts.held_back, counts.sent, model.asked) == (2, 1, ["c"])
    assert store.claims.held() == []
    fetched = asyncio.run(ask(store, requests, model))
    assert (fetched.held_back, fetched.sent, fetched.cached) == (0, 2, 1)


def test_a_request_in_a_batch_that_is_answered_is_cached(
    store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    requests, model = asking("a"), scripted()
    asyncio.run(BatchJournal(store).add("http://host/v1", "file-1", [requests[0].request.key]))
    asyncio.run(ask(store, requests, model))
    counts = asyncio.run(ask(store, requests, model, held_back=BatchJournal(store).held))
    assert (counts.held_back, counts.cached) == (0, 1)


def test_with_a_maximum_cost_a_batch_takes_what_fits_at_full_length(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    answer = Answer("yes", usage=Usage(1, 24))
    model = slow_batches(scripted, lambda text, before: answer)
    # 1,024 tokens of an answer without a limit cost 1.024; the answers cost 0.024 each.
    budget = Budget(max_cost=10.5, price=Price(completion=1000.0))
    counts = in_no_time(ask(store, asking(*range(19)), model, budget=budget))
    assert (counts.stopped, model.batches) == ("", [10, 9])
