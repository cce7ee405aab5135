"""What progress says while a model is got ready, which may take minutes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sightline.engine import progress
from sightline.engine.progress import Progress
from sightline.engine.runner import Counts
from sightline.engine.store import Store


@pytest.mark.parametrize("shown", [True, False])
def test_a_model_that_is_got_ready_is_named_where_progress_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    store: Store,
    scripted: Any,
    asking: Any,
    runner_of: Any,
    shown: bool,
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.02)
    counts = Counts(total=4)

    class Slow(scripted):  # type: ignore[misc]
        async def __aenter__(self) -> Any:
            await asyncio.sleep(0.1)
            return await super().__aenter__()

    async def run() -> None:
        async with Progress("codis:default", shown=shown).of(counts):
            await runner_of(store, Slow(host="slow", seconds=0.1), counts=counts).ask(asking(*range(4)))

    asyncio.run(run())
    lines = capsys.readouterr().err.splitlines()
    assert ("codis:default: 0/4 getting slow ready" in lines) == shown
    assert bool(lines) == shown
    assert not shown or "ready" not in lines[-1]
    assert counts.opening == ""
