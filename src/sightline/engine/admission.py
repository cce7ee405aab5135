"""Admission: how many requests may be outstanding at a time, by memory and by the budget."""

from __future__ import annotations

import asyncio

from sightline.engine.account import Account
from sightline.engine.budget import Budget
from sightline.engine.call_queue import CallQueue
from sightline.engine.counts import Counts


class Admission:
    """Admits requests one by one. Belongs to one event loop."""

    def __init__(
        self,
        capacity: int,
        model: str,
        budget: Budget,
        account: Account,
        counts: Counts,
        queue: CallQueue,
    ) -> None:
        self.outstanding = 0
        self._room = asyncio.Semaphore(capacity)
        self._model = model
        self._budget = budget
        self._account = account
        self._counts = counts
        self._queue = queue
        self._reserved = 0
        self._admitted = 0
        self._admitted_again = 0

    async def admit(self, following: int = 0, expected_cost: float | None = None) -> bool:
        """Wait until one more request may be outstanding."""
        if self._room.locked():
            self._queue.pause()
        await self._room.acquire()
        while not self._reserved:
            self._reserved = await self._account.reserve(
                self._model, self._budget, following + 1, expected_cost
            )
            if self._reserved:
                break
            if not self._account.has_outstanding:
                self._counts.stopped = "budget"
                return False
            self._queue.pause()
            await self._account.changed()
        self._queue.resume()
        self._reserved -= 1
        self._admitted += 1
        self.outstanding += 1
        return True

    async def admit_attempt(self) -> bool:
        """Allow another attempt of an admitted request, as far as the budget has room."""
        if await self._account.reserve_attempt(self._model, self._budget):
            self._admitted_again += 1
            return True
        self._counts.stopped = "budget"
        return False

    def settle(self, cost: float | None = None) -> None:
        """Record that an admitted request has its answer, or has failed for good.

        Args:
            cost: The cost of the answer; None where it failed.
        """
        self.outstanding -= 1
        self._account.settle(self._model, cost)

    def close(self, sent: int, sent_again: int) -> None:
        """Give the rest back to the budget: attempts that were not sent, and requests that have no result."""
        unsent = self._admitted - sent
        self._account.withdraw(self._model, self._reserved + unsent)
        self._account.withdraw_attempts(self._model, self._admitted_again - sent_again)
        for _ in range(self.outstanding - unsent):
            self._account.settle(self._model, None)

    def withdraw(self, *, was_sent: bool, is_admitted: bool) -> None:
        """Record that an admitted request needs no answer any more: another process has it."""
        if was_sent:
            self.settle()
            if is_admitted:
                self._admitted_again -= 1
                self._account.withdraw_attempts(self._model, 1)
        else:
            self.outstanding -= 1
            self._admitted -= 1
            self._account.withdraw(self._model, 1)
        self.release(1)

    def release(self, requests: int) -> None:
        """Make room again."""
        for _ in range(requests):
            self._room.release()
