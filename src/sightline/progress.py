"""Progress of long work on standard error: a bar on a terminal, else a line at times."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

LINE_SECONDS = 30.0

Advance = Callable[[int], None]
"""Says that so much more is done."""


@contextmanager
def progress(
    title: str,
    total: int | None,
    unit: Literal["bytes", "images", "texts", "examples", "steps"],
    *,
    done: int = 0,
    shown: bool,
) -> Iterator[Advance]:
    """Show how far a piece of work is, beginning at `done`; nothing where not `shown`."""
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(title, total, unit, done) as advance:
            yield advance
    else:
        yield _lines(title, total, unit, done)


@contextmanager
def _bar(title: str, total: int | None, unit: str, done: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    counted = (DownloadColumn(), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    columns = (TextColumn("{task.description}"), BarColumn(), *counted, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, completed=done)
        yield lambda more: bar.advance(task, more)


def _lines(title: str, total: int | None, unit: str, done: int) -> Advance:
    spoke = time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, spoke
        done += more
        if time.monotonic() - spoke >= LINE_SECONDS:
            spoke = time.monotonic()
            of = f" of {total:,}" if total else ""
            print(f"{title}: {done:,}{of} {unit}", file=sys.stderr, flush=True)

    return advance
