"""Blocking steps of a run execute in threads, so the event loop stays free; cancellation stops them."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import pkgutil
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline import plugins
from sightline.errors import UserError
from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Failure, Request
from training.scenes.build import generate_codis

PAIRS = 40
SECONDS = 20.0
"""How long a blocked loop may keep a test waiting before it fails."""

BLOCKING = (
    "sightline.benchmarks.codis.benchmark.Codis.samples",
    "sightline.benchmarks.codis.benchmark.Codis.probes",
    "sightline.store.store.inspect_found",
    "sightline.store.store.Store.open",
    "sightline.store.store.Store.close",
    "sightline.store.answers.Answers.look_up",
    "sightline.store.runs.Runs.add_probes",
    "sightline.evaluation.prepare.Surveyor.add",
    "sightline.evaluation.result.aggregate",
    "sightline.evaluation.run.prepare_evaluation",
    "sightline.evaluation.judges.ModelJudge.request",
    "sightline.store.answers.RequestFrame.draws",
    "sightline.evaluation.folder.ResultsFolder.write",
    "sightline.evaluation.folder.ResultsFolder.finish",
    "sightline.formats.jsonl.read_outcomes",
)
"""Functions that hash, read, write or count."""


class Yes(OfflineModel):
    """Answers yes."""

    capabilities = Capabilities()

    def __init__(self, name: str) -> None:
        self.name = self.identity = self.host = name

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, _ in enumerate(requests):
            yield index, Answer("yes", finish_reason="stop")


@pytest.fixture(autouse=True)
def _models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    models = {name: lambda *_, name=name: [Yes(name)] for name in ("yes", "judge")}
    monkeypatch.setattr(plugins, "plugged_in", {**plugins.plugged_in, "models": models})
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_codis(tmp_path_factory.mktemp("synthetic") / "codis", pairs=PAIRS)


def run(data: Path, **options: Any) -> Any:
    return sightline.arun(
        "codis", model="yes", judge=["judge", "rules"], data=data, store="s.db", out="results", **options
    )


def wrapped(function: Any, before: Callable[[], None]) -> Any:
    """The function, preceded by a call of `before`."""
    if isinstance(function, classmethod):
        return classmethod(wrapped(function.__func__, before))

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before()
        return function(*args, **kwargs)

    return call


def patch(monkeypatch: pytest.MonkeyPatch, path: str, before: Callable[[], None]) -> None:
    owner_path, _, name = path.rpartition(".")
    owner: Any = pkgutil.resolve_name(owner_path)
    monkeypatch.setattr(owner, name, wrapped(vars(owner)[name], before))


def on_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


@contextlib.asynccontextmanager
async def ticking(ticked: threading.Event) -> AsyncIterator[None]:
    """Set the event every millisecond, from a task of the loop, while the block runs."""

    async def tick() -> None:
        while True:
            ticked.set()
            await asyncio.sleep(0.001)

    task = asyncio.create_task(tick())
    try:
        yield
    finally:
        task.cancel()


@pytest.mark.parametrize("path", BLOCKING)
def test_the_loop_ticks_while_a_step_blocks(codis: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """The first call of each step does not return before the loop has run another task."""
    ticked, calls = threading.Event(), []

    def wait_for_a_tick() -> None:
        calls.append(on_loop())
        if len(calls) == 1:
            ticked.clear()
            assert ticked.wait(SECONDS), f"{path} blocks the event loop"

    patch(monkeypatch, path, wait_for_a_tick)

    async def main() -> Any:
        async with ticking(ticked):
            return await run(codis)

    assert asyncio.run(main()).result.errors == 0
    assert calls
    assert not any(calls)


def test_scoring_blocks_no_event_loop_either(codis: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(run(codis))
    calls: list[bool] = []
    for path in BLOCKING[:2] + BLOCKING[-2:]:
        patch(monkeypatch, path, lambda: calls.append(on_loop()))
    from sightline.evaluation.score import score_file
    from sightline.evaluation.spec import Spec

    asyncio.run(score_file(Spec(task="codis", data=str(codis), out="scored"), "results/answers.jsonl"))
    assert calls
    assert not any(calls)


@pytest.mark.parametrize("step", ["judged", "counted"])
def test_a_run_cancelled_while_it_aggregates_keeps_its_answers_and_writes_no_file(
    codis: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = {
        "judged": "sightline.evaluation.folder.ResultsFolder.write",
        "counted": "sightline.evaluation.result.add_published",
    }[step]
    cancelled = threading.Event()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(run(codis))

        def cancel() -> None:
            task.cancel()
            loop.call_later(0.05, cancelled.set)

        def cancel_once() -> None:
            if not cancelled.is_set():
                loop.call_soon_threadsafe(cancel)
                assert cancelled.wait(SECONDS)

        with monkeypatch.context() as patched:
            patch(patched, path, cancel_once)
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not Path("results").exists()

    asyncio.run(main())
    again = asyncio.run(run(codis))
    assert (again.counts.sent, again.judge_counts.sent) == (0, 0)
    assert again.result.probes == 2 * PAIRS
    assert Path("results/metrics.json").exists()


def test_an_interrupted_notebook_cell_sends_nothing_more_and_keeps_what_was_answered(
    codis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Interrupted(Yes):
        async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
            asked.append(requests[0].key)
            if len(asked) == PAIRS:
                os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.001 if len(asked) < PAIRS else SECONDS)
            yield 0, Answer("yes", finish_reason="stop")

    models = plugins.plugged_in["models"]
    monkeypatch.setitem(models, "yes", lambda *_: [Interrupted("yes")])

    async def cell() -> None:
        sightline.run("codis", model="yes", data=codis, store="s.db", concurrency=4)

    notebook = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt, match="run 1 has"):
        notebook.run_until_complete(cell())
    notebook.close()
    assert len(asked) <= PAIRS + 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sightline")]
    monkeypatch.setitem(models, "yes", lambda *_: [Yes("yes")])
    again = asyncio.run(run(codis))
    assert again.counts.cached >= PAIRS - 4


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an endpoint is asked, while the judge cannot be opened."""
    asked: list[str] = []

    class Paid(Yes):
        capabilities = Capabilities(endpoint=True)

        async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
            asked.append(requests[0].key)
            yield 0, Answer("yes", finish_reason="stop")

    class Gone(Yes):
        async def __aenter__(self) -> Any:
            raise UserError("no server")

    models = {"yes": lambda *_: [Paid("yes")], "judge": lambda *_: [Gone("judge")]}
    monkeypatch.setattr(plugins, "plugged_in", {**plugins.plugged_in, "models": models})
    return asked


