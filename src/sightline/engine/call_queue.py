"""The queue of calls that wait to be sent, and the batches that models take from it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice

from msgspec import Struct

from sightline.engine.image_places import ImagePlaces
from sightline.engine.keys import KeyedRequest

PASSED_OVER = 64
"""How often another call than the first one is taken, because of its image."""
LOOKED_AT = 256
"""Calls among which a suitable one is looked for."""


class Call(Struct):
    """A request on its way to a model."""

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
    image. A host that must get the bytes of an image only once gets a second call with a new image after the
    first one has ended. No host waits for either.
    """

    def __init__(self) -> None:
        self.first_call = asyncio.Event()
        """Set when the first call arrives: no model has to load before."""
        self._waiting: deque[Call] = deque()
        # As many items as calls wait.
        self._places: asyncio.Queue[None] = asyncio.Queue()
        self._images = ImagePlaces()
        self._passed_over = 0
        self._changed = asyncio.Event()
        self._is_filling = True

    def put(self, call: Call) -> None:
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
        return [self._take_now(None, sends_once=False) for _ in range(self._places.qsize())]

    async def take_batch(
        self, size: int, gather: float = 0.0, host: str | None = None, *, sends_once: bool = False
    ) -> list[Call]:
        """Wait for a batch of calls.

        Args:
            gather: Seconds for which an incomplete batch of calls that are sent again waits for more of them.
            host: The host that they are for; None if it does not matter.
            sends_once: Whether the host must get the bytes of an image only once; then `end` must be called.
        """
        await self._places.get()
        calls = [self._choose(host, sends_once=sends_once)]
        # First attempts come together; what failed comes back one by one.
        until = asyncio.get_running_loop().time() + (gather if calls[0].attempts else 0.0)
        while len(calls) < size:
            rest = until - asyncio.get_running_loop().time()
            if not self._places.empty():
                calls.append(self._take_now(host, sends_once=sends_once))
            elif self._is_filling or rest > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self._is_filling else rest):
                        await self._changed.wait()
            else:
                break
        return calls

    def end(self, host: str, calls: Sequence[Call]) -> None:
        """Record that calls are not in flight any more, where the host gets the bytes of an image only once."""
        for call in calls:
            if (image := call.image) is not None:
                self._images.ended(image, host)

    def _take_now(self, host: str | None, *, sends_once: bool) -> Call:
        self._places.get_nowait()
        return self._choose(host, sends_once=sends_once)

    def _choose(self, host: str | None, *, sends_once: bool) -> Call:
        """Take the first call that suits a host; the first of all if it was passed over too often."""
        if host is None:
            return self._waiting.popleft()
        is_late = self._passed_over >= PASSED_OVER
        index = 0 if is_late else self._first_suitable(host, sends_once=sends_once)
        self._passed_over = self._passed_over + 1 if index else 0
        call = self._waiting[index]
        del self._waiting[index]
        if (image := call.image) is not None:
            self._images.sent(image, host, may_arrive=sends_once)
        return call

    def _first_suitable(self, host: str, *, sends_once: bool) -> int:
        """The index of the first call that suits a host; 0 if there is none."""
        images = self._images
        for index, call in enumerate(islice(self._waiting, LOOKED_AT)):
            image = call.image
            if image is None or not (
                images.is_elsewhere(image, host) or (sends_once and images.is_arriving(image, host))
            ):
                return index
        return 0
