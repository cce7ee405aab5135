"""Requests that share the answer of an equal request of the same run, and what that saves."""

from __future__ import annotations

from collections.abc import Container, Iterable

from sightline.engine.counts import Counts, EqualRequests
from sightline.types import Answer, Failure

RECENT = 16 * 1024
"""Answers whose size is remembered. An equal request that comes later counts as cached."""


class SharedAnswers:
    """Counts the requests of a run that get the answer of an equal one. Belongs to one event loop.

    Only answers that the run itself has received count: what the store answers was paid for by another run.
    """

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._waiting: dict[str, int] = {}
        self._answered: dict[str, tuple[int, float]] = {}

    def found(self, keys: Iterable[str], on_their_way: Container[str]) -> None:
        """Record requests that are equal to earlier ones."""
        for key in keys:
            if key in self._answered:
                self._add(1, *self._answered[key])
            elif key in on_their_way:
                self._waiting[key] = self._waiting.get(key, 0) + 1

    def settled(self, key: str, result: Answer | Failure, cost: float | None) -> None:
        """Record the result of a request that was sent.

        Args:
            cost: The cost of the answer; None for a failure.
        """
        waiting = self._waiting.pop(key, 0)
        if isinstance(result, Failure):
            return
        usage = result.usage
        size = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0), cost or 0.0
        self._answered[key] = size
        if len(self._answered) > RECENT:
            del self._answered[next(iter(self._answered))]
        if waiting:
            self._add(waiting, *size)

    def _add(self, requests: int, tokens: int, cost: float) -> None:
        equal = EqualRequests(requests, requests * tokens, requests * cost)
        self._counts.equal = self._counts.equal.plus(equal)
