"""Connects this process to a Ray cluster: an error soon where there is none, and Ctrl-C works meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any

from sightline.errors import UserError

REACH_SECONDS = 5.0
"""How long the port of a cluster may take to accept a connection."""

CONNECT_SECONDS = 60.0
"""How long Ray may take to connect to a cluster whose port accepts connections."""

WAIT_SECONDS = 0.2
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
        wait([connecting], min(WAIT_SECONDS, CONNECT_SECONDS))


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
