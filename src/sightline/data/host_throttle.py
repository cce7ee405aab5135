"""How politely a host is asked for images: by few at a time, with rests, not once it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from sightline.data.errors import DownloadError


class Manners(Struct, frozen=True):
    """How a host is treated: seconds, and calls.

    `rest` is what follows a failure of the host's (429, 5xx, a connection that fails), unless it asks for
    another one; after a wish for more than `longest_rest`, or `patience` failures in a row, the host is given
    up for this time.
    """

    per_host: int = 4
    rest: float = 2.0
    longest_rest: float = 60.0
    patience: int = 12


class Host:
    """One host. Belongs to one event loop.

    It gets the same few calls at a time throughout, where the engine's limiter looks for as many as a host
    can take: a model's server is there to be used, somebody's images are not.
    """

    def __init__(self, name: str, manners: Manners) -> None:
        self._name, self._manners = name, manners
        self._places = asyncio.Semaphore(manners.per_host)
        self._rests_until = 0.0
        self._failures = 0
        self._given_up = ""

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place for one call, waited for; Missed where the host was given up."""
        async with self._places:
            loop = asyncio.get_running_loop()
            while not self._given_up and (rest := self._rests_until - loop.time()) > 0:
                await asyncio.sleep(rest)
            if self._given_up:
                raise DownloadError("host given up", f"{self._name} {self._given_up}")
            yield

    def answered(self) -> None:
        """It answered, whatever it said of this image."""
        self._failures = 0

    def failed(self, why: str, wish: float | None) -> None:
        """A call failed in a way that says something of the host, which may `wish` for a rest of so long."""
        self._failures += 1
        rest = max(wish or 0.0, self._manners.rest)
        if rest > self._manners.longest_rest:
            self._given_up = f"asks for a rest of {rest:,.0f} s"
        elif self._failures >= self._manners.patience:
            self._given_up = f"failed {self._failures} times in a row, the last time: {why}"
        self._rests_until = max(self._rests_until, asyncio.get_running_loop().time() + rest)
