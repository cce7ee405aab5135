"""The connection of this process to a Ray cluster, shared by all that use it at the same time."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sightline.errors import UserError
from sightline.replicas.on_ray import node_entry

_lock = threading.Lock()
_open: list[str] = []
"""The address of each user of the connection that this module opened."""


def import_ray() -> Any:
    """Import Ray.

    Returns:
        The module.

    Raises:
        UserError: It is not installed.
    """
    try:
        import ray
    except ImportError:
        raise UserError("--on ray needs Ray", expected="pip install 'sightline[cluster]'") from None
    return ray


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to a cluster; a connection that the caller's program opened is used and left open.

    Args:
        address: HOST:PORT; '' for RAY_ADDRESS, or the cluster that runs on this machine.

    Yields:
        The module `ray`.

    Raises:
        UserError: There is no cluster, it cannot be reached, or this process uses another one.
    """
    ray = import_ray()
    with _lock:
        own = bool(_open) or not ray.is_initialized()
        if _open and address not in _open:
            raise UserError(
                f"--on ray:{address}: one command can use one Ray cluster", found=_open[0] or "ray"
            )
        if own and not _open:
            _connect(ray, address)
        if own:
            _open.append(address)
    try:
        yield ray
    finally:
        with _lock:
            if own:
                _open.remove(address)
                if not _open:
                    ray.shutdown()


def losses(ray: Any) -> tuple[type[Exception], ...]:
    """Name the errors that say that a worker, an actor, a node or a finished result is lost.

    Args:
        ray: The module.

    Returns:
        The types.
    """
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.WorkerCrashedError,
        errors.NodeDiedError,
        errors.ObjectLostError,
        errors.OutOfMemoryError,
    )


def first_line(error: Exception) -> str:
    """Shorten an error of Ray, which explains itself on many lines.

    Args:
        error: The error.

    Returns:
        Its first line.
    """
    return str(error).strip().split("\n")[0]


def _connect(ray: Any, address: str) -> None:
    # Ray prints what changes in its next versions, and this variable selects the new behaviour.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        with _signal_handlers_kept():
            ray.init(address or "auto", log_to_driver=False, logging_level="critical")
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise UserError(
            f"--on ray: no Ray cluster at {address or os.environ.get('RAY_ADDRESS') or 'this machine'}: "
            f"{first_line(error)}",
            expected="a node of a running cluster (`ray start`) with the same versions of Ray and Python",
        ) from None
    # Ray prints the logs of lost nodes on standard output; what is lost is reported where it is used.
    worker: Any = sys.modules["ray._private.worker"]
    worker.print_to_stdstream = _discard
    ray.cloudpickle.register_pickle_by_value(node_entry)


def _discard(*arguments: Any, **options: Any) -> None:
    """Print nothing."""


@contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Undo the change of the handler of SIGTERM: this command has its own."""
    import signal

    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)
