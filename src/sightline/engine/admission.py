"""Admission: how many requests may be outstanding at a time, by memory and by the budget."""

from __future__ import annotations

import asyncio

from sightline.engine.budget import Budget
from sightline.engine.call_queue import CallQueue
from sightline.engine.counts import Counts


class Admission:
    """Admits requests one by one. Belongs to one event loop."""

    def __init__(self, capacity: int, budget: Budget, counts: Counts, queue: CallQueue) -> None:
        """Start with no outstanding request.

        Args:
            capacity: How many requests may be admitted and not yet written to the store.
            budget: The budget of the run.
            counts: The counts of the run; what they hold from before counts towards the budget.
            queue: The queue; it is paused while no more requests arrive.
        """
        self.outstanding = 0
        self._room = asyncio.Semaphore(capacity)
        self._budget = budget
        self._counts = counts
        self._queue = queue
        self._admitted = counts.sent
        self._settled = asyncio.Event()

    async def admit(self) -> bool:
        """Wait until one more request may be outstanding.

        Returns:
            False where the budget is reached, which `counts.stopped` then says.
        """
        if self._room.locked():
            self._queue.pause()
        await self._room.acquire()
        while not self._has_budget():
            if self.outstanding == 0:
                self._counts.stopped = "budget"
                return False
            self._queue.pause()
            self._settled.clear()
            await self._settled.wait()
        self._queue.resume()
        self._admitted += 1
        self.outstanding += 1
        return True

    def settle(self) -> None:
        """Record that an admitted request has its answer, or has failed for good."""
        self.outstanding -= 1
        self._settled.set()

    def release(self, requests: int) -> None:
        """Make room again.

        Args:
            requests: How many settled requests were written to the store.
        """
        for _ in range(requests):
            self._room.release()

    def _has_budget(self) -> bool:
        counts = self._counts
        return self._budget.allows(self._admitted, self.outstanding, counts.answered, counts.spending)
