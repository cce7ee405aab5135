"""Holds the lease of a run while its evaluation goes on, so that nobody deletes it meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sightline.engine.run_leases import LEASE_SECONDS
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError, UserError


@asynccontextmanager
async def held_run(store: Store, run: int) -> AsyncIterator[None]:
    """Hold a run until the block ends.

    An error of a later renewal, or of the release, does not change the outcome of the block: the renewal is
    repeated, and a lease that is not released ends after LEASE_SECONDS.

    Args:
        store: The store.
        run: The number of the run.

    Yields:
        Nothing.

    Raises:
        EnvironmentFailedError: The store failed before the block.
    """
    await run_in_thread(store.leases.renew, run)
    renewal = asyncio.create_task(_renew(store, run))
    try:
        yield
    finally:
        renewal.cancel()
        try:
            with suppress(asyncio.CancelledError):
                await renewal
        finally:
            with suppress(EnvironmentFailedError):
                await run_in_thread(store.leases.release, run)


async def _renew(store: Store, run: int) -> None:
    while True:
        await asyncio.sleep(LEASE_SECONDS / 3)
        # If the run was deleted, `store.runs.finish` says so.
        with suppress(EnvironmentFailedError, UserError):
            await run_in_thread(store.leases.renew, run)
