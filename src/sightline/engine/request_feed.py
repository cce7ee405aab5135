"""Requests that come into being while a run already sends others."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator

from sightline.engine.keys import KeyedRequest


class RequestFeed:
    """Requests of one run, added on the event loop until `close`; a thread of the run reads them.

    Reading yields None where the next request does not exist yet; `more` waits for it.
    """

    def __init__(self) -> None:
        self._added: deque[Iterable[KeyedRequest]] = deque()
        self._is_closed = False
        self._has_more, self._is_read = asyncio.Event(), asyncio.Event()
        self._is_read.set()

    def add(self, requests: Iterable[KeyedRequest]) -> None:
        """Add requests; they are made when they are read."""
        self._added.append(requests)
        self._is_read.clear()
        self._has_more.set()

    def close(self) -> None:
        """End the requests after those that were added."""
        self._is_closed = True
        self._has_more.set()

    def __iter__(self) -> Iterator[KeyedRequest | None]:
        while True:
            is_closed = self._is_closed  # before the look at what was added: nothing is added afterwards
            while self._added:
                yield from self._added.popleft()
            if is_closed:
                return
            yield None

    async def more(self) -> None:
        """Wait, when None was read, until something is added or the feed is closed."""
        if not (self._added or self._is_closed):
            self._is_read.set()
            self._has_more.clear()
            await self._has_more.wait()

    async def all_read(self) -> None:
        """Wait until everything that was added is read."""
        await self._is_read.wait()
