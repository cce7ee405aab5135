"""Repeats a write to the store while a block runs, so that other processes see that this one works."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from sightline.errors import EnvironmentFailedError, UserError


@asynccontextmanager
async def renewed(renew: Callable[[], Awaitable[None]], seconds: float) -> AsyncIterator[None]:
    """Call a function again and again, until the block ends.

    An error of a renewal does not change the outcome of the block: the next one may succeed.
    """
    renewal = asyncio.create_task(_renew(renew, seconds))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal


async def _renew(renew: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        with suppress(EnvironmentFailedError, UserError):
            await renew()
