"""Starts replicas of a local model as actors of Ray, and replaces those that are lost."""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

from msgspec import Struct, field

from sightline.config import Config, RaySettings
from sightline.errors import EnvironmentFailedError, UserError, needs_extra
from sightline.replicas import ray_entry
from sightline.replicas.fleet import Joined, Launcher, Left, RemoteReplica, Target
from sightline.replicas.ray_node import ModelCopy
from sightline.replicas.worker_client import WorkerClient
from sightline.text import print_note

NOTICE_SECONDS = 10.0
"""How long Ray may take to notice that an actor has ended whose calls fail."""
START_SECONDS = 60.0
"""Seconds after which a replica that has not started is reported."""


def ray_launcher(target: Target, address: str, config: Config) -> Launcher:
    """Find out how many replicas a cluster has room for; nothing is started."""
    if target.spec != "mini" and not target.spec.startswith("hf/"):
        raise UserError("--on ray runs local models only", found=target.spec, expected="hf/... or mini")
    with connected(address) as connection:
        size, replicas = replica_size(connection.ray, config.ray)
    if not replicas:
        raise UserError(
            f"no node of the Ray cluster has {_described(size)} for a replica",
            expected="a larger node, or fewer `cpus` or `gpus` in [ray] of sightline.toml",
        )
    return RayLauncher(target, address, size, config.ray.replicas or replicas, config.ray.restarts)


class RayLauncher:
    """Keeps a number of actors running, as far as the cluster has room."""

    def __init__(
        self, target: Target, address: str, size: Mapping[str, int], replicas: int, restarts: int
    ) -> None:
        self.place = f"Ray{f' at {address}' if address else ''}, {_described(size)} each"
        self.replicas = replicas
        self._target = target
        self._address = address
        self._size = size
        self._restarts = restarts
        self._key = secrets.token_urlsafe(32)
        self._numbers = count(1)

    async def run(self, joined: Joined, left: Left) -> None:
        copy = ModelCopy(self._target.spec, self._target.args, self._target.weights, os.getcwd(), self._key)
        with connected(self._address) as connection:
            actors = connection.ray.remote(ray_entry.Actor).options(
                num_cpus=self._size["CPU"],
                num_gpus=self._size["GPU"],
                max_restarts=0,
                scheduling_strategy="SPREAD",
            )
            keeping = [
                asyncio.create_task(self._keep(connection, actors, pickle.dumps(copy), joined, left))
                for _ in range(self.replicas)
            ]
            try:
                reasons = await asyncio.gather(*keeping)
            finally:
                connection.models.pop(self, None)
                for task in keeping:
                    task.cancel()
                await asyncio.wait(keeping)
            raise EnvironmentFailedError(
                f"{self._target.spec}: every replica has ended, and none is started any more"
                f" (restarts of each replica: {self._restarts}); one of them: {reasons[0]}"
            )

    async def _keep(
        self, connection: Connection, actors: Any, payload: bytes, joined: Joined, left: Left
    ) -> str:
        """Keep one replica running: an actor, then the next one; returns why the last one has ended."""
        ray = connection.ray
        reason = ""
        for _ in range(1 + self._restarts):
            actor = actors.remote()
            replica: RemoteReplica | None = None
            try:
                kind, node, value = await self._started(connection, actor.start.remote(payload))
                if kind != "done":
                    raise _unusable(kind, node, value)
                connection.models[self] = self._target.spec
                name = f"replica {next(self._numbers)} on node {node}"
                async with WorkerClient(value, self._target.model.name, self._key) as client:
                    replica = RemoteReplica(name, value, client.send)
                    joined(replica)
                    kind, reason = await _ended(actor, replica)
                left(name, reason)
                if kind == "wrong":
                    raise _unusable(kind, node, reason)
            except losses(ray) as error:
                reason = first_line(error)
                if replica is not None:
                    left(replica.name, reason, is_explained=is_of_node(error))
                else:
                    print_note(f"{self._target.spec}: a replica ended while it loaded ({reason})")
            finally:
                if replica is not None:
                    replica.lose(reason or "it is not needed any more")
                ray.kill(actor)
        return reason

    async def _started(self, connection: Connection, reply: Any) -> tuple[str, str, str]:
        """The reply of an actor's start. UserError if another model of this command has all the room."""
        starting = asyncio.ensure_future(reply)
        try:
            done, _ = await asyncio.wait({starting}, timeout=START_SECONDS)
            models = connection.models
            if not done and models and self not in models:
                other = next(iter(models.values()))
                raise UserError(
                    f"no room for {self._target.spec}: replicas of {other} have the nodes",
                    expected="`replicas` in [ray] of sightline.toml such that those of model and judges fit",
                )
            if not done:
                print_note(
                    f"{self._target.spec}: a replica waits for {_described(self._size)}, or loads slowly"
                )
            started: tuple[str, str, str] = await starting
        finally:
            starting.cancel()
        return started


