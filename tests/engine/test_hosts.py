"""One model at several addresses: a slow one, a fast one, one that is not there, one that dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

import pytest
from tests.engine.conftest import Scripted, text_of

from sightline.engine.limits import Budget, Counts
from sightline.errors import UserError
from sightline.store.answers import KeyedRequest
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]


def _dead(text: str, before: int) -> Failure:
    return Failure("transient", "connection refused")


def test_work_goes_to_the_host_that_has_room(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    slow, fast = scripted(host="slow", seconds=1.0), scripted(host="fast", seconds=0.1)
    counts = in_no_time(ask(store, asking(*range(440)), slow, fast))
    assert counts.answered == 440
    assert len(slow.asked) == pytest.approx(40, abs=10)
    assert len(fast.asked) == pytest.approx(400, abs=10)


def test_an_address_where_nothing_answers_is_left_out_and_named(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    absent, there = scripted(host="absent", absent=True), scripted(host="there")
    counts = in_no_time(ask(store, asking(*range(50)), absent, there))
    assert counts.answered == 50
    assert counts.unavailable == ["no server answers at absent"]
    assert absent.asked == []


def test_where_nothing_answers_anywhere_the_call_is_wrong(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    models = [scripted(host=name, absent=True) for name in ("one", "two")]
    with pytest.raises(UserError, match="no server answers at one"):
        in_no_time(ask(store, asking(1), *models))


def test_a_host_that_dies_on_the_way_loses_nothing(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def mortal(text: str, before: int) -> Answer | Failure:
        return Answer("ok") if asyncio.get_running_loop().time() < 2 else _dead(text, before)

    dying, living = scripted(mortal, host="dying", seconds=0.1), scripted(host="living", seconds=0.1)
    counts = in_no_time(ask(store, asking(*range(1000)), dying, living))
    assert counts.answered == 1000
    assert counts.failed == 0
    assert counts.stopped == ""
    assert 100 < len(dying.asked) < 220


def test_where_every_host_dies_asking_stops_and_the_next_run_goes_on(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def mortal(text: str, before: int) -> Answer | Failure:
        return Answer("ok") if asyncio.get_running_loop().time() < 1 else _dead(text, before)

    requests, dying = asking(*range(500)), scripted(mortal, seconds=0.1)
    counts = in_no_time(ask(store, requests, dying))
    assert counts.stopped == "host"
    assert counts.last_error == "connection refused"
    assert counts.answered == pytest.approx(76, abs=4)
    assert dying.left == 1
    # What was asked in vain is known to have failed for a time, and with what; the rest was not asked.
    known = store.answers.look_up([keyed.request.key for keyed in requests])
    failures = [result for result in known.values() if isinstance(result, Failure)]
    assert (len(known), len(failures)) == (counts.sent, counts.failed)
    assert set(failures) == {Failure("transient", "connection refused")}
    assert counts.sent + counts.retried == len(dying.asked)
    rest = in_no_time(ask(store, requests, scripted()))
    assert (rest.cached, rest.answered, rest.stopped) == (counts.answered, 500 - counts.answered, "")


def test_a_batch_of_which_some_are_answered_shows_that_the_host_lives(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def reply(text: str, before: int) -> Answer | Failure:
        return _dead(text, before) if before < 3 and int(text) % 4 == 0 else Answer("ok")

    model = scripted(reply, batch_size=4, seconds=0.1)
    counts = in_no_time(ask(store, asking(*range(400)), model))
    assert (counts.answered, counts.failed, counts.stopped) == (400, 0, "")


def test_batches_are_as_large_as_the_model_takes(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(batch_size=256, seconds=1.0)
    in_no_time(ask(store, asking(*range(2000)), model))
    assert model.batches == [256] * 7 + [208]


def test_a_batch_waits_neither_for_what_the_budget_holds_back_nor_for_another_process(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    async def run() -> tuple[Counts, Counts]:
        here, there = (Store.open(store.name) for _ in range(2))
        there.claims.take([keyed.request.key for keyed in asking(*range(30))])
        asyncio.get_running_loop().call_later(5, there.claims.release)
        shared = await ask(here, asking(*range(100)), model)
        held = await ask(here, asking(*range(100, 200)), model, budget=Budget(max_requests=50))
        here.close()
        there.close()
        return shared, held

    model = scripted(batch_size=256, seconds=1.0)
    shared, held = in_no_time(run())
    assert model.times[0] < 1.0
    assert (shared.done, shared.stopped) == (100, "")
    assert (held.answered, held.stopped) == (50, "budget")
    assert model.batches[0] == 70


class OneAtATime(Scripted):
    """A server that takes 0.5 s for each call, one after the other, also for clients that have left."""

    def __init__(self, timeout: float) -> None:
        super().__init__()
        self._timeout = timeout
        self._lock = asyncio.Lock()

    async def _work(self) -> None:
        async with self._lock:
            await asyncio.sleep(0.5)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.asked += map(text_of, requests)
        work = asyncio.ensure_future(self._work())
        try:
            await asyncio.wait_for(asyncio.shield(work), self._timeout)
        except TimeoutError:
            yield 0, Failure("transient", "no answer in time", status=408)
        else:
            yield 0, Answer("ok")


@pytest.mark.parametrize("timeout", [3.0, 5.0, 10.0])
def test_a_server_that_answers_one_call_at_a_time_answers_all(
    store: Store, asking: Asking, in_no_time: Any, ask: Ask, timeout: float
) -> None:
    counts = in_no_time(ask(store, asking(*range(80)), OneAtATime(timeout), concurrency=64))
    assert (counts.answered, counts.failed, counts.stopped) == (80, 0, "")


def test_a_host_that_never_answers_in_time_is_given_up(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(lambda *_: Failure("transient", "no answer in time", status=408), seconds=5.0)
    counts = in_no_time(ask(store, asking(*range(80)), model, concurrency=64))
    assert (counts.answered, counts.stopped) == (0, "host")


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize("bad", [23, 60])
def test_requests_that_always_fail_do_not_end_a_run_at_a_healthy_host(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask, bad: int, concurrency: int
) -> None:
    requests = asking(*range(bad + 100))

    def reply(text: str, _: int) -> Answer | Failure:
        return Answer("ok") if int(text) >= bad else Failure("transient", "HTTP 500", status=500)

    counts = in_no_time(ask(store, requests, scripted(reply), concurrency=concurrency))
    assert (counts.answered, counts.failed) == (100, bad)