def test_a_judge_that_cannot_be_opened_is_reported_before_the_first_answer_is_paid_for(
    codis: Path, asked: list[str]
) -> None:
    with pytest.raises(UserError, match="no server"):
        asyncio.run(run(codis))
    assert not asked


@pytest.mark.parametrize(
    ("lines", "is_needed"),
    [
        ({"r1": {"options": ["yes", "no"]}, "r2": {"options": ["yes", "no"]}}, False),
        ({"r1": {}}, False),
        ({"r1": {}, "r2": {}}, True),
        ({"r1": {"options": ["yes", "no"]}, "r2": {}}, True),
    ],
)
def test_a_judge_that_no_answer_can_reach_need_not_be_usable(
    asked: list[str], lines: dict[str, dict[str, Any]], is_needed: bool
) -> None:
    groups = [
        {"group": "g", "variant": variant, "prompt": f"Is it? {variant}", "references": ["yes"], **line}
        for variant, line in lines.items()
    ]
    Path("groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in groups))
    running = sightline.arun(
        "groups:groups.jsonl", model="yes", judge=["judge"], store="s.db", set={"embedder": "none"}
    )
    with pytest.raises(UserError, match="no server") if is_needed else contextlib.nullcontext():
        asyncio.run(running)
    assert bool(asked) != is_needed
