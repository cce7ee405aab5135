"""Holds the lease of a run while its evaluation goes on, so that nobody deletes it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sightline.engine.run_leases import LEASE_SECONDS
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread


@asynccontextmanager
async def held_run(store: Store, run: int) -> AsyncIterator[None]:
    """Hold a run until the block ends.

    Args:
        store: The store.
        run: The number of the run.

    Yields:
        Nothing.

    Raises:
        EnvironmentFailedError: The store failed.
    """
    await run_in_thread(store.leases.renew, run)
    renewal = asyncio.create_task(_renew(store, run))
    try:
        yield
    finally:
        renewal.cancel()
        with suppress(asyncio.CancelledError):
            await renewal
        await run_in_thread(store.leases.release, run)


async def _renew(store: Store, run: int) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 3)
        await run_in_thread(store.leases.renew, run)
