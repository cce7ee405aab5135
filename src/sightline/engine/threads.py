"""Runs blocking work off the event loop: look-ups, hashing, counting, writing of files."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class StoppedError(Exception):
    """The work of a thread ended early because its caller was cancelled."""


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short blocking function in a thread while the event loop goes on.

    A cancelled caller waits until the function has ended: nothing is closed while the thread uses it.
    """
    return await _run(lambda: function(*args, **kwargs), threading.Event())


async def run_until_cancelled(function: Callable[[threading.Event], T]) -> T:
    """Run a long blocking function in a thread, and ask it to stop when the caller is cancelled."""
    stop = threading.Event()
    return await _run(lambda: function(stop), stop)


def until_set(items: Iterable[T], stop: threading.Event) -> Iterator[T]:
    for item in items:
        raise_if_set(stop)
        yield item


def raise_if_set(stop: threading.Event) -> None:
    """End the work of a thread if an event is set."""
    if stop.is_set():
        raise StoppedError


async def _run(function: Callable[[], T], stop: threading.Event) -> T:
    future = asyncio.get_running_loop().run_in_executor(None, function)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([future])
        if not future.cancelled():
            future.exception()  # Otherwise asyncio logs that nobody retrieved it.
        raise
