"""The order in which several hosts take calls: an image goes to one host, and nobody waits for that."""

from __future__ import annotations

import asyncio
import random

import pytest

from sightline.engine import selector as engine_calls
from sightline.engine.selector import Call, CallQueue
from sightline.store.answers import with_key
from sightline.types import ImageFile, ImageRef, Request, user


def _call(number: int, image: int | None) -> Call:
    files = {}
    if image is not None:
        files = {f"{image}.png": ImageFile(f"{image}.png", f"{image:064x}", "PNG", 1, 1, (1, 1))}
    messages = (user(*map(ImageRef, files), str(number)),)
    return Call(with_key(Request("", messages, {}, files), "model"))


def _number(call: Call) -> int:
    return int(call.keyed.request.messages[0].parts[-1].text)  # type: ignore[union-attr]


def _taken(calls: list[Call], hosts: list[str | None]) -> list[int]:
    """The numbers of the calls that these hosts take one after the other."""

    async def run() -> list[int]:
        queue = CallQueue()
        for call in calls:
            queue.put(call)
        return [_number(call) for host in hosts for call in await queue.take(1, host=host)]

    return asyncio.run(run())


def test_one_host_takes_calls_in_their_order() -> None:
    calls = [_call(number, number % 3) for number in range(30)]
    assert _taken(calls, [None] * 30) == list(range(30))


def test_the_calls_with_an_image_go_to_the_host_that_took_the_first_one() -> None:
    calls = [_call(number, number // 3) for number in range(12)]
    assert _taken(calls, ["a", "b", "b", "a", "b", "a"]) == [0, 3, 4, 1, 5, 2]


def test_a_host_takes_calls_of_other_hosts_rather_than_none() -> None:
    calls = [_call(number, 0) for number in range(4)]
    assert _taken(calls, ["a", "b", "b", "a"]) == [0, 1, 2, 3]


def test_calls_without_an_image_are_taken_in_their_order() -> None:
    calls = [_call(number, None) for number in range(6)]
    assert _taken(calls, ["a", "b", "b", "a", "c", "a"]) == list(range(6))


def test_the_first_call_is_not_passed_over_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its host may be unavailable."""
    monkeypatch.setattr(engine_calls, "PASSED_OVER", 3)
    calls = [_call(0, 0), _call(1, 0), *(_call(number, number) for number in range(2, 9))]
    assert _taken(calls, ["a", *["b"] * 5]) == [0, 2, 3, 4, 1, 5]


def test_every_call_is_taken_once_whoever_takes_it() -> None:
    chance = random.Random(0)
    calls = [_call(number, number // 3 if number % 7 else None) for number in range(2000)]
    hosts: list[str | None] = [f"host {chance.randrange(5)}" for _ in calls]
    assert sorted(_taken(calls, hosts)) == list(range(2000))


@pytest.mark.parametrize(("attempts", "waits"), [(0, False), (1, True)])
def test_only_calls_that_are_sent_again_wait_for_others(attempts: int, waits: bool) -> None:
    async def take() -> list[Call]:
        queue = CallQueue()
        call = _call(0, None)
        call.attempts = attempts
        queue.put(call)
        queue.pause()
        async with asyncio.timeout(0.2):
            return await queue.take(100, gather=3600.0)

    if waits:
        with pytest.raises(TimeoutError):
            asyncio.run(take())
    else:
        assert len(asyncio.run(take())) == 1
