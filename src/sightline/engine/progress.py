"""Progress of asking: a bar with rate, time left, errors and tokens on a terminal, else a line at times."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sightline.engine.runner import Counts

TICK_SECONDS = 0.25
LINE_SECONDS = 30.0


class Progress:
    """Shows counts while they change, on standard error; nothing where not `shown`."""

    def __init__(self, title: str, *, shown: bool) -> None:
        self._title = title
        self._shown = shown

    @contextlib.asynccontextmanager
    async def of(self, counts: Counts) -> AsyncIterator[None]:
        """Show these counts inside the block."""
        if not self._shown:
            yield
            return
        show = self._bar if sys.stderr.isatty() else self._lines
        task = asyncio.create_task(show(counts))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _bar(self, counts: Counts) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[words]}"),
        )
        began = time.monotonic()
        with Bar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(self._title, total=counts.total or None, words="")
            try:
                while True:
                    bar.update(task, completed=counts.done, words=_words(counts, began))
                    await asyncio.sleep(TICK_SECONDS)
            finally:
                bar.update(task, completed=counts.done, total=counts.done, words=_words(counts, began))

    async def _lines(self, counts: Counts) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(LINE_SECONDS)
            total = f"/{counts.total}" if counts.total else ""
            print(f"{self._title}: {counts.done}{total} {_words(counts, began)}", file=sys.stderr, flush=True)


def _words(counts: Counts, began: float) -> str:
    """Rate, time left, what is known already, failures, tokens: short, for a line of 80 columns."""
    if counts.opening:
        return f"getting {counts.opening} ready"
    seconds = max(time.monotonic() - began, 1e-3)
    rate = (counts.answered + counts.failed) / seconds
    left = counts.total - counts.done
    parts = [f"{rate:.0f}/s"]
    if rate and left > 0:
        parts.append(f"{_clock(left / rate)} left")
    numbers = (
        (counts.known, "known"),
        (counts.failed, "failed"),
        (counts.refused, "refused"),
        (counts.retried - counts.refused, "retries"),
    )
    parts += [f"{number:,} {word}" for number, word in numbers if number > 0]
    if tokens := counts.prompt_tokens + counts.completion_tokens:
        parts.append(f"{_short(tokens)} tokens")
    if not counts.answered and counts.last_error:
        parts.append(f"last error: {counts.last_error[:60]}")
    if counts.cost:
        parts.append(f"cost {counts.cost:.2f}")
    return ", ".join(parts)


def _short(number: int) -> str:
    """A number in thousands or millions where it is large."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= 10 * size:
            return f"{number / size:.0f}{letter}"
    return str(number)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
