"""The committer: writes answers to the store, off the event loop, as soon as they arrive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from sightline.engine.answers import Attempt
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError

SECONDS = 0.005
"""How long answers are collected after a transaction, which takes 1 to 2 ms for a few of them.

An answer that comes later than this after the last transaction is written at once. At a kill, the answers of
this time and of the transaction are lost.
"""

P = ParamSpec("P")
T = TypeVar("T")


class Committer:
    """The one thread of a run that writes to the store, in the order of the calls.

    `error` is the error of the first write that failed.
    """

    def __init__(self, store: Store, committed: Callable[[Sequence[Attempt]], None]) -> None:
        self._store = store
        self._committed = committed
        self._buffer: list[Attempt] = []
        self._timer: asyncio.TimerHandle | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sightline-store")
        self._writes: set[asyncio.Future[None]] = set()
        self._next_write = 0.0
        self.error: BaseException | None = None

    def add(self, attempt: Attempt) -> None:
        """Queue an attempt; it is written at once, or SECONDS after the last write."""
        self._buffer.append(attempt)
        self._schedule()

    async def run(self, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run another write on the thread, after the queued attempts."""
        self._flush()
        return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: write(*args, **kwargs))

    async def close(self) -> None:
        """Write the rest, wait for all writes, and give up the claims of this process."""
        self._flush()
        if self._writes:
            await asyncio.wait(self._writes)
        try:
            await self.run(self._store.claims.release)
        except EnvironmentFailedError as error:
            self.error = self.error or error
        finally:
            self._thread.shutdown()
        if self.error is not None:
            raise self.error

    def _schedule(self) -> None:
        """Write what is queued; soon after a write a little later, which makes the group larger."""
        if self._buffer and self._timer is None and not self._writes:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._next_write), self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._buffer:
            return
        group, self._buffer = self._buffer, []
        write = asyncio.get_running_loop().run_in_executor(self._thread, self._store.answers.add, group)
        self._writes.add(write)
        write.add_done_callback(lambda write: self._written(write, group))

    def _written(self, write: asyncio.Future[None], group: Sequence[Attempt]) -> None:
        self._writes.discard(write)
        self._next_write = asyncio.get_running_loop().time() + SECONDS
        if not write.cancelled() and write.exception() is not None:
            self.error = self.error or write.exception()
        self._committed(group)
        self._schedule()