async def _ended(actor: Any, replica: RemoteReplica) -> tuple[str, str]:
    """Wait until an actor cannot answer any more: 'wrong', 'failed' or 'lost', and the reason.

    Raises what Ray says of an actor that has ended, which comes later than the errors of its calls.
    """
    ended = asyncio.ensure_future(actor.until_lost.remote())
    try:
        await asyncio.wait({ended, replica.lost}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({ended}, timeout=NOTICE_SECONDS)
        return ended.result() if ended.done() else ("lost", replica.lost.result())
    finally:
        ended.cancel()


def _unusable(kind: str, node: str, why: str) -> UserError | EnvironmentFailedError:
    return (UserError if kind == "wrong" else EnvironmentFailedError)(f"node {node}: {why}")


def replica_size(ray: Any, settings: RaySettings) -> tuple[dict[str, int], int]:
    """Decide how large a replica is.

    Returns:
        CPUs and GPUs of a replica, by Ray's names; how many replicas the cluster has room for: now, or, if it
        has none now, without other work; 0 if no node is large enough.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    with_gpu = any(node.get("GPU", 0) >= 1 for node in nodes)
    gpus = int(with_gpu) if settings.gpus is None else settings.gpus
    if settings.cpus is not None:
        cpus = settings.cpus
    elif gpus:
        cpus = 1
    else:
        # A replica uses all processors of its node, because each one holds the whole model in memory.
        cpus = int(min((node["CPU"] for node in nodes if node.get("CPU", 0) >= 1), default=1))
    size = {"CPU": cpus, "GPU": gpus}
    room = sum(_room(node, size) for node in nodes)
    # Without free room now, the replicas wait for those of another model to end.
    return size, min(room, _room(ray.available_resources(), size)) or room


def _room(resources: Mapping[str, float], size: Mapping[str, int]) -> int:
    return min(int(resources.get(name, 0) // number) for name, number in size.items() if number)


def _described(size: Mapping[str, int]) -> str:
    return " and ".join(
        f"{number} {name}{'s' * (number != 1)}" for name, number in size.items() if number or name == "CPU"
    )


# -- The connection of this process to a Ray cluster, shared by all that use it at the same time

_lock = threading.Lock()


class Connection(Struct, frozen=True, eq=False):
    """The connection of this process; Ray allows one at a time, so all users share it."""

    ray: Any
    closing: ExitStack
    own: bool
    users: list[str] = field(default_factory=list)
    models: dict[object, str] = field(default_factory=dict)


_current: list[Connection] = []
"""The connection, while it has users."""


def import_ray() -> Any:
    with needs_extra("cluster", "--on ray needs Ray"):
        import ray
    return ray


@contextmanager
def connected(address: str) -> Iterator[Connection]:
    """Connect to a cluster; a connection that the caller's program opened is used and left open."""
    ray = import_ray()
    with _lock:
        connection = _current[0] if _current else _open(ray, address)
        if connection.own and connection.users and address not in connection.users:
            raise UserError(
                f"--on ray:{address}: one command can use one Ray cluster", found=connection.users[0] or "ray"
            )
        connection.users.append(address)
        _current[:] = [connection]
    try:
        yield connection
    finally:
        with _lock:
            connection.users.remove(address)
            if not connection.users:
                _current.clear()
                connection.closing.close()


def losses(ray: Any) -> tuple[type[Exception], ...]:
    """Name the errors that say that a worker, an actor, a node or a finished result is lost."""
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.WorkerCrashedError,
        errors.NodeDiedError,
        errors.ObjectLostError,
        errors.OutOfMemoryError,
    )


def is_of_node(error: Exception) -> bool:
    """Whether an actor is lost with its node, of which no request can be the reason."""
    return bool(getattr(error, "preempted", False)) or "its node has died" in str(error)


def _open(ray: Any, address: str) -> Connection:
    closing = ExitStack()
    own = not ray.is_initialized()
    if own:
        closing.enter_context(_opened(ray, address))
    ray.cloudpickle.register_pickle_by_value(ray_entry)
    return Connection(ray, closing, own)


@contextmanager
def _opened(ray: Any, address: str) -> Iterator[None]:
    # Ray prints what changes in its next versions, and this variable selects the new behaviour.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Ray prints the logs of lost nodes on standard output, and no setting prevents it; what is lost is
    # reported where it is used. Ray listens for them before it has connected.
    worker: Any = sys.modules["ray._private.worker"]
    prints = worker.print_to_stdstream
    worker.print_to_stdstream = _discard
    try:
        connect(ray, address)
        try:
            yield
        finally:
            ray.shutdown()
    finally:
        worker.print_to_stdstream = prints


def _discard(*arguments: Any, **options: Any) -> None:
    """Print nothing."""


