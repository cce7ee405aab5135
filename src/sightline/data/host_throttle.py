"""Limits the load on each host: a few requests at a time, pauses after failures, and a stop after many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct

from sightline.data.download_error import DownloadError


class HostLimits(Struct, frozen=True):
    """How many requests one host gets, and how long the pauses between them are.

    After a failure of the host (429, 5xx, a failed connection) no request starts for `pause` seconds, or for
    as long as the host asks, up to `max_pause` seconds. A host that fails `max_failures` times in a row gets
    no further request.
    """

    concurrency: int = 4
    pause: float = 2.0
    max_pause: float = 60.0
    max_failures: int = 12


class HostThrottle:
    """Throttles the requests to one host. Belongs to one event loop.

    The concurrency is fixed. The engine's limiter looks for the most that a server can take, which is right
    for a model's server, but not for the web servers of third parties.
    """

    def __init__(self, host: str, limits: HostLimits) -> None:
        self._host, self._limits = host, limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._paused_until = 0.0
        self._failures = 0
        self._stop_reason = ""

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot and hold it during one request."""
        async with self._slots:
            loop = asyncio.get_running_loop()
            while not self._stop_reason and (pause := self._paused_until - loop.time()) > 0:
                await asyncio.sleep(pause)
            if self._stop_reason:
                raise DownloadError("host given up", f"{self._host} {self._stop_reason}")
            yield

    def record_success(self) -> None:
        """Record that the host answered, with an image or with an error about that image."""
        self._failures = 0

    def record_failure(self, reason: str, wait: float | None) -> None:
        """Record a failure of the host itself.

        Args:
            wait: The pause in seconds that the host asked for, or None.
        """
        self._failures += 1
        pause = wait if wait is not None and self.accepts(wait) else 0.0
        if not self._stop_reason and self._failures >= self._limits.max_failures:
            self._stop_reason = f"failed {self._failures} times in a row, the last time: {reason}"
        paused_until = asyncio.get_running_loop().time() + max(pause, self._limits.pause)
        self._paused_until = max(self._paused_until, paused_until)

    def accepts(self, wait: float) -> bool:
        """Decide whether to wait as long as a host asks. Otherwise only the image of that URL fails.

        Args:
            wait: The pause in seconds.
        """
        return wait <= self._limits.max_pause
