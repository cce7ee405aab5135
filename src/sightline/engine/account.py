"""The account of a run: what all its parts, and all its processes on one store, have spent of its budget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from sightline.engine.budget import Budget, Spent
from sightline.engine.ledger import RENEWAL_SECONDS, Ledger, Room
from sightline.engine.renewal import renewed
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError

LOOK_AGAIN_SECONDS = 0.2
"""How often a process looks whether others have finished requests, where the budget has no room."""


class Account:
    """What a run has spent, by model. Belongs to one event loop.

    Captioner, model and judges share it. Without a ledger, so does no other process.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        """Start with nothing spent.

        Args:
            ledger: What other processes of the run spend; None for a run of one process.
        """
        self._ledger = ledger
        self._own: dict[str, Spent] = {}
        self._others_are_sending = False
        self._lock = asyncio.Lock()
        self._settled = asyncio.Event()

    @property
    def has_outstanding(self) -> bool:
        """Whether requests have no result yet, of this process or of another one when it was looked up."""
        return self._others_are_sending or any(one.outstanding for one in self._own.values())

    async def reserve(
        self, model: str, budget: Budget, wanted: int, expected_cost: float | None = None
    ) -> int:
        """Allow requests, as far as the budget has room."""

        def room(spent: Mapping[str, Spent]) -> Spent:
            allowed = budget.room(model, spent, wanted, expected_cost)
            return Spent(allowed, allowed, highest=(expected_cost or 0.0) if allowed else 0.0)

        return await self._add(model, room)

    async def reserve_attempt(self, model: str, budget: Budget) -> bool:
        """Allow another attempt of a request that was allowed before."""
        return bool(await self._add(model, lambda spent: Spent(budget.has_room_for_attempt(spent))))

    def settle(self, model: str, cost: float | None) -> None:
        """Record the result of a request.

        Args:
            cost: The cost of its answer; None for a request without an answer.
        """
        spent = self._own[model]
        spent.outstanding -= 1
        if cost is not None:
            spent.answered += 1
            spent.cost += cost
            spent.highest = max(spent.highest, cost)
        self._settled.set()

    def withdraw(self, model: str, requests: int) -> None:
        """Give back what was allowed and is not sent."""
        if requests:
            self._own[model].calls -= requests
            self._own[model].outstanding -= requests
            self._settled.set()

    def withdraw_attempts(self, model: str, attempts: int) -> None:
        """Give back further attempts that were allowed and are not sent."""
        if attempts:
            self._own[model].calls -= attempts
            self._settled.set()

    async def changed(self) -> None:
        """Wait until a request of this process is settled, or maybe one of another process."""
        self._settled = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if self._ledger is None else LOOK_AGAIN_SECONDS):
                await self._settled.wait()

    async def publish(self) -> None:
        """Tell other processes what was spent."""
        if self._ledger is not None:
            async with self._lock:
                await run_in_thread(self._ledger.write, self._snapshot())

    async def close(self) -> None:
        """Tell other processes that this one has ended."""
        if self._ledger is not None:
            await run_in_thread(self._ledger.leave, self._snapshot())

    async def _add(self, model: str, room: Room) -> int:
        """Add to what was spent on a model what a function of the present state allows; returns the calls."""
        self._own.setdefault(model, Spent())
        if self._ledger is None:
            allowed = room(self._own)
            self._own[model] = self._own[model].plus(allowed)
            return allowed.calls
        async with self._lock:
            allowed, self._others_are_sending = await run_in_thread(
                self._ledger.reserve, self._snapshot(), model, room
            )
            self._own[model] = self._own[model].plus(allowed)
            return allowed.calls

    def _snapshot(self) -> dict[str, Spent]:
        return {model: replace(spent) for model, spent in self._own.items()}


@asynccontextmanager
async def shared_account(store: Store, run: bytes, budget: Budget) -> AsyncIterator[Account]:
    """Open the account that all processes of a run share.

    The account of processes that run at the same time is one; it ends with the last of them, so that the same
    command can continue later with its whole budget.
    """
    if not budget.is_limited:
        yield Account()
        return
    ledger = store.ledger(run)
    await run_in_thread(ledger.join)
    account = Account(ledger)
    try:
        async with renewed(account.publish, RENEWAL_SECONDS):
            yield account
    finally:
        with suppress(EnvironmentFailedError):
            await account.close()
