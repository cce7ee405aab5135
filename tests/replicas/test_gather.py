"""Gathering: requests that arrive together share a call, and each caller gets its own result."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from sightline.errors import EnvironmentFailedError
from sightline.models.offline import ChanceBaseline
from sightline.replicas.worker import Gather
from sightline.types import Answer, Failure, Request, user


class Windows(ChanceBaseline):
    """A model that takes four requests at a time, and keeps the keys of each window."""

    batch_size = 4
    parallel = 1

    def __init__(self, error: Exception | None = None, silent: str = "") -> None:
        super().__init__(0)
        self.windows: list[list[str]] = []
        self.open = False
        self._error = error
        self._silent = silent

    async def __aenter__(self) -> Windows:
        self.open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open = False

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.windows.append([request.key for request in requests])
        await asyncio.sleep(0.02)
        if self._error is not None:
            raise self._error
        for index, request in reversed(list(enumerate(requests))):
            if request.key != self._silent:
                yield index, Answer(request.key)


def request(key: str) -> Request:
    return Request(key, (user("?"),), {})


async def ask(model: Windows, count: int) -> list[Answer | Failure | BaseException]:
    async with Gather(model) as gather:
        assert model.open
        calls = [gather.answer(request(str(number))) for number in range(count)]
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert not model.open
    return results


def test_requests_that_arrive_together_share_windows_of_the_models_size() -> None:
    model = Windows()
    results = asyncio.run(ask(model, 10))
    assert [result.text for result in results if isinstance(result, Answer)] == list(map(str, range(10)))
    assert [len(window) for window in model.windows] == [4, 4, 2]


def test_a_request_without_an_answer_fails_and_can_be_asked_again() -> None:
    results = asyncio.run(ask(Windows(silent="1"), 3))
    assert [isinstance(result, Failure) for result in results] == [False, True, False]
    assert isinstance(results[1], Failure)
    assert results[1].kind == "transient"


def test_an_error_of_the_model_reaches_every_request_of_its_window() -> None:
    results = asyncio.run(ask(Windows(EnvironmentFailedError("the device is lost")), 2))
    assert [type(result) for result in results] == [EnvironmentFailedError, EnvironmentFailedError]


def test_a_request_that_nobody_waits_for_any_more_is_not_asked() -> None:
    model = Windows()

    async def session() -> None:
        async with Gather(model) as gather:
            first = asyncio.create_task(gather.answer(request("first")))
            while not model.windows:
                await asyncio.sleep(0.001)
            impatient = asyncio.create_task(gather.answer(request("impatient")))
            await asyncio.sleep(0)
            impatient.cancel()
            await gather.answer(request("last"))
            await first

    asyncio.run(session())
    assert model.windows == [["first"], ["last"]]


def test_closing_cancels_what_is_not_answered() -> None:
    model = Windows()

    async def session() -> None:
        async with Gather(model) as gather:
            call = asyncio.create_task(gather.answer(request("a")))
            while not model.windows:
                await asyncio.sleep(0.001)
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(session())
