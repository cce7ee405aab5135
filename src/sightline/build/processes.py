"""Work spread over processes that end with their parent and whose death is told, never waited for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from sightline.errors import SurroundingsError

Task = TypeVar("Task")
Found = TypeVar("Found")


def spread(do: Callable[[Task], Found], tasks: Sequence[Task], processes: int) -> Iterator[Found]:
    """What `do` makes of each task, as it comes: in this process for one, else in fresh (spawned) ones.

    `do`, tasks and results must be picklable. SurroundingsError where a process dies.
    """
    if processes == 1 or len(tasks) < 2:
        yield from map(do, tasks)
        return
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(processes, len(tasks)), spawn, initializer=_follow_parent)
    waiting: set[Future[Found]] = set()
    whole = False
    try:
        for task in tasks:
            if len(waiting) >= 2 * processes:
                ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from _results(ready)
            waiting.add(pool.submit(do, task))
        while waiting:
            ready, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from _results(ready)
        whole = True
    except BrokenProcessPool:
        raise SurroundingsError(
            "a process that builds has died (killed, or out of memory: fewer --processes need less); "
            "what is finished is kept, the same command goes on"
        ) from None
    finally:
        pool.shutdown(wait=whole, cancel_futures=True)


def _results(ready: set[Future[Found]]) -> Iterator[Found]:
    """Results first: where a process died, those that others finished are not lost."""
    yield from (future.result() for future in ready if future.exception() is None)
    for future in ready:
        future.result()


def _follow_parent() -> None:
    """In a fresh process: leave Ctrl-C to the parent, and end when it does, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
