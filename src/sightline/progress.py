"""Progress of long work on standard error: a bar on a terminal, otherwise a line every 30 seconds."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from sightline.errors import visible
from sightline.text import print_note

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

LINE_SECONDS = 30.0
REFRESH_SECONDS = 0.25

Unit = Literal["bytes", "images", "texts", "examples", "steps", "pages", "rows", "samples"]
Advance = Callable[[int], None]
"""Reports how many more units are done."""


class RequestCounts(Protocol):
    """The counts of requests to a model, which the engine changes while progress displays them."""

    total: int
    cached: int
    answered: int
    failed: int
    retried: int
    refused: int
    last_error: str
    loading: str
    waiting: str

    @property
    def done(self) -> int:
        """Requests that need no more work."""

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens of the answers."""

    @property
    def cost(self) -> float:
        """Cost of the answers."""


@contextmanager
def progress(
    title: str, total: int | None, unit: Unit, *, done: int = 0, show_progress: bool
) -> Iterator[Advance]:
    """Display the progress of a loop that reports each step; a `total` of None is unknown."""
    if not show_progress:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _unit_bar(unit) as bar:
            task = bar.add_task(visible(title), total=total, completed=done)
            yield lambda more: bar.advance(task, more)
    else:
        yield _line_printer(title, total, unit, done)


@asynccontextmanager
async def request_progress(title: str, counts: RequestCounts, *, show_progress: bool) -> AsyncIterator[None]:
    """Display counts of requests while other tasks of the event loop change them."""
    if not show_progress:
        yield
        return
    display = _display_bar if sys.stderr.isatty() else _display_lines
    task = asyncio.create_task(display(title, counts))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _unit_bar(unit: Unit) -> Progress:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    counted = (DownloadColumn(), TransferSpeedColumn()) if unit == "bytes" else (MofNCompleteColumn(),)
    return _bar(BarColumn(), *counted, TimeRemainingColumn())


def _bar(*columns: ProgressColumn) -> Progress:
    from rich.console import Console
    from rich.progress import Progress

    return Progress(_text_column("description"), *columns, console=Console(stderr=True))


def _text_column(field: str) -> ProgressColumn:
    """A column of a text about the task, in which brackets are no markup."""
    from rich.progress import TextColumn

    return TextColumn(f"{{task.{field}}}", markup=False)


def _line_printer(title: str, total: int | None, unit: Unit, done: int) -> Advance:
    printed = time.monotonic()

    def advance(more: int) -> None:
        nonlocal done, printed
        done += more
        if time.monotonic() - printed >= LINE_SECONDS:
            printed = time.monotonic()
            of = f" of {total:,}" if total else ""
            print_note(f"{title}: {done:,}{of} {unit}")

    return advance


class _Start(NamedTuple):
    """When a display began, and how many requests had a result by then."""

    time: float
    results: int


def _start(counts: RequestCounts) -> _Start:
    return _Start(time.monotonic(), counts.answered + counts.failed)


async def _display_bar(title: str, counts: RequestCounts) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn

    start = _start(counts)
    with _bar(BarColumn(bar_width=16), MofNCompleteColumn(), _text_column("fields[status]")) as bar:
        task = bar.add_task(visible(title), total=counts.total or None, status="")
        try:
            while True:
                bar.update(task, completed=counts.done, status=_status(counts, start))
                await asyncio.sleep(REFRESH_SECONDS)
        finally:
            bar.update(task, completed=counts.done, total=counts.done, status=_status(counts, start))


async def _display_lines(title: str, counts: RequestCounts) -> None:
    start = _start(counts)
    while True:
        await asyncio.sleep(LINE_SECONDS)
        total = f"/{counts.total}" if counts.total else ""
        print_note(f"{title}: {counts.done}{total} {_status(counts, start)}")


def _status(counts: RequestCounts, start: _Start) -> str:
    """Rate, time left, cache hits, failures and tokens: short, because a terminal has 80 columns."""
    if counts.loading:
        return visible(f"loading {counts.loading}")
    if counts.waiting:
        return visible(counts.waiting)
    seconds = max(time.monotonic() - start.time, 1e-3)
    rate = (counts.answered + counts.failed - start.results) / seconds
    left = counts.total - counts.done
    parts = [f"{rate:.0f}/s"]
    if rate and left > 0:
        parts.append(f"{_clock(left / rate)} left")
    numbers = (
        (counts.cached, "cached"),
        (counts.failed, "failed"),
        (counts.refused, "refused"),
        (counts.retried - counts.refused, "retries"),
    )
    parts += [f"{number:,} {word}" for number, word in numbers if number > 0]
    if tokens := counts.tokens:
        parts.append(f"{_short(tokens)} tokens")
    if not counts.answered and counts.last_error:
        parts.append(f"last error: {counts.last_error[:60]}")
    if counts.cost:
        parts.append(f"cost {counts.cost:.2f}")
    return visible(", ".join(parts))


def _short(number: int) -> str:
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= 10 * size:
            return f"{number / size:.0f}{letter}"
    return str(number)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
