"""The runner: nothing is asked twice, nothing is lost, nothing grows without bound."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.engine.conftest import text_of

from sightline.config import Price
from sightline.engine import selector
from sightline.engine.limits import Account, Budget, Counts, EqualRequests
from sightline.engine.selector import MAX_FAILURES
from sightline.errors import EnvironmentFailedError, UserError
from sightline.models.base import Capabilities, ServerReport
from sightline.store import claims
from sightline.store.answers import Attempt, KeyedRequest
from sightline.store.claims import LEASE_SECONDS
from sightline.store.store import Store
from sightline.types import Answer, Failure, Usage

Asking = Callable[..., list[KeyedRequest]]
Ask = Callable[..., Coroutine[Any, Any, Counts]]


def _known(store: Store, requests: Iterable[KeyedRequest]) -> list[Any]:
    keys = [keyed.request.key for keyed in requests]
    known = store.answers.look_up(keys)
    return [known.get(key) for key in keys]


# Nothing is asked twice


def test_every_request_is_asked_once_and_remembered(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model, requests = scripted(seconds=0.1), asking(*range(200))
    counts = in_no_time(ask(store, requests, model))
    assert sorted(model.asked, key=int) == [str(number) for number in range(200)]
    assert _known(store, requests) == [Answer(f"answer to {number}") for number in range(200)]
    assert store.answers.request(requests[7].request.key) == requests[7].canonical
    assert (counts.sent, counts.answered, counts.cached, counts.in_flight) == (200, 200, 0, 0)
    assert (model.entered, model.left, model.peak) == (1, 1, 8)


def test_a_request_that_comes_again_is_asked_once(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(seconds=0.1)
    counts = in_no_time(ask(store, asking(*[number % 10 for number in range(500)]), model))
    assert sorted(model.asked, key=int) == [str(number) for number in range(10)]
    assert counts.sent == counts.done == 10


def test_equal_requests_count_with_the_tokens_and_the_cost_of_the_answer_that_they_share(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    """Before the answer, while it is on its way, and after it; not where the request fails."""
    model = scripted(
        lambda text, _: (
            Failure("permanent", "no")
            if text == "3"
            else Answer("yes", usage=Usage(prompt_tokens=100 + int(text), completion_tokens=1))
        ),
        seconds=0.1,
    )
    numbers = [0, 0, 3, 3, *range(100), 1, *range(4, 400), 3, 2, 2]
    budget = Budget(price=Price(prompt=1e6, completion=0.0))
    counts = in_no_time(ask(store, asking(*numbers), model, budget=budget))
    assert counts.sent == 400
    # 0 twice more, 1, 2 twice, and 4 to 99.
    equal = [0, 0, 1, 2, 2, *range(4, 100)]
    tokens = sum(101 + number for number in equal)
    assert counts.equal == EqualRequests(len(equal), tokens, tokens - len(equal))
    again = in_no_time(ask(store, asking(*numbers), model))
    assert again.equal == EqualRequests()


@pytest.mark.parametrize("retry_errors", [False, True])
def test_a_request_that_the_selector_forgot_is_asked_once(
    store: Store,
    scripted: Any,
    asking: Asking,
    in_no_time: Any,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
    retry_errors: bool,
) -> None:
    """It is on its way, or its answer is in the store, or its failure is remembered."""
    monkeypatch.setattr("sightline.engine.selector.RECENT", 4)
    model = scripted(
        lambda text, _: Failure("permanent", "no") if int(text) % 3 == 0 else Answer("yes"), seconds=0.1
    )
    requests = asking(*[number % 200 for number in range(1000)])
    counts = in_no_time(ask(store, requests, model, retry_errors=retry_errors))
    assert sorted(model.asked, key=int) == [str(number) for number in range(200)]
    assert (counts.sent, counts.answered, counts.failed) == (200, 133, 67)


def test_what_is_known_is_not_asked_and_a_model_that_nobody_asks_is_not_even_entered(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    in_no_time(ask(store, asking(*range(100)), scripted()))
    again = scripted(absent=True)
    counts = in_no_time(ask(store, asking(*range(100)), again))
    assert again.asked == []
    assert (counts.cached, counts.sent, counts.done) == (100, 0, 100)
    in_no_time(ask(store, [], again))


@pytest.mark.parametrize(
    ("prior", "retry_errors", "asked"),
    [
        (Failure("transient", "busy"), False, True),
        (Failure("permanent", "bad request"), False, False),
        (Failure("permanent", "bad request"), True, True),
        (Failure("blocked", "content filter"), False, False),
        (Failure("blocked", "content filter"), True, True),
        (Answer(""), True, False),
    ],
)
def test_what_failed_before_is_asked_again_only_where_that_may_help(
    store: Store,
    scripted: Any,
    asking: Asking,
    in_no_time: Any,
    prior: Any,
    retry_errors: bool,
    asked: bool,
    ask: Ask,
) -> None:
    (request,) = asking("question")
    store.answers.add([Attempt(request.request.key, request.canonical, prior)])
    model = scripted()
    counts = in_no_time(ask(store, [request], model, retry_errors=retry_errors))
    assert bool(model.asked) == asked
    assert counts.cached == (not asked)


def test_several_runners_at_once_on_one_store_share_the_work(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    models = [scripted(seconds=seconds) for seconds in (0.1, 0.1, 0.3)]
    stores = [store, Store.open(store.name), Store.open(store.name)]
    every = []

    async def late(number: int) -> None:
        await asyncio.sleep((0, 0, 1.05)[number])
        every.append(await ask(stores[number], asking(*range(600)), models[number]))

    async def all_of_them() -> None:
        await asyncio.gather(*(late(number) for number in range(3)))

    in_no_time(all_of_them())
    asked = [text for model in models for text in model.asked]
    assert sorted(asked, key=int) == [str(number) for number in range(600)]
    assert all(len(model.asked) > 50 for model in models)
    assert all(counts.done == 600 for counts in every)
    for other in stores[1:]:
        other.close()


def test_what_another_process_answered_while_this_one_was_stopped_is_not_sent(
    tmp_path: Path, scripted: Any, asking: Asking, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most requests wait in the queue, claimed, when the clock moves on by more than the lease."""
    now, path, requests = 0.0, str(tmp_path / "s.db"), asking(*range(100))
    stopped, other = Store.open(path, uptime=lambda: now), Store.open(path)
    monkeypatch.setattr(claims, "has_ended", lambda *_, **__: True)

    def reply(text: str, before: int) -> Answer:
        nonlocal now
        if not now:
            now = LEASE_SECONDS + 1
            taken = other.claims.take([keyed.request.key for keyed in requests[30:]])
            taken_requests = [keyed for keyed in requests if keyed.request.key in taken]
            other.answers.add(
                [Attempt(keyed.request.key, keyed.canonical, Answer("other")) for keyed in taken_requests]
            )
        return Answer("own")

    model = scripted(reply, seconds=0.01)
    counts = asyncio.run(ask(stopped, requests, model, concurrency=4))
    assert counts.done == 100
    assert len(model.asked) <= 30 + 4
    assert counts.cached >= 66
    stopped.close()
    other.close()


