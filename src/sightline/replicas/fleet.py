"""The running replicas of one model: they share its requests."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from sightline.output import print_note
from sightline.replicas.base import Launcher, Replica, ReplicaLostError
from sightline.types import Answer, Failure, Request

MORE_IN_FLIGHT = 2
"""How many more requests a replica may have in flight than another one because it had the image before."""
REMEMBERED = 4096
"""Images whose replica is remembered."""
MAX_LOSSES = 2
"""Replicas that may end while they answer a request; the last of them answers nothing else."""
EXPLAIN_SECONDS = 30.0
"""How long a request that is about to fail waits until the launcher says why its replicas ended."""


class _Running:
    """A replica, and what is known of its end."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.in_flight = 0
        self.is_alone = False
        """Whether its one request is a suspect."""
        self.reason = ""
        self.told = asyncio.Event()
        """Set when the launcher has said why it ended."""
        self.is_explained = False
        """Whether it ended for a reason other than its requests."""


class _Waiting:
    """A request that waits for a replica; a suspect if replicas ended that answered it."""

    def __init__(self, request: Request, losses: list[_Running]) -> None:
        self.request = request
        self.losses = losses
        self.place: asyncio.Future[_Running] = asyncio.get_running_loop().create_future()

    @property
    def is_suspect(self) -> bool:
        return any(not loss.is_explained for loss in self.losses)


