"""The queue of calls that wait to be sent, and the batches that models take from it."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from sightline.engine.keys import KeyedRequest

PASSED_OVER = 64
"""How often hosts take another call than the first one, because its image was sent to another host."""
LOOKED_AT = 256
"""Calls among which a host looks for one whose image was not sent to another host."""
REMEMBERED = 4096
"""Images whose host is remembered."""


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

    @property
    def image(self) -> str | None:
        """The digest of the first image, which most requests with the same prefix have; None without one."""
        return next((file.digest for file in self.keyed.request.images.values()), None)


class CallQueue:
    """Calls that wait to be sent, first in, first out. Belongs to one event loop.

    Where several hosts take calls, those with the same image go to the same host, whose prefix cache has the
    image, as long as no host must wait for that.
    """

    def __init__(self) -> None:
        self.first_call = asyncio.Event()
        """Set when the first call arrives: no model has to load before."""
        self._waiting: deque[Call] = deque()
        # As many items as calls wait.
        self._places: asyncio.Queue[None] = asyncio.Queue()
        self._hosts: dict[str, str] = {}
        self._passed_over = 0
        self._changed = asyncio.Event()
        self._is_filling = True

    def put(self, call: Call) -> None:
        """Add a call.

        Args:
            call: The call.
        """
        self._waiting.append(call)
        self._places.put_nowait(None)
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
        return [self._take_now(None) for _ in range(self._places.qsize())]

    async def take_batch(self, size: int, gather: float = 0.0, host: str | None = None) -> list[Call]:
        """Wait for a batch of calls.

        Args:
            size: How many calls the model takes at once.
            gather: Seconds for which an incomplete batch waits for calls that are sent again.
            host: The host that they are for; None if there is no other one.

        Returns:
            `size` calls; fewer (at least one) where no more arrive for now.
        """
        await self._places.get()
        calls = [self._choose(host)]
        until = asyncio.get_running_loop().time() + gather
        while len(calls) < size:
            rest = until - asyncio.get_running_loop().time()
            if not self._places.empty():
                calls.append(self._take_now(host))
            elif self._is_filling or rest > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._is_filling else rest):
                        await self._changed.wait()
            else:
                break
        return calls

    def _take_now(self, host: str | None) -> Call:
        self._places.get_nowait()
        return self._choose(host)

    def _choose(self, host: str | None) -> Call:
        """Take the first call that suits a host; the first of all if it was passed over too often."""
        if host is None:
            return self._waiting.popleft()
        index = self._first_suitable(host) if self._passed_over < PASSED_OVER else 0
        self._passed_over = self._passed_over + 1 if index else 0
        call = self._waiting[index]
        del self._waiting[index]
        image = call.image
        if image is not None:
            self._hosts.pop(image, None)
            self._hosts[image] = host
            if len(self._hosts) > REMEMBERED:
                del self._hosts[next(iter(self._hosts))]
        return call

    def _first_suitable(self, host: str) -> int:
        """The index of the first call whose image was not sent to another host; 0 if there is none."""
        for index, call in enumerate(islice(self._waiting, LOOKED_AT)):
            image = call.image
            if image is None or self._hosts.get(image, host) == host:
                return index
        return 0
