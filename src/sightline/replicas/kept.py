"""Replicas that go on running while nobody asks: between points of a sweep, between a judge's attempts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from contextvars import ContextVar

from sightline.replicas.fleet import Fleet

_kept: ContextVar[dict[Hashable, Fleet] | None] = ContextVar("kept", default=None)
"""The idle fleet by what it is, at most one; None outside `replicas_kept`."""


@asynccontextmanager
async def replicas_kept() -> AsyncIterator[None]:
    """Keep the replicas that were used last, until other ones are needed or the outermost context ends.

    Other ones may need the nodes of those that are idle, so only one fleet waits.
    """
    if _kept.get() is not None:
        yield
        return
    idle: dict[Hashable, Fleet] = {}
    token = _kept.set(idle)
    try:
        yield
    finally:
        _kept.reset(token)
        await _end_all(idle)


async def take_fleet(key: Hashable, new: Fleet) -> Fleet:
    """Take the kept fleet of a key, or start a new one.

    Args:
        new: The fleet that is started if none is kept.
    """
    idle = _kept.get()
    if idle:
        if key in idle and idle[key].is_running:
            return idle.pop(key)
        await _end_all(idle)
    await new.start()
    return new


async def leave_fleet(key: Hashable, fleet: Fleet) -> None:
    """End a fleet, or keep it for the next evaluation."""
    idle = _kept.get()
    if idle is None:
        await fleet.end()
        return
    await _end_all(idle)
    idle[key] = fleet


async def _end_all(idle: dict[Hashable, Fleet]) -> None:
    while idle:
        await idle.popitem()[1].end()
