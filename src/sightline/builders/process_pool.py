"""Worker processes that end with their parent; a process that dies is an error, not an endless wait."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import TypeVar

from sightline.errors import EnvironmentFailedError

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def map_in_processes(
    function: Callable[[ItemT], ResultT], items: Sequence[ItemT], processes: int
) -> Generator[ResultT]:
    """Apply a function to items in this process, or in several fresh (spawned) ones."""
    if processes == 1 or len(items) < 2:
        yield from map(function, items)
        return
    spawn = multiprocessing.get_context("spawn")
    lifeline, parent_end = spawn.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(processes, len(items)), spawn, _exit_with_parent, (lifeline,))
    waiting: set[Future[ResultT]] = set()
    try:
        for item in items:
            if len(waiting) >= 2 * processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from _results(ready)
            with _sigint_blocked():
                waiting.add(pool.submit(function, item))
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from _results(ready)
    except BrokenProcessPool:
        raise EnvironmentFailedError(
            "a worker process has died (killed, or out of memory: fewer --processes need less memory); "
            "finished work is kept, run the same command again to continue"
        ) from None
    finally:
        parent_end.close()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


def _results(ready: set[Future[ResultT]]) -> Iterator[ResultT]:
    """Results before errors: if one process died, the results of the others are not lost."""
    yield from (future.result() for future in ready if future.exception() is None)
    for future in ready:
        future.result()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Delay Ctrl-C until the block ends; processes that start inside the block never receive it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _exit_with_parent(lifeline: Connection) -> None:
    """In a worker: exit when the parent closes its end of the pipe or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
