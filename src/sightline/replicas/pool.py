"""A model whose replicas share its requests: each request goes to the replica with the fewest in flight."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from sightline.models.base import Model
from sightline.output import print_note
from sightline.replicas.base import Launcher, Replica, ReplicaLostError
from sightline.types import Answer, Failure, Request

MAX_LOSSES = 3
"""Replicas that a request may outlive: one that ends each of them is not sent to all others."""


class ReplicaPool(Model):
    """A model that replicas answer for, with the identity and the options of the model itself.

    A request whose replica is lost is sent to another one. While there is no replica, requests wait for the
    next.
    """

    batch_size = 1
    parallel: int | None = None

    def __init__(self, model: Model, launcher: Launcher) -> None:
        """Start nothing yet.

        Args:
            model: The model that the replicas are copies of.
            launcher: Starts them.
        """
        self.name = model.name
        self.identity = model.identity
        self.host = f"{model.name} on {launcher.place}"
        self.capabilities = replace(model.capabilities, endpoint=False, replicas=launcher.replicas)
        self._model = model
        self._launcher = launcher
        self._in_flight: dict[str, int] = {}
        self._replicas: dict[str, Replica] = {}
        self._changed = asyncio.Event()

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        """Translate options as the model does."""
        return self._model.effective(sampling)

    def training_overlap(self, folder: Path) -> str:
        """Check as the model does whether it was trained on the data."""
        return self._model.training_overlap(folder)

    async def __aenter__(self) -> Self:
        """Start the replicas and wait for the first one. Raises UserError if none can start."""
        print_note(f"{self.name}: {self._count(self._launcher.replicas)} on {self._launcher.place}")
        self._launching = asyncio.create_task(self._launcher.run(self._join, self._leave))
        try:
            await self._some_replica()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the replicas."""
        await self._end()

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        """Send each request to the replica with the fewest requests in flight."""
        for index, request in enumerate(requests):
            yield index, await self._answer(request)

    async def _answer(self, request: Request) -> Answer | Failure:
        losses: list[str] = []
        while len(losses) < MAX_LOSSES:
            replica = await self._some_replica()
            self._in_flight[replica.name] += 1
            try:
                return await replica.answer(request)
            except ReplicaLostError as error:
                losses.append(f"{replica.name}: {error}")
                self._forget(replica, str(error))
            finally:
                if self._replicas.get(replica.name) is replica:
                    self._in_flight[replica.name] -= 1
        return Failure(
            "permanent", f"{MAX_LOSSES} replicas ended while they answered this request ({losses[-1]})"
        )

    async def _some_replica(self) -> Replica:
        """The replica with the fewest requests in flight, once there is one; raises why there is none."""
        while not self._replicas:
            self._changed.clear()
            waiting = asyncio.create_task(self._changed.wait())
            try:
                await asyncio.wait({waiting, self._launching}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if self._launching.done():
                self._launching.result()
                raise RuntimeError(f"the launcher of {self._launcher.place} has returned")
        return self._replicas[min(self._in_flight, key=self._in_flight.__getitem__)]

    def _join(self, replica: Replica) -> None:
        self._replicas[replica.name] = replica
        self._in_flight[replica.name] = 0
        self._changed.set()
        print_note(f"{self.name}: {replica.name} is ready; {self._running()}")

    def _leave(self, name: str, reason: str) -> None:
        if name in self._replicas:
            self._forget(self._replicas[name], reason)

    def _forget(self, replica: Replica, reason: str) -> None:
        """Send nothing more to a replica; many of its calls and its launcher may report the loss."""
        if self._replicas.get(replica.name) is not replica:
            return
        del self._replicas[replica.name], self._in_flight[replica.name]
        print_note(f"{self.name}: {replica.name} has ended ({reason}); {self._running()}")

    def _running(self) -> str:
        return f"{len(self._replicas)} of {self._count(self._launcher.replicas)} run"

    @staticmethod
    def _count(replicas: int) -> str:
        return f"{replicas} replica{'s' * (replicas != 1)}"

    async def _end(self) -> None:
        """End the replicas, and wait until they have ended."""
        self._replicas.clear()
        self._in_flight.clear()
        self._launching.cancel()
        await asyncio.wait({self._launching})
        if not self._launching.cancelled():
            # An error that has reached a caller already, or that came too late to matter.
            self._launching.exception()
