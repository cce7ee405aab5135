"""The running replicas of one model, which share its requests, and what starts them for --on."""

from __future__ import annotations

import asyncio
import errno
import importlib
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError, unknown_name
from sightline.models.base import Model
from sightline.models.http_client import CallError, HTTPClient, Timeouts
from sightline.models.registry import ModelOptions, resolve, resolve_name
from sightline.text import print_note
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
        """`limit` is the most requests that a replica has in flight; None for no limit."""
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
        return not self._launching.done()

    async def end(self) -> None:
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


# -- The interfaces between a pool of replicas and what starts them (Slurm, Ray)


class Target(Struct, frozen=True, kw_only=True):
    """The model that replicas are copies of.

    Attributes:
        model: The model as this process would run it; it is never opened here.
        spec: Its name as for --model; a name of sightline.toml is replaced by what it stands for.
        weights: The identity of its files and options, whatever --model-id is: that of every copy.
    """

    model: Model
    spec: str
    args: Mapping[str, Any]
    weights: str


class ReplicaLostError(Exception):
    """A replica ended or cannot be reached; a request that it may have `received` may be the reason."""

    def __init__(self, message: str, *, received: bool = True) -> None:
        super().__init__(message)
        self.received = received


class Replica(Protocol):
    """One running copy of a model. `name`: where it runs, for messages; no two replicas of a launcher share a
    name.
    """

    name: str

    async def answer(self, request: Request) -> Answer | Failure:
        """Answer one request; many calls run at the same time.

        Raises:
            ReplicaLostError: The replica cannot answer any more; another one must be asked.
        """
        ...


Joined = Callable[[Replica], None]
"""What a launcher calls with each replica that is ready for requests."""


class Left(Protocol):
    """What a launcher calls with each replica that has ended, also if a request has reported the loss."""

    def __call__(self, name: str, reason: str, *, is_explained: bool = False) -> None:
        """Send nothing more to a replica.

        Args:
            is_explained: Whether no request can be the reason: the replica was cancelled, preempted or
                requeued, or its node is gone. One that was only out of reach joins again instead.
        """
        ...


class Launcher(Protocol):
    """Starts replicas of one model, and ends them.

    Attributes:
        place: Where they run, for messages: `Slurm, profile gpu`.
        replicas: How many may run at the same time.
    """

    place: str
    replicas: int

    async def run(self, joined: Joined, left: Left) -> None:
        """Start the replicas and replace those that end, until cancelled; then end those that are left.

        Raises:
            UserError: No replica can ever start.
            EnvironmentFailedError: All replicas have ended, and none can be started any more.
        """
        ...


# -- Replicas that go on running while nobody asks: between points of a sweep, between a judge's attempts

_kept: ContextVar[dict[Hashable, Fleet] | None] = ContextVar("kept", default=None)
"""The idle fleet by what it is, at most one; None outside `replicas_kept`."""


@asynccontextmanager
async def replicas_kept() -> AsyncIterator[None]:
    """Keep the replicas that were used last, until other ones are needed or the outermost context ends.

    Other ones may need the nodes of those that are idle, so only one fleet waits.
    """
    if _kept.get() is not None:
        yield
        return
    idle: dict[Hashable, Fleet] = {}
    token = _kept.set(idle)
    try:
        yield
    finally:
        _kept.reset(token)
        await _end_all(idle)


async def take_fleet(key: Hashable, new: Fleet) -> Fleet:
    """Take the kept fleet of a key, or start `new`."""
    idle = _kept.get()
    if idle:
        if key in idle and idle[key].is_running:
            return idle.pop(key)
        await _end_all(idle)
    await new.start()
    return new


async def leave_fleet(key: Hashable, fleet: Fleet) -> None:
    """End a fleet, or keep it for the next evaluation."""
    idle = _kept.get()
    if idle is None:
        await fleet.end()
        return
    await _end_all(idle)
    idle[key] = fleet


async def _end_all(idle: dict[Hashable, Fleet]) -> None:
    while idle:
        await idle.popitem()[1].end()


# -- A model whose replicas share its requests


