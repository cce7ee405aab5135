"""The connection of this process to a Ray cluster, shared by all that use it at the same time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec import Struct, field

from sightline.errors import UserError, needs_extra
from sightline.replicas.on_ray import node_entry
from sightline.replicas.on_ray.connecting import connect

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
    """Tell whether an actor is lost because its node is, which no request of the actor can be the reason for."""
    return bool(getattr(error, "preempted", False)) or "its node has died" in str(error)


def _open(ray: Any, address: str) -> Connection:
    closing = ExitStack()
    own = not ray.is_initialized()
    if own:
        closing.enter_context(_opened(ray, address))
    ray.cloudpickle.register_pickle_by_value(node_entry)
    return Connection(ray, closing, own)


@contextmanager
def _opened(ray: Any, address: str) -> Iterator[None]:
    # Ray prints what changes in its next versions, and this variable selects the new behaviour.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    connect(ray, address)
    # Ray prints the logs of lost nodes on standard output, and no setting prevents it; what is lost is
    # reported where it is used.
    worker: Any = sys.modules["ray._private.worker"]
    prints = worker.print_to_stdstream
    worker.print_to_stdstream = _discard
    try:
        yield
    finally:
        ray.shutdown()
        worker.print_to_stdstream = prints


def _discard(*arguments: Any, **options: Any) -> None:
    """Print nothing."""
