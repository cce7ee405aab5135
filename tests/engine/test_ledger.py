"""A budget of a run holds for all its processes that share a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from sightline.engine.account import shared_account
from sightline.engine.budget import Budget, Spent
from sightline.engine.counts import Counts
from sightline.engine.keys import KeyedRequest
from sightline.engine.ledger import LEASE_SECONDS, Ledger
from sightline.engine.store import Store

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]

RUN = b"r" * 32


@pytest.fixture
def any_store(store_url: str) -> Iterator[Store]:
    store = Store.open(store_url)
    yield store
    store.close()


def test_processes_of_a_run_share_its_budget_and_the_next_run_has_all_of_it(
    any_store: Store, scripted: Any, asking: Asking, ask: Ask
) -> None:
    budget = Budget(max_requests=30)

    async def process(first: int) -> Counts:
        async with shared_account(any_store, RUN, budget) as account:
            requests = asking(*range(first, first + 25))
            return await ask(any_store, requests, scripted(seconds=0.01), budget=budget, account=account)

    async def both() -> tuple[Counts, Counts]:
        return await asyncio.gather(process(0), process(100))

    counts = asyncio.run(both())
    assert sum(one.answered for one in counts) == 30
    assert [one.stopped for one in counts].count("budget") >= 1
    assert asyncio.run(process(200)).answered == 25


def test_what_a_killed_process_had_in_flight_counts_as_answered(any_store: Store) -> None:
    now = 1000.0
    killed, other = (Ledger(any_store.database, lambda: now, RUN) for _ in range(2))
    killed.join()
    other.join()
    killed.write({"m": Spent(calls=5, outstanding=3, answered=2, cost=0.2, highest=0.1)})
    seen: list[Spent] = []

    def room(spent: Any) -> Spent:
        seen.append(spent["m"])
        return Spent()

    _, others_are_sending = other.reserve({}, "m", room)
    assert others_are_sending
    if any_store.database.name.startswith("postgres"):
        return  # The clock of the server counts.
    now += LEASE_SECONDS - 1
    other.write({})
    now += 2
    _, others_are_sending = other.reserve({}, "m", room)
    assert not others_are_sending
    assert [round(one.committed, 3) for one in seen] == [0.5, 0.5]
    assert seen[-1].outstanding == 0