class ReplicaPool(Model):
    """A model that replicas answer for, with the identity and the options of the model itself."""

    def __init__(
        self,
        model: Model,
        launcher: Launcher,
        key: Hashable = None,
        script: str = "",
        concurrency: int | None = None,
    ) -> None:
        """`concurrency` is the most requests that a replica has in flight; None for no limit."""
        self.name = model.name
        self.identity = model.identity
        self.host = f"{model.name} on {launcher.place}"
        self.capabilities = replace(model.capabilities, endpoint=False, replicas=launcher.replicas)
        self.script = script
        self._model = model
        self._launcher = launcher
        self._key = key
        self._concurrency = concurrency

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return self._model.effective(sampling)

    def training_overlap(self, folder: Path) -> str:
        return self._model.training_overlap(folder)

    async def __aenter__(self) -> Self:
        self._fleet = await take_fleet(self._key, Fleet(self.name, self._launcher, self._concurrency))
        return self

    async def __aexit__(self, *_: object) -> None:
        await leave_fleet(self._key, self._fleet)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            yield index, await self._fleet.answer(request)


# -- --on: from `ray`, `slurm:gpu` or `processes` to a pool of replicas for each model of this machine

LAUNCHERS: dict[str, str] = {
    "processes": "sightline.replicas.worker_client:launcher",
    "ray": "sightline.replicas.on_ray:ray_launcher",
    "slurm": "sightline.replicas.slurm:launcher",
}
"""Kind of place -> 'module:name' of a function of (Target, rest of the place, Config); it returns a Launcher.

It raises UserError where the place cannot be used, and starts nothing.
"""


def resolve_on(
    place: str | None, spec: str, options: ModelOptions, concurrency: int | None = None
) -> Sequence[Model]:
    """Create the models for --model; `place` is --on, None for this machine."""
    models = resolve(spec, options if place is None else replace(options, elsewhere=True))
    if place is None or not models[0].capabilities.own_process:
        return models

    kind, _, rest = place.partition(":")
    if kind not in LAUNCHERS:
        raise unknown_name("--on", kind, sorted(LAUNCHERS))
    module, _, function = LAUNCHERS[kind].partition(":")
    spec, options = resolve_name(spec, options)
    weights = models[0].identity
    if options.model_id is not None:
        plain = replace(options, model_id=None, elsewhere=True)
        weights = resolve(spec, plain)[0].identity
    target = Target(model=models[0], spec=spec, args=options.args, weights=weights)
    launcher = getattr(importlib.import_module(module), function)(target, rest, options.config)
    key = (
        place,
        models[0].identity,
        spec,
        tuple(sorted((name, repr(value)) for name, value in options.args.items())),
    )
    return [ReplicaPool(models[0], launcher, key, getattr(launcher, "script", ""), concurrency)]


def check_place(place: str, models: Sequence[Model]) -> None:
    """Check that --on applies to one of the models."""
    if not any(model.capabilities.replicas for model in models):
        raise UserError(
            f"--on {place} has no effect: neither model nor judge is run or started by Sightline",
            expected="mini, hf/..., vllm/... or sglang/..., or no --on",
        )


# -- A replica behind an HTTP address: its calls end as soon as it is known to be lost

HEALTH_SECONDS = 10.0
"""How long a server may take to say that it lives."""


class RemoteReplica:
    """A replica that a server answers for.

    A broken call of a server that still lives is a transient failure, which the engine asks again; otherwise
    the replica is lost. Belongs to one event loop.
    """

    def __init__(
        self, name: str, address: str, send: Callable[[Request], Awaitable[Answer | Failure]]
    ) -> None:
        self.name = name
        self._address = address
        self._send = send
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(self, request: Request) -> Answer | Failure:
        if self.lost.done():
            raise ReplicaLostError(self.lost.result(), received=False)
        call = asyncio.ensure_future(self._send(request))
        try:
            either: set[asyncio.Future[Any]] = {call, self.lost}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                result = call.result()
                if isinstance(result, Answer) or result.kind != "transient":
                    return result
                if not self.is_lost and await self.is_healthy():
                    return result
                self.lose(result.message)
        finally:
            call.cancel()
        raise ReplicaLostError(self.lost.result())

    @property
    def is_lost(self) -> bool:
        return self.lost.done()

    def lose(self, reason: str) -> None:
        """End all calls: the server has ended, whether or not its connections say so."""
        if not self.lost.done():
            self.lost.set_result(reason)

    async def is_healthy(self) -> bool:
        return await is_healthy(self._address)


async def is_healthy(address: str) -> bool:
    try:
        async with aclosing(HTTPClient(address, None, Timeouts(HEALTH_SECONDS, HEALTH_SECONDS))) as client:
            return (await client.call("/health")).status == 200
    except CallError as error:
        return isinstance(error.cause, OSError) and error.cause.errno in (errno.EMFILE, errno.ENFILE)
