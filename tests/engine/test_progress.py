"""Progress names the model that is being loaded, which may take minutes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sightline import progress
from sightline.engine.limits import Counts
from sightline.progress import request_progress
from sightline.store.store import Store


@pytest.mark.parametrize("show_progress", [True, False])
def test_a_model_that_is_loading_is_named_if_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    store: Store,
    scripted: Any,
    asking: Any,
    runner_of: Any,
    show_progress: bool,
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    counts = Counts(total=4)

    class Slow(scripted):  # type: ignore[misc]
        async def __aenter__(self) -> Any:
            await asyncio.sleep(0.1)
            return await super().__aenter__()

    async def run() -> None:
        async with request_progress("codis:default", counts, show_progress=show_progress):
            await runner_of(store, Slow(host="slow", seconds=0.1), counts=counts).run(asking(*range(4)))

    asyncio.run(run())
    lines = capsys.readouterr().err.splitlines()
    assert ("codis:default: 0/4 loading slow" in lines) == show_progress
    assert bool(lines) == show_progress
    assert not show_progress or "loading" not in lines[-1]
    assert counts.loading == ""


def test_the_rate_counts_what_was_answered_since_the_display_began(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A judge may have answered before: then its display begins with these answers."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)

    async def display() -> None:
        async with request_progress("judge", Counts(total=20_000, answered=10_000), show_progress=True):
            await asyncio.sleep(0.1)

    asyncio.run(display())
    assert set(capsys.readouterr().err.splitlines()) == {"judge: 10000/20000 0/s"}
