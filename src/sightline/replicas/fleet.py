"""The running replicas of one model: they share its requests."""

from __future__ import annotations

import asyncio
import math

from sightline.output import print_note
from sightline.replicas.base import Launcher, Replica, ReplicaLostError
from sightline.types import Answer, Failure, Request

MORE_IN_FLIGHT = 2
"""How many more requests a replica may have in flight than another one because it had the image before."""
REMEMBERED = 4096
"""Images whose replica is remembered."""
MAX_LOSSES = 3
"""Replicas that a request may outlive: one that ends each of them is not sent to all others."""


class Fleet:
    """Sends each request to the replica with the fewest in flight, for as long as the launcher works.

    A replica that had the image of the request before, so that its prefix cache has it, may have a few more.
    A request whose replica is lost is sent to another one. While there is no replica, requests wait for the
    next.
    """

    def __init__(self, model: str, launcher: Launcher) -> None:
        """Start nothing yet.

        Args:
            model: The model's name, for notes.
            launcher: Starts the replicas.
        """
        self._model = model
        self._launcher = launcher
        self._in_flight: dict[str, int] = {}
        self._replicas: dict[str, Replica] = {}
        self._had_image: dict[str, str] = {}
        self._changed = asyncio.Event()

    async def start(self) -> None:
        """Start the launcher and wait for the first replica.

        Raises:
            UserError: None can start.
        """
        print_note(f"{self._model}: {_count(self._launcher.replicas)} on {self._launcher.place}")
        self._launching = asyncio.create_task(self._launcher.run(self._join, self._leave))
        try:
            await self._some_replica()
        except BaseException:
            await self.end()
            raise

    @property
    def is_running(self) -> bool:
        """Whether its launcher is at work."""
        return not self._launching.done()

    async def end(self) -> None:
        """End the launcher, and wait until it has ended its replicas."""
        self._replicas.clear()
        self._in_flight.clear()
        self._launching.cancel()
        await asyncio.wait({self._launching})
        if not self._launching.cancelled():
            # An error that has reached a caller already, or that came too late to matter.
            self._launching.exception()

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer a request.

        Args:
            request: The request.

        Returns:
            The answer of a replica; a permanent failure if the request outlives `MAX_LOSSES` of them.

        Raises:
            UserError: The launcher can start no replica.
            EnvironmentFailedError: The launcher can start none any more.
        """
        losses: list[str] = []
        while len(losses) < MAX_LOSSES:
            await self._some_replica()
            replica = self._replicas[self._suitable(request)]
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

    def _suitable(self, request: Request) -> str:
        """The replica for a request."""
        fewest = min(self._in_flight, key=self._in_flight.__getitem__)
        image = next((file.digest for file in request.images.values()), None)
        if image is None:
            return fewest
        earlier = self._had_image.pop(image, fewest)
        is_close = self._in_flight.get(earlier, math.inf) <= self._in_flight[fewest] + MORE_IN_FLIGHT
        self._had_image[image] = earlier if is_close else fewest
        if len(self._had_image) > REMEMBERED:
            del self._had_image[next(iter(self._had_image))]
        return self._had_image[image]

    async def _some_replica(self) -> None:
        """Wait until there is a replica; raises why there is none."""
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

    def _join(self, replica: Replica) -> None:
        self._replicas[replica.name] = replica
        self._in_flight[replica.name] = 0
        self._changed.set()
        print_note(f"{self._model}: {replica.name} is ready; {self._running()}")

    def _leave(self, name: str, reason: str) -> None:
        if name in self._replicas:
            self._forget(self._replicas[name], reason)

    def _forget(self, replica: Replica, reason: str) -> None:
        """Send nothing more to a replica; many of its calls and its launcher may report the loss."""
        if self._replicas.get(replica.name) is not replica:
            return
        del self._replicas[replica.name], self._in_flight[replica.name]
        print_note(f"{self._model}: {replica.name} has ended ({reason}); {self._running()}")

    def _running(self) -> str:
        return f"{len(self._replicas)} of {_count(self._launcher.replicas)} run"


def _count(replicas: int) -> str:
    return f"{replicas} replica{'s' * (replicas != 1)}"