class Fleet:
    """Sends each request to the replica with the fewest in flight, for as long as the launcher works.

    A replica that had the image of the request before, so that its prefix cache has it, may have a few more.
    While no replica has room, requests wait.

    A request whose replica ends is sent again. Any of the requests that the replica had received may have
    ended it. They are suspects, unless the launcher knows another reason: a suspect is sent to a replica that
    answers nothing else meanwhile, so that no other request is blamed for it.
    """

    def __init__(self, model: str, launcher: Launcher, limit: int | None = None) -> None:
        """Start nothing yet.

        Args:
            limit: The most requests that a replica has in flight; None for no limit.
        """
        self._model = model
        self._launcher = launcher
        self._limit = limit or math.inf
        self._replicas: dict[str, _Running] = {}
        self._reported: dict[str, _Running] = {}
        """The replicas that a request reported as lost, and of which the launcher has not said anything."""
        self._had_image: dict[str, str] = {}
        self._waiting: deque[_Waiting] = deque()
        self._suspects: deque[_Waiting] = deque()
        self._has_joined = asyncio.Event()

    async def start(self) -> None:
        """Start the launcher and wait for the first replica."""
        print_note(f"{self._model}: {_count(self._launcher.replicas)} on {self._launcher.place}")
        self._launching = asyncio.create_task(self._launcher.run(self._join, self._leave))
        self._launching.add_done_callback(self._launcher_ended)
        joined = asyncio.create_task(self._has_joined.wait())
        try:
            await asyncio.wait({joined, self._launching}, return_when=asyncio.FIRST_COMPLETED)
            self._check_launcher()
        except BaseException:
            await self.end()
            raise
        finally:
            joined.cancel()

    @property
    def is_running(self) -> bool:
        """Whether its launcher is at work."""
        return not self._launching.done()

    async def end(self) -> None:
        """End the launcher, and wait until it has ended its replicas."""
        self._replicas.clear()
        self._launching.cancel()
        await asyncio.wait({self._launching})
        if not self._launching.cancelled():
            # An error that has reached a caller already, or that came too late to matter.
            self._launching.exception()

    async def answer(self, request: Request) -> Answer | Failure:
        losses: list[_Running] = []
        while True:
            running = await self._place(request, losses)
            try:
                return await running.replica.answer(request)
            except ReplicaLostError as error:
                self._forget(running, str(error))
                if not error.received:
                    continue
            finally:
                self._release(running)
            losses = _unexplained([*losses, running])
            if len(losses) >= MAX_LOSSES:
                losses = await _told(losses)
            if len(losses) >= MAX_LOSSES:
                return Failure(
                    "permanent",
                    f"{MAX_LOSSES} replicas ended while they answered this request, the last one while it"
                    f" answered nothing else ({losses[-1].replica.name}: {losses[-1].reason})",
                )

    async def _place(self, request: Request, losses: list[_Running]) -> _Running:
        """Wait for a replica with room; raises why there can be none. `_release` gives the room back."""
        while True:
            self._check_launcher()
            waiting = _Waiting(request, losses)
            (self._suspects if waiting.is_suspect else self._waiting).append(waiting)
            self._dispatch()
            try:
                running = await waiting.place
            except asyncio.CancelledError:
                if not waiting.place.cancelled() and waiting.place.exception() is None:
                    self._release(waiting.place.result())
                raise
            if self._replicas.get(running.replica.name) is running:
                return running
            # It has ended in between, and this request had no part in that.
            self._release(running)

    def _dispatch(self) -> None:
        """Send the requests that wait to the replicas that have room."""
        for running in self._replicas.values():
            while self._suspects and not running.in_flight:
                running.is_alone = self._assign(self._suspects.popleft(), running)
        while self._waiting and (places := self._with_room()):
            waiting = self._waiting.popleft()
            self._assign(waiting, places[self._suitable(waiting.request, places)])

    def _assign(self, waiting: _Waiting, running: _Running) -> bool:
        """Give a request its replica; False if nobody waits for its answer any more."""
        if waiting.place.done():
            return False
        running.in_flight += 1
        waiting.place.set_result(running)
        return True

    def _with_room(self) -> dict[str, _Running]:
        """The replicas that may get one more request that is no suspect."""
        replicas = self._replicas
        # While suspects wait, the replica that is the first to be idle gets no other request.
        kept = min(replicas, key=lambda name: replicas[name].in_flight, default="") if self._suspects else ""
        return {
            name: running
            for name, running in replicas.items()
            if running.in_flight < self._limit and not running.is_alone and name != kept
        }

    def _suitable(self, request: Request, places: dict[str, _Running]) -> str:
        """The replica for a request, of those with room."""
        fewest = min(places, key=lambda name: places[name].in_flight)
        image = next((file.digest for file in request.images.values()), None)
        if image is None:
            return fewest
        earlier = self._had_image.pop(image, fewest)
        most = places[fewest].in_flight + MORE_IN_FLIGHT
        is_close = earlier in places and places[earlier].in_flight <= most
        self._had_image[image] = earlier if is_close else fewest
        if len(self._had_image) > REMEMBERED:
            del self._had_image[next(iter(self._had_image))]
        return self._had_image[image]

    def _release(self, running: _Running) -> None:
        running.in_flight -= 1
        running.is_alone = False
        self._dispatch()

    def _check_launcher(self) -> None:
        """Raise why the launcher has ended: nobody replaces its replicas any more."""
        if self._launching.done():
            self._launching.result()
            raise RuntimeError(f"the launcher of {self._launcher.place} has returned")

    def _launcher_ended(self, _: asyncio.Task[None]) -> None:
        """Tell the requests that wait why they wait in vain."""
        for waiting in (*self._waiting, *self._suspects):
            if waiting.place.done():
                continue
            try:
                self._check_launcher()
            except asyncio.CancelledError:
                waiting.place.cancel()
            except Exception as error:
                waiting.place.set_exception(error)

    def _join(self, replica: Replica) -> None:
        if (lost := self._reported.pop(replica.name, None)) is not None:
            # No request ended it: it has only been out of reach.
            self._explain(lost, is_explained=True)
        self._replicas[replica.name] = _Running(replica)
        self._has_joined.set()
        print_note(f"{self._model}: {replica.name} is ready; {self._running()}")
        self._dispatch()

    def _leave(self, name: str, reason: str, *, is_explained: bool = False) -> None:
        if (running := self._replicas.get(name)) is not None:
            self._forget(running, reason)
        if (lost := self._reported.pop(name, None)) is not None:
            self._explain(lost, is_explained=is_explained)

    def _explain(self, lost: _Running, *, is_explained: bool) -> None:
        """Record what the launcher knows of an end; its requests may be no suspects any more."""
        lost.is_explained = is_explained
        lost.told.set()
        self._waiting.extend(waiting for waiting in self._suspects if not waiting.is_suspect)
        self._suspects = deque(waiting for waiting in self._suspects if waiting.is_suspect)
        self._dispatch()

    def _forget(self, running: _Running, reason: str) -> None:
        """Send nothing more to a replica; many of its calls and its launcher may report the loss."""
        name = running.replica.name
        if self._replicas.get(name) is not running:
            return
        del self._replicas[name]
        running.reason = reason
        self._reported[name] = running
        print_note(f"{self._model}: {name} has ended ({reason}); {self._running()}")

    def _running(self) -> str:
        return f"{len(self._replicas)} of {_count(self._launcher.replicas)} run"


def _unexplained(losses: Iterable[_Running]) -> list[_Running]:
    return [loss for loss in losses if not loss.is_explained]


async def _told(losses: list[_Running]) -> list[_Running]:
    """Wait for what the launcher knows of lost replicas; those of which it knows no reason are left."""
    with suppress(TimeoutError):
        async with asyncio.timeout(EXPLAIN_SECONDS):
            for loss in losses:
                await loss.told.wait()
    return _unexplained(losses)


def _count(replicas: int) -> str:
    return f"{replicas} replica{'s' * (replicas != 1)}"
