"""The bounds of the runner: of calls and money, of what exists at any time, of what is not yet written."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import pytest

from sightline.config import Price
from sightline.engine.limits import Account, Budget, Counts
from sightline.store.answers import Attempt, KeyedRequest
from sightline.store.store import Store
from sightline.types import Answer, Failure, Usage

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]


# Budgets


def test_a_budget_of_requests_counts_every_attempt_is_spent_to_the_last_and_the_next_run_goes_on(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def reply(text: str, before: int) -> Answer | Failure:
        return Failure("transient", "busy") if not before and int(text) % 2 else Answer("ok")

    model, requests = scripted(reply, seconds=0.1), asking(*range(100))
    counts = in_no_time(ask(store, requests, model, budget=Budget(max_requests=30)))
    assert counts.stopped == "budget"
    assert counts.sent + counts.retried == len(model.asked) == 30
    done = counts.answered
    assert 0 < done < 30
    counts = in_no_time(ask(store, requests, model, budget=Budget(max_requests=200)))
    assert (counts.cached, counts.answered, counts.stopped) == (done, 100 - done, "")


@pytest.mark.parametrize("batch_size", [1, 16])
def test_a_budget_of_requests_is_kept_whatever_the_batches(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, batch_size: int, ask: Ask
) -> None:
    model = scripted(batch_size=batch_size)
    in_no_time(ask(store, asking(*range(100)), model, budget=Budget(max_requests=21)))
    assert len(model.asked) == 21


def test_a_budget_of_money_is_kept(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    chance = random.Random(1)

    def reply(text: str, _: int) -> Answer:
        return Answer("ok", usage=Usage(1000, chance.randrange(500, 1500)))

    budget = Budget(max_cost=1.0, price=Price(prompt=1.0, completion=10.0))
    model = scripted(reply, seconds=1.0)
    counts = in_no_time(ask(store, asking(*range(1000)), model, budget=budget, concurrency=64))
    assert counts.stopped == "budget"
    assert 1.0 - 2 * 0.016 <= counts.cost <= 1.0
    assert counts.answered == len(model.asked)
    # The first goes alone: nobody knows yet what one costs.
    assert model.batches[:2] == [1, 1]
    assert model.times[1] >= 1.0


def test_a_budget_is_kept_over_the_runners_that_share_an_account(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    models = [scripted(), scripted()]
    account, budget = Account(), Budget(max_requests=30)

    async def both() -> list[Counts]:
        asked = (asking(*range(n, n + 25)) for n in (0, 100))
        runs = zip(models, asked, strict=True)
        return [await ask(store, requests, one, budget=budget, account=account) for one, requests in runs]

    first, second = in_no_time(both())
    assert (first.answered, second.answered, second.stopped) == (25, 5, "budget")


@pytest.mark.parametrize("usage", [Usage(), Usage(0, 0), Usage(10), Usage(invalid=("prompt_tokens",))])
def test_answers_without_usable_tokens_cost_what_the_estimate_says(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask, usage: Usage
) -> None:
    model = scripted(lambda *_: Answer("x" * 400, usage=usage), seconds=1.0)
    budget = Budget(max_cost=1.0, price=Price(prompt=1.0, completion=1000.0))
    counts = in_no_time(ask(store, asking(*range(100)), model, budget=budget))
    assert counts.stopped == "budget"
    assert counts.answered in (9, 10)  # 100 tokens cost 0.1
    assert counts.spending.completion_tokens == 100 * counts.answered
    assert counts.spending.estimated == counts.answered


# Bounds


@pytest.mark.parametrize("batch_size", [1, 32])
def test_many_requests_are_never_held_at_once(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, batch_size: int, ask: Ask
) -> None:
    model = scripted(batch_size=batch_size)
    drawn = ahead = 0

    def requests() -> Iterator[KeyedRequest]:
        nonlocal drawn, ahead
        for drawn in range(1, 2001):
            ahead = max(ahead, drawn - len(model.asked))
            yield from asking(drawn)

    in_no_time(ask(store, requests(), model))
    assert len(model.asked) == 2000
    assert ahead <= 2 * 64 + 2 * max(8, batch_size) + 1


@pytest.mark.slow
def test_of_many_thousand_requests_only_few_exist_at_any_time(
    scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(batch_size=64)
    model.asked = _Forgetful()
    most = 0

    def requests() -> Iterator[KeyedRequest]:
        nonlocal most
        for number in range(20_000):
            if number % 4_000 == 3_999:
                most = max(most, sum(type(thing) is KeyedRequest for thing in gc.get_objects()))
            yield from asking(number)

    counts = in_no_time(ask(_Forgetting(), requests(), model, concurrency=64))
    assert counts.answered == 20_000
    assert 64 <= most <= 6 * 64


class _Forgetting:
    """A store that knows nothing and lets everybody ask everything."""

    generation = 0

    def __init__(self) -> None:
        self.answers = self.claims = self

    def hold(self, _generation: int) -> bool:
        return True

    def settled(self, keys: list[str], *, retry_errors: bool) -> set[str]:
        return set()

    def take(self, keys: list[str]) -> set[str]:
        return set(keys)

    def add(self, entries: list[Attempt]) -> None: ...

    def at_work(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class _Forgetful(list[str]):
    def append(self, text: str) -> None:
        pass


def test_a_store_that_is_slow_holds_up_the_asking(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    """What is not yet committed counts as in flight: memory is bounded by the disk, too."""
    model, committed, ahead = scripted(), 0, 0
    add = store.answers.add

    def slowly(entries: list[Attempt]) -> None:
        nonlocal committed, ahead
        ahead = max(ahead, len(model.asked) - committed)
        add(entries)
        committed += len(entries)

    monkeypatch.setattr(store.answers, "add", slowly)
    in_no_time(ask(store, asking(*range(2000)), model))
    assert ahead <= 64 + 2 * 8
    assert committed == 2000