def test_a_retry_that_waits_is_not_sent_if_another_process_answered_meanwhile(
    tmp_path: Path, scripted: Any, asking: Asking, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is stopped for longer than the lease after its request failed."""
    now, path, (keyed,) = 0.0, str(tmp_path / "s.db"), asking("question")
    waiting, other = Store.open(path, uptime=lambda: now), Store.open(path)
    monkeypatch.setattr(claims, "has_ended", lambda *_, **__: True)

    def reply(text: str, before: int) -> Failure:
        nonlocal now
        now = LEASE_SECONDS + 1
        assert other.claims.take([keyed.request.key])
        other.answers.add([Attempt(keyed.request.key, keyed.canonical, Answer("other"))])
        return Failure("transient", "busy")

    model, account = scripted(reply), Account()
    budget = Budget(max_requests=5)
    counts = asyncio.run(ask(waiting, [keyed], model, budget=budget, account=account))
    assert (len(model.asked), counts.cached, counts.stopped) == (1, 1, "")
    assert account.reserve(model.name, budget, 5) == 4, "an attempt that was not sent counts"
    waiting.close()
    other.close()


@pytest.mark.slow
def test_a_long_call_keeps_its_claim_even_while_the_event_loop_is_busy(
    tmp_path: Path, scripted: Any, asking: Asking, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "LEASE_SECONDS", 0.5)
    monkeypatch.setattr(claims, "HEARTBEAT_SECONDS", 0.05)
    slow, other = scripted(seconds=0.5), scripted()
    path, (request,) = str(tmp_path / "s.db"), asking("question")

    async def answer_slowly(store: Store) -> None:
        sending = asyncio.create_task(ask(store, [request], slow))
        while not slow.times:
            await asyncio.sleep(0.01)
        time.sleep(2)
        await sending

    first, second = Store.open(path), Store.open(path)
    thread = threading.Thread(target=lambda: asyncio.run(answer_slowly(first)))
    thread.start()
    time.sleep(1)
    counts = asyncio.run(ask(second, [request], other))
    thread.join()
    assert (counts.cached, other.asked) == (1, [])
    first.close()
    second.close()


# Failures


def test_what_fails_for_a_while_is_asked_again_later_and_later(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(lambda text, before: Answer("ok") if before == 5 else Failure("transient", "HTTP 500"))
    requests = asking("question")
    counts = in_no_time(ask(store, requests, model))
    assert _known(store, requests) == [Answer("ok")]
    assert (counts.sent, counts.answered, counts.retried, counts.failed) == (1, 1, 5, 0)
    waits = [later - earlier for earlier, later in zip(model.times, model.times[1:], strict=False)]
    assert all(0.1 * 2**n <= wait <= 0.2 * 2**n + 0.01 for n, wait in enumerate(waits))


def test_what_fails_every_time_is_remembered_as_failed(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    failure = Failure("transient", "HTTP 500", status=500)
    model = scripted(lambda text, _: failure if text == "bad" else Answer("ok"))
    requests = asking("bad", *range(30))
    counts = in_no_time(ask(store, requests, model))
    assert model.asked.count("bad") == MAX_FAILURES
    assert _known(store, requests) == [failure] + [Answer("ok")] * 30
    assert (counts.failed, counts.answered, counts.last_error) == (1, 30, "HTTP 500")


def test_what_failed_for_good_is_asked_once(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(lambda text, _: Failure("permanent", "bad request", status=400))
    counts = in_no_time(ask(store, asking(*range(40)), model))
    assert len(model.asked) == counts.failed == 40
    assert counts.stopped == ""


@pytest.fixture
def serving(scripted: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes a model behind a server that lists another model, by its replies."""

    def make(reply: Callable[[str, int], Answer | Failure]) -> Any:
        model = scripted(reply)
        model.capabilities = Capabilities(endpoint=True)

        async def server_report() -> ServerReport:
            return ServerReport("http://host", listed=("other",))

        model.server_report = server_report
        return model

    return make


@pytest.mark.parametrize("concurrency", [1, 8, 64])
def test_a_refusal_of_all_first_requests_ends_the_run_and_is_not_recorded(
    store: Store, serving: Any, asking: Asking, in_no_time: Any, ask: Ask, concurrency: int
) -> None:
    requests = asking(*range(40))
    refusal = "HTTP 400: Unsupported parameter: 'max_tokens', request id {}"
    model = serving(lambda text, _: Failure("permanent", refusal.format(text), status=400))
    with pytest.raises(UserError, match=r"8 requests .*; the server lists other; .*max_completion_tokens"):
        in_no_time(ask(store, requests, model, concurrency=concurrency))
    assert _known(store, requests) == [None] * 40
    assert len(model.asked) <= 8 + concurrency


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.parametrize(
    ("good", "count"), [("7", 40), ("0", 40), ("none", 7), ("each has its own words", 40), ("39", 9)]
)
def test_refusals_are_recorded_where_one_is_answered_they_differ_or_they_are_few(
    store: Store,
    serving: Any,
    asking: Asking,
    in_no_time: Any,
    ask: Ask,
    good: str,
    count: int,
    concurrency: int,
) -> None:
    requests = asking(*range(count))
    if good == "39":
        requests = asking(39, *range(count))

    def reply(text: str, _: int) -> Answer | Failure:
        own = "abcdefghij"[int(text) % 10] if good.startswith("each") else ""
        return Answer("ok") if text == good else Failure("permanent", f"HTTP 400: no {own}", status=400)

    counts = in_no_time(ask(store, requests, serving(reply), concurrency=concurrency))
    answered = sum(text == good for text in map(text_of, (one.request for one in requests)))
    assert (counts.answered, counts.failed) == (answered, len(requests) - answered)
    kinds = [getattr(one, "kind", "ok") for one in _known(store, requests)]
    assert kinds.count("permanent") == counts.failed
    assert counts.stopped == ""


def test_what_failed_in_a_run_is_not_sent_again_in_it_however_many_requests_come_between(
    store: Store,
    scripted: Any,
    asking: Asking,
    in_no_time: Any,
    ask: Ask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selector, "RECENT", 1)
    failure = Failure("transient", "HTTP 500", status=500)
    model = scripted(lambda text, _: failure if text == "bad" else Answer("ok"))
    counts = in_no_time(ask(store, asking("bad", *range(1000), "bad"), model))
    assert model.asked.count("bad") == MAX_FAILURES
    assert counts.failed == 1


def test_a_request_waits_for_as_long_as_the_host_asks(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model = scripted(
        lambda text, before: Answer("ok") if before else Failure("transient", "HTTP 500", 25.0, 500)
    )
    in_no_time(ask(store, asking("question"), model))
    assert model.times == [0.0, 25.0]


def test_being_refused_is_no_failure_of_the_request(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    refusal = Failure("transient", "HTTP 429", 5.0, 429)
    model = scripted(lambda text, before: Answer("ok") if before == 2 * MAX_FAILURES else refusal)
    requests = asking("question")
    counts = in_no_time(ask(store, requests, model))
    assert _known(store, requests) == [Answer("ok")]
    assert counts.refused == 2 * MAX_FAILURES


def test_a_request_that_alone_is_refused_for_ever_does_not_hold_up_the_end_for_ever(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    refusal = Failure("transient", "HTTP 429: tokens per minute", status=429)
    model = scripted(lambda text, _: refusal if text == "huge" else Answer("ok"), seconds=1.0)
    counts = in_no_time(ask(store, asking("huge", *range(2000)), model, concurrency=2))
    assert (counts.answered, counts.failed) == (2000, 1)


def test_a_model_that_gives_no_answer_at_all_has_failed(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    class Silent(scripted):  # type: ignore[misc]
        async def answer(self, requests: Any) -> Any:
            self.batches.append(len(requests))
            return
            yield

    requests = asking("question")
    counts = in_no_time(ask(store, requests, Silent()))
    assert counts.failed == 1
    assert "gave no answer" in _known(store, requests)[0].message


def test_a_bug_in_a_model_is_raised_and_what_was_answered_is_kept(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, runner_of: Any
) -> None:
    def reply(text: str, _: int) -> Answer:
        if text == "50":
            raise ZeroDivisionError("a bug")
        return Answer("ok")

    requests, model = asking(*range(100)), scripted(reply, seconds=0.01)
    runner = runner_of(store, model)
    with pytest.raises(ZeroDivisionError):
        in_no_time(runner.run(requests))
    assert _known(store, requests).count(Answer("ok")) == len(model.asked) - 1 >= 48
    assert model.left == 1
    assert runner._limiters["host"].in_flight == 0


def test_an_error_of_the_user_found_on_the_way_is_raised_as_it_is(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    def requests() -> Iterator[KeyedRequest]:
        yield from asking(*range(70))
        raise UserError("record 71 is broken")

    with pytest.raises(UserError, match="record 71"):
        in_no_time(ask(store, requests(), scripted()))


# The end


def test_a_store_that_fails_ends_the_run_at_once(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    add = store.answers.add

    def fails(entries: list[Attempt]) -> None:
        if any(b"77" in entry.request for entry in entries):
            raise EnvironmentFailedError("the disk is full")
        add(entries)

    monkeypatch.setattr(store.answers, "add", fails)
    model, requests = scripted(seconds=1.0), asking(*range(10_000))
    with pytest.raises(EnvironmentFailedError, match="disk is full"):
        in_no_time(ask(store, requests, model))
    assert len(model.asked) < 300
    assert len([known for known in _known(store, requests) if known]) >= 64


def test_cancelled_it_keeps_everything_answered_so_far(
    store: Store, scripted: Any, asking: Asking, in_no_time: Any, ask: Ask
) -> None:
    model, requests = scripted(seconds=1.0), asking(*range(100))

    async def run() -> None:
        task = asyncio.create_task(ask(store, requests, model))
        await asyncio.sleep(3.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    in_no_time(run())
    assert len(model.asked) == 24
    assert len([known for known in _known(store, requests) if known]) == 24
    assert (model.left, model.open) == (1, 0)
    other = Store.open(store.name)
    assert len(other.claims.take([keyed.request.key for keyed in requests])) == 100
    other.close()


def test_one_count_over_several_askings_goes_on_counting(
    tmp_path: Path, scripted: Any, asking: Asking, in_no_time: Any, runner_of: Any
) -> None:
    """Several judges share their counts; each still enters its own model."""
    store, counts = Store.open(str(tmp_path / "s.db")), Counts()
    first, second = scripted(host="a"), scripted(host="b")
    in_no_time(runner_of(store, first, counts=counts).run(asking(1, 2)))
    in_no_time(runner_of(store, second, counts=counts).run(asking(3, 4)))
    assert (first.entered, second.entered, counts.answered) == (1, 1, 4)
    store.close()
