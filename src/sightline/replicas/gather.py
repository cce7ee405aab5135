"""Gathers single requests into windows, because a local model answers many at once faster than one by one."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from sightline.models.base import Model
from sightline.types import Answer, Failure, Request

BURST_SECONDS = 0.005
"""How long a window waits for the requests that arrive together with its first one."""

_Waiting = tuple[Request, asyncio.Future[Answer | Failure]]


class Gather:
    """Answers requests one by one, and asks its model for all that wait in one call.

    While the model computes a window, the next one fills. Belongs to one event loop.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._waiting: list[_Waiting] = []
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._model.__aenter__()
        windows = self._model.parallel or 1
        self._workers = [asyncio.create_task(self._work()) for _ in range(windows)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.wait(self._workers)
        for _, result in self._waiting:
            result.cancel()
        await self._model.__aexit__(kind, error, trace)

    async def answer(self, request: Request) -> Answer | Failure:
        result: asyncio.Future[Answer | Failure] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, result))
        self._arrived.set()
        return await result

    async def _work(self) -> None:
        while True:
            await self._arrived.wait()
            await asyncio.sleep(BURST_SECONDS)
            size = self._model.batch_size
            window, self._waiting = self._waiting[:size], self._waiting[size:]
            if not self._waiting:
                self._arrived.clear()
            # Nobody waits for a request that was cancelled meanwhile.
            if window := [entry for entry in window if not entry[1].done()]:
                await self._answer(window)

    async def _answer(self, window: list[_Waiting]) -> None:
        """Answer a window; an error of the model reaches every request of it."""
        try:
            async for index, answer in self._model.answer([request for request, _ in window]):
                _settle(window[index][1], answer)
            for _, result in window:
                _settle(result, Failure("transient", f"{self._model.name} gave no answer to this request"))
        except asyncio.CancelledError:
            for _, result in window:
                result.cancel()
            raise
        except Exception as error:
            for _, result in window:
                if not result.done():
                    result.set_exception(error)


def _settle(result: asyncio.Future[Answer | Failure], answer: Answer | Failure) -> None:
    if not result.done():
        result.set_result(answer)