# -- Connects this process to a Ray cluster: an error soon where there is none, and Ctrl-C works meanwhile

REACH_SECONDS = 5.0
"""How long the port of a cluster may take to accept a connection."""

CONNECT_SECONDS = 60.0
"""How long Ray may take to connect to a cluster whose port accepts connections."""

SIGNAL_SECONDS = 0.2
"""How long a signal may go unnoticed that another thread of the process receives."""


def connect(ray: Any, address: str) -> None:
    """Connect to a cluster.

    Ray itself tries for minutes. In the main thread, neither Ctrl-C nor SIGTERM ends that, and Ray replaces
    the handler of SIGTERM. So Ray connects in another thread, after a check of the port and of the token.
    """
    connecting: Future[None] = Future()

    def work() -> None:
        try:
            _check_reachable(address)
            ray.init(address or "auto", log_to_driver=False, logging_level="critical")
        # The error is raised in the thread of the caller.
        except BaseException as error:
            connecting.set_exception(error)
        else:
            connecting.set_result(None)

    threading.Thread(target=work, name="sightline-ray", daemon=True).start()
    try:
        with _interruptible():
            _wait(connecting)
        connecting.result(0)
    except BaseException as error:
        # Nobody waits any more for a connection that is there later.
        connecting.add_done_callback(lambda ended: None if ended.exception() else ray.shutdown())
        if _is_about_token(error):
            raise UserError(
                f"--on ray: the Ray cluster at {_shown(address)} needs a token: that of this command is"
                " missing or wrong",
                expected="RAY_AUTH_MODE=token, and the token of the cluster in RAY_AUTH_TOKEN or"
                " ~/.ray/auth_token",
            ) from None
        if isinstance(error, (OSError, RuntimeError, ValueError, ray.exceptions.RayError)):
            # Only `result` raises an error without text.
            raise _no_cluster(
                address, first_line(error) or f"no answer within {CONNECT_SECONDS:g} s"
            ) from None
        raise


def first_line(error: BaseException) -> str:
    """Shorten an error of Ray, which explains itself on many lines."""
    return str(error).strip().split("\n")[0]


def _wait(connecting: Future[None]) -> None:
    """Wait until it ends or the time is over, in short waits: a signal may interrupt none of them."""
    end = time.monotonic() + CONNECT_SECONDS
    while not connecting.done() and time.monotonic() < end:
        wait([connecting], min(SIGNAL_SECONDS, CONNECT_SECONDS))


def _check_reachable(address: str) -> None:
    """Raise UserError if nothing listens at an address, an error of Ray if the token is missing or wrong."""
    services: Any = sys.modules["ray._private.services"]
    is_client = "://" in (address or os.environ.get("RAY_ADDRESS", ""))
    found = None if is_client else services.canonicalize_bootstrap_address(address or "auto")
    if found is None:
        return
    host, _, port = found.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except OSError as error:
        why = (
            f"no connection within {REACH_SECONDS:g} s" if isinstance(error, TimeoutError) else error.strerror
        )
        raise _no_cluster(address, why or str(error)) from None
    is_given = any(map(os.environ.get, ("RAY_ADDRESS", "RAY_AUTH_MODE")))
    _check_token(found, uses_any_token=not (address or is_given))


def _check_token(found: str, *, uses_any_token: bool) -> None:
    """Raise the error of Ray if the token is missing or wrong: `ray.init` tries it again for 20 seconds."""
    tokens: Any = sys.modules.get("ray._private.authentication.authentication_token_setup")
    if tokens is None:  # a version of Ray without tokens
        return
    if uses_any_token and tokens.AuthenticationTokenLoader.instance().has_token(ignore_auth_mode=True):
        return  # `ray.init` begins to use the token that it finds
    # Without this check a missing token ends the process.
    tokens.ensure_token_if_auth_enabled(None, create_token_if_missing=False)
    sys.modules["ray._raylet"].GcsClient(address=found, cluster_id=None)


def _no_cluster(address: str, why: str) -> UserError:
    return UserError(
        f"--on ray: no Ray cluster at {_shown(address)}: {why}",
        expected="a node of a running cluster (`ray start`) with the same versions of Ray and Python"
        " and the same RAY_AUTH_MODE",
    )


def _shown(address: str) -> str:
    return address or os.environ.get("RAY_ADDRESS") or "this machine"


def _is_about_token(error: BaseException | None) -> bool:
    """Whether an error of Ray, or its cause, is about the token; old versions of Ray have no type for it."""
    while error is not None:
        if type(error).__name__ == "AuthenticationError" or "InvalidAuthToken" in str(error):
            return True
        error = error.__cause__
    return False


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let the first Ctrl-C end a wait in an event loop, which otherwise handles it after the wait."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before in (None, signal.SIG_IGN):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
