"""What a run says about its batches while it waits for them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from sightline.models.batch.client import Batch


class BatchProgress:
    """The state of the batches that a process follows, as one short text."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._batches: dict[int, Batch] = {}
        self._ended = 0
        self._event = ""

    def say(self, event: str) -> None:
        """Say what goes on besides the waiting."""
        self._event = event
        self._update()

    def see(self, number: int, batch: Batch) -> None:
        """Show a batch as the provider describes it now."""
        self._batches[number] = batch
        self._update()

    def done(self, number: int) -> None:
        """Count a batch whose results were read."""
        self._ended += self._batches.pop(number, None) is not None
        self._update()

    def end(self) -> None:
        """Show nothing any more."""
        self._batches.clear()
        self._ended, self._event = 0, ""
        self._update()

    def _update(self) -> None:
        batches = list(self._batches.values())
        parts = [self._event] if self._event else []
        if batches:
            states = Counter(batch.status for batch in batches)
            if self._ended:
                states["ended"] = self._ended
            states_text = ", ".join(f"{count} {state}" for state, count in states.items())
            total = sum(batch.counts.total for batch in batches)
            done = sum(batch.counts.completed + batch.counts.failed for batch in batches)
            parts.append(f"batches: {states_text}; {done:,} of {total:,} lines")
            if oldest := min((batch.created for batch in batches if batch.created), default=0.0):
                minutes = max(0, int(time.time() - oldest)) // 60
                parts.append(f"{minutes // 60}:{minutes % 60:02} h old")
        self._show(", ".join(parts))
