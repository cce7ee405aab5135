"""Work spread over processes that end with their parent and whose death is told, never waited for."""

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

Task = TypeVar("Task")
Found = TypeVar("Found")


def spread(do: Callable[[Task], Found], tasks: Sequence[Task], processes: int) -> Generator[Found]:
    """What `do` makes of each task, as it comes: in this process for one, else in fresh (spawned) ones.

    `do`, tasks and results must be picklable. EnvironmentFailedError where a process dies. Where this ends early,
    for whatever reason, the processes are ended in the middle of their work.
    """
    if processes == 1 or len(tasks) < 2:
        yield from map(do, tasks)
        return
    spawn = multiprocessing.get_context("spawn")
    lifeline, held = spawn.Pipe(duplex=False)
    pool = ProcessPoolExecutor(min(processes, len(tasks)), spawn, _follow_parent, (lifeline,))
    waiting: set[Future[Found]] = set()
    try:
        for task in tasks:
            if len(waiting) >= 2 * processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from _results(ready)
            with _ctrl_c_held_back():
                waiting.add(pool.submit(do, task))
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from _results(ready)
    except BrokenProcessPool:
        raise EnvironmentFailedError(
            "a process that builds has died (killed, or out of memory: fewer --processes need less); "
            "what is finished is kept, the same command goes on"
        ) from None
    finally:
        held.close()
        pool.shutdown(cancel_futures=True)
        lifeline.close()


def _results(ready: set[Future[Found]]) -> Iterator[Found]:
    """Results first: where a process died, those that others finished are not lost."""
    yield from (future.result() for future in ready if future.exception() is None)
    for future in ready:
        future.result()


@contextmanager
def _ctrl_c_held_back() -> Iterator[None]:
    """Ctrl-C comes at the end; processes that start meanwhile never get it, not even while they load."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _follow_parent(lifeline: Connection) -> None:
    """In a fresh process: end when the parent lets go of the other end of the line, or ends in any way."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def follow() -> None:
        lifeline.poll(None)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
