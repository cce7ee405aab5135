"""Holds the lease of a run while its evaluation goes on, so that nobody deletes it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from sightline.engine.renewal import renewed
from sightline.engine.run_leases import LEASE_SECONDS
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError


@asynccontextmanager
async def held_run(store: Store, run: int) -> AsyncIterator[None]:
    """Hold a run until the block ends.

    An error of a later renewal, or of the release, does not change the outcome of the block: the renewal is
    repeated, and a lease that is not released ends after LEASE_SECONDS.
    """
    await run_in_thread(store.leases.renew, run)
    try:
        # If the run was deleted, `store.runs.finish` says so.
        async with renewed(lambda: run_in_thread(store.leases.renew, run), LEASE_SECONDS / 3):
            yield
    finally:
        with suppress(EnvironmentFailedError):
            await run_in_thread(store.leases.release, run)
