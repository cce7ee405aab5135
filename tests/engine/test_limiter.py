"""The limiter against simulated hosts, in time that passes at once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from msgspec import Struct

from sightline.engine.limits import FEW, PATIENCE, TRIAL_PAUSES, HostUnavailableError, Limiter
from sightline.engine.runner import limiter_of
from sightline.models.registry import ModelOptions, resolve

Host = Callable[[], Awaitable[float | str]]
"""One call to a host: 'ok', 'fails', 'refused', or the seconds after which a refused call may come again."""


class Seen(Struct):
    """What calls came to: how many were sent, refused, failed; when, and how many were in flight then."""

    sent: int = 0
    refused: int = 0
    failed: int = 0
    answered: int = 0
    seconds: float = 0.0
    times: list[float] = []
    levels: list[int] = []
    given_up: bool = False

    @property
    def share_refused(self) -> float:
        return self.refused / self.sent


async def _drive(limiter: Limiter, calls: int, host: Host, workers: int) -> Seen:
    """Make calls until all are answered or the host is given up, as the runner does: refused ones wait."""
    loop, seen = asyncio.get_running_loop(), Seen()
    queue: asyncio.Queue[int] = asyncio.Queue()
    over = asyncio.Event()
    chance = random.Random(1)

    async def work() -> None:
        while True:
            await limiter.wait_for_slot()
            call = await queue.get()
            if not limiter.try_acquire():
                queue.put_nowait(call)
                continue
            seen.sent += 1
            began = loop.time()
            seen.times.append(began)
            seen.levels.append(limiter.in_flight)
            came = await host()
            seconds = loop.time() - began
            wait = came if isinstance(came, float) else chance.uniform(0.1, 0.2)
            if came == "ok":
                seen.answered += 1
                limiter.record_success(seconds)
                if seen.answered == calls:
                    over.set()
                continue
            if came == "fails":
                seen.failed += 1
                limiter.record_failure()
            else:
                seen.refused += 1
                limiter.record_refusal(came if isinstance(came, float) else None)
            loop.call_later(wait, queue.put_nowait, call)

    async def worker() -> None:
        try:
            await work()
        except HostUnavailableError:
            seen.given_up = True
            over.set()

    for call in range(calls):
        queue.put_nowait(call)
    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    await over.wait()
    seen.seconds = loop.time()
    for task in tasks:
        task.cancel()
    return seen


def _width(
    width: int, seconds: float, *, spread: float = 0.0, chance_of_refusal: float = 0.0, seed: int = 1
) -> Host:
    """A host that takes `width` calls at once (0: any number), and refuses some by chance."""
    chance, inside = random.Random(seed), 0

    async def call() -> str:
        nonlocal inside
        await asyncio.sleep(0.001)
        if chance.random() < chance_of_refusal or (width and inside >= width):
            return "refused"
        inside += 1
        await asyncio.sleep(seconds * chance.lognormvariate(0, spread))
        inside -= 1
        return "ok"

    return call


@pytest.mark.parametrize("spread", [0.0, 0.99])
def test_finds_the_width_of_a_host_and_is_seldom_refused(in_no_time: Any, spread: float) -> None:
    async def run() -> Seen:
        return await _drive(Limiter("host", 256), 2000, _width(48, 1.0, spread=spread), 256)

    seen = in_no_time(run())
    assert seen.share_refused <= 0.06
    middle = seen.levels[500:1500]
    assert 46 <= sum(middle) / len(middle) <= 50


def test_reaches_the_whole_width_in_a_third_of_a_second_where_nothing_is_refused(in_no_time: Any) -> None:
    async def run() -> Seen:
        return await _drive(Limiter("host", 256), 600, _width(0, 1.0), 256)

    seen = in_no_time(run())
    assert seen.times[63] == 0.0
    assert seen.times[255] <= 0.3
    assert max(seen.levels) == 256


def test_never_has_more_in_flight_than_it_may(in_no_time: Any) -> None:
    async def run() -> Seen:
        return await _drive(Limiter("host", 7), 100, _width(0, 0.1, spread=1.0), 20)

    assert max(in_no_time(run()).levels) == 7


@pytest.mark.parametrize("seed", range(3))
def test_refusals_by_chance_do_not_narrow_it(in_no_time: Any, seed: int) -> None:
    async def run(chance_of_refusal: float) -> Seen:
        host = _width(0, 1.0, spread=0.5, chance_of_refusal=chance_of_refusal, seed=seed)
        return await _drive(Limiter("host", 256), 3000, host, 256)

    undisturbed, disturbed = in_no_time(run(0.0)), in_no_time(run(0.025))
    assert disturbed.seconds <= 1.5 * undisturbed.seconds


def test_widens_again_when_the_host_does(in_no_time: Any) -> None:
    async def run() -> Seen:
        width, inside = 16, 0

        async def host() -> str:
            nonlocal inside, width
            width = 16 if asyncio.get_running_loop().time() < 10 else 64
            if inside >= width:
                return "refused"
            inside += 1
            await asyncio.sleep(0.2)
            inside -= 1
            return "ok"

        return await _drive(Limiter("host", 64), 6000, host, 64)

    seen = in_no_time(run())
    assert max(level for level, at in zip(seen.levels, seen.times, strict=True) if 5 < at < 10) <= 18
    assert max(seen.levels[-1000:]) >= 40


def _quota(calls: int, seconds: float, *, told: bool) -> Host:
    """A host that takes so many calls in each window of time, and refuses every other one."""
    used: dict[int, int] = {}

    async def call() -> float | str:
        await asyncio.sleep(0.02)
        now = asyncio.get_running_loop().time()
        window = int(now // seconds)
        if used.get(window, 0) >= calls:
            return (window + 1) * seconds - now if told else "refused"
        used[window] = used.get(window, 0) + 1
        await asyncio.sleep(0.5)
        return "ok"

    return call


def test_waits_for_a_quota_as_long_as_it_is_told_and_does_not_hammer(in_no_time: Any) -> None:
    async def run() -> Seen:
        return await _drive(Limiter("host", 64), 300, _quota(60, 60.0, told=True), 64)

    seen = in_no_time(run())
    assert seen.seconds <= 4 * 60 + 30
    # Each window is tried with half of the widest before: 32 calls at most come too late.
    assert seen.refused <= 5 * 32
    # Once the host has said so, nothing is sent until the window is over.
    assert not [at for at in seen.times if 10 < at % 60 < 59]


def test_rests_longer_and_longer_where_it_is_not_told_how_long(in_no_time: Any) -> None:
    async def run() -> Seen:
        return await _drive(Limiter("host", 64), 100, _quota(60, 300.0, told=False), 64)

    seen = in_no_time(run())
    assert seen.seconds <= 360
    # 64 at first, then single calls after 1, 2, 4, 8, 16, 30, 30 ... seconds.
    assert len([at for at in seen.times if 5 < at < 300]) <= 16


def test_a_host_that_refuses_for_longer_than_anyone_waits_is_given_up(in_no_time: Any) -> None:
    async def run(wait: float | str) -> Seen:
        async def host() -> float | str:
            return wait

        return await _drive(Limiter("host", 4), 20, host, 4)

    told = in_no_time(run(2 * PATIENCE))
    assert told.given_up
    assert told.seconds < 1
    never_told = in_no_time(run("refused"))
    assert never_told.given_up
    assert PATIENCE - 31 <= never_told.seconds <= PATIENCE
    assert never_told.sent < PATIENCE / 25


def test_a_dead_host_gets_single_trials_and_is_given_up_after_the_last(in_no_time: Any) -> None:
    async def run() -> Seen:
        async def host() -> str:
            await asyncio.sleep(0.01)
            return "fails"

        return await _drive(Limiter("host", 8), 100, host, 8)

    seen = in_no_time(run())
    assert seen.given_up
    assert len(TRIAL_PAUSES) == 3
    # The 20th failure opens the circuit; what was in flight then comes back too.
    assert 20 <= seen.failed - 3 <= 27
    opened, *trials = seen.times[-4:]
    assert [round(later - opened) for later in trials] == [1, 3, 7]


def test_a_host_that_returns_is_used_again(in_no_time: Any) -> None:
    async def run() -> Seen:
        async def host() -> str:
            await asyncio.sleep(0.01)
            return "fails" if 1.0 < asyncio.get_running_loop().time() < 3.5 else "ok"

        return await _drive(Limiter("host", 8), 2000, host, 8)

    seen = in_no_time(run())
    assert not seen.given_up
    assert seen.answered == 2000
    assert seen.seconds < 10
    assert max(seen.levels[-500:]) == 8


def test_failures_that_are_not_in_a_row_never_open_the_circuit(in_no_time: Any) -> None:
    async def run() -> Seen:
        number = 0

        async def host() -> str:
            nonlocal number
            number += 1
            await asyncio.sleep(0.01)
            return "ok" if number % 15 == 0 else "fails"

        return await _drive(Limiter("host", 1), 50, host, 1)

    assert in_no_time(run()).answered == 50


def test_whoever_is_cancelled_while_waiting_passes_the_place_on(in_no_time: Any) -> None:
    async def run() -> None:
        limiter = Limiter("host", 1)
        assert limiter.try_acquire()
        first = asyncio.create_task(limiter.wait_for_slot())
        second = asyncio.create_task(limiter.wait_for_slot())
        await asyncio.sleep(0)
        limiter.release()
        first.cancel()
        await asyncio.wait_for(second, 1)
        assert limiter.in_flight == 0

    in_no_time(run())


def _one_at_a_time(seconds: float, longest: list[float]) -> Host:
    """A host with one slot: calls wait in turn. Appends the seconds that each call took to `longest`."""
    turn = asyncio.Lock()

    async def call() -> float | str:
        began = asyncio.get_running_loop().time()
        async with turn:
            await asyncio.sleep(seconds)
        longest.append(asyncio.get_running_loop().time() - began)
        return "ok"

    return call


@pytest.mark.parametrize("seconds", [0.2, 2.0, 15.0, 120.0])
def test_a_local_host_that_answers_one_call_at_a_time_is_not_given_so_many_that_they_time_out(
    in_no_time: Any, seconds: float
) -> None:
    """The default time limit of a call is 600 seconds."""
    waits: list[float] = []

    async def run() -> Seen:
        limiter = Limiter("127.0.0.1:80", 64, may_queue=True)
        return await _drive(limiter, 300, _one_at_a_time(seconds, waits), 64)

    seen = in_no_time(run())
    assert seen.answered == 300
    assert seen.levels[:FEW] == [1, 2, 3, 4]
    assert max(waits) <= max(4 * seconds, 110)


@pytest.mark.parametrize(("seconds", "spread"), [(0.3, 0.0), (1.0, 0.6), (40.0, 0.6), (120.0, 0.3)])
def test_a_local_host_that_answers_in_parallel_gets_all_calls_within_a_few_rounds(
    in_no_time: Any, seconds: float, spread: float
) -> None:
    """Slow ones too: an answer of a reasoning model may take minutes."""

    async def run() -> Seen:
        host = _width(0, seconds, spread=spread)
        return await _drive(Limiter("127.0.0.1:80", 64, may_queue=True), 1000, host, 64)

    seen = in_no_time(run())
    reached = next(at for at, level in zip(seen.times, seen.levels, strict=True) if level == 64)
    assert reached <= 6 * seconds


def test_a_request_that_a_slow_local_host_rejects_does_not_stop_the_growth(in_no_time: Any) -> None:
    async def run() -> Seen:
        limiter = Limiter("127.0.0.1:80", 64, may_queue=True)
        await limiter.wait_for_slot()
        assert limiter.try_acquire()
        limiter.record_success(None)
        return await _drive(limiter, 1000, _width(0, 40.0), 64)

    assert max(in_no_time(run()).levels) == 64


@pytest.mark.parametrize(
    ("url", "concurrency", "first"),
    [
        ("http://127.0.0.1:8000/v1", None, 4),
        ("http://localhost:8000/v1", None, 4),
        ("http://[::1]:8000/v1", None, 4),
        ("http://127.0.0.1:8000/v1", 64, 64),
        ("http://127.0.0.1:8000/v1", 2, 2),
        ("http://gpu1:8000/v1", None, 64),
        ("http://10.0.0.1:8000/v1", None, 64),
        ("https://127.0.0.1.example.com/v1", None, 64),
    ],
)
def test_only_a_server_on_this_machine_gets_few_calls_at_first_unless_the_user_names_how_many(
    url: str, concurrency: int | None, first: int
) -> None:
    (model,) = resolve(f"{url}#m", ModelOptions())
    assert limiter_of(model, concurrency).limit == first
