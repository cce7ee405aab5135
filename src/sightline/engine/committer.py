"""Writes to the store off the event loop: answers in groups, every 64 or 50 ms after the first of a group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sightline.engine.store import Attempt, Store
from sightline.errors import EnvironmentFailedError

GROUP = 64
SECONDS = 0.05

P = ParamSpec("P")
T = TypeVar("T")


class Committer:
    """The one thread of a run that writes to the store, in the order in which it is told to.

    `committed` is called on the event loop with the number of entries of each group when its write has
    ended; `error` is what the first failed one failed with.
    """

    def __init__(self, store: Store, committed: Callable[[int], None]) -> None:
        self._store = store
        self._committed = committed
        self._buffer: list[Attempt] = []
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sightline-store")
        self._writes: set[asyncio.Future[None]] = set()
        self.error: BaseException | None = None

    def add(self, entry: Attempt) -> None:
        """Take an entry; it is written within 50 ms."""
        self._buffer.append(entry)
        if len(self._buffer) >= GROUP:
            self._flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SECONDS, self._flush)

    async def run(self, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do another write on the thread, after those before it. Raises what it fails with."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: write(*args, **kwargs))

    async def close(self) -> None:
        """Commit the rest, wait for all of it, give up the claims. Raises what a write failed with."""
        self._flush()
        if self._writes:
            await asyncio.wait(self._writes)
        try:
            await self.run(self._store.release)
        except EnvironmentFailedError as error:
            self.error = self.error or error
        finally:
            self._thread.shutdown()
        if self.error is not None:
            raise self.error

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._buffer:
            return
        group, self._buffer = self._buffer, []
        write = asyncio.get_running_loop().run_in_executor(self._thread, self._store.add_attempts, group)
        self._writes.add(write)
        write.add_done_callback(lambda write: self._written(write, len(group)))

    def _written(self, write: asyncio.Future[None], entries: int) -> None:
        self._writes.discard(write)
        if not write.cancelled() and write.exception() is not None:
            self.error = self.error or write.exception()
        self._committed(entries)
