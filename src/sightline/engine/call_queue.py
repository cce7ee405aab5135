"""The queue of calls that wait to be sent, and the batches that models take from it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec import Struct

from sightline.engine.keys import KeyedRequest


class Call(Struct):
    """A request on its way to a model.

    Attributes:
        keyed: The request.
        claimed: `Claims.generation` when it was claimed.
        is_admitted: Whether the budget has room for its next attempt.
        attempts: How often it was sent.
        refusals: How often a host refused it (429).
    """

    keyed: KeyedRequest
    claimed: int = 0
    is_admitted: bool = True
    attempts: int = 0
    refusals: int = 0


class CallQueue:
    """Calls that wait to be sent. Belongs to one event loop."""

    def __init__(self) -> None:
        self.first_call = asyncio.Event()
        """Set when the first call arrives: no model has to load before."""
        self._calls: asyncio.Queue[Call] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._is_filling = True

    def put(self, call: Call) -> None:
        """Add a call.

        Args:
            call: The call.
        """
        self._calls.put_nowait(call)
        self._changed.set()
        self.first_call.set()

    def resume(self) -> None:
        """Let models wait for full batches: more calls arrive soon."""
        self._is_filling = True

    def pause(self) -> None:
        """Let models take incomplete batches: no more calls arrive until some are answered."""
        self._is_filling = False
        self._changed.set()

    def take_all(self) -> list[Call]:
        """Take all calls that wait.

        Returns:
            The calls; there may be none.
        """
        return [self._calls.get_nowait() for _ in range(self._calls.qsize())]

    async def take_batch(self, size: int, gather: float = 0.0) -> list[Call]:
        """Wait for a batch of calls.

        Args:
            size: How many calls the model takes at once.
            gather: Seconds for which an incomplete batch waits for calls that are sent again.

        Returns:
            `size` calls; fewer (at least one) where no more arrive for now.
        """
        calls = [await self._calls.get()]
        until = asyncio.get_running_loop().time() + gather
        while len(calls) < size:
            rest = until - asyncio.get_running_loop().time()
            if not self._calls.empty():
                calls.append(self._calls.get_nowait())
            elif self._is_filling or rest > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._is_filling else rest):
                        await self._changed.wait()
            else:
                break
        return calls
