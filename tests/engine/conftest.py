"""What the engine's tests share: time that passes at once, requests without a benchmark, a scripted model."""

from __future__ import annotations

import asyncio
import random
import selectors
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from sightline.engine.limits import Counts, Limiter
from sightline.engine.runner import Runner, RunnerOptions
from sightline.errors import UserError
from sightline.models.base import Capabilities
from sightline.store.answers import KeyedRequest, with_key
from sightline.store.store import Store
from sightline.types import Answer, Failure, Request, Text, user

T = TypeVar("T")


class _Clock(selectors.DefaultSelector):
    """Instead of waiting it moves the time on; it waits in earnest only for what threads are doing."""

    now = 0.0
    threads = 0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0.05 if self.threads and timeout != 0 else 0)
        if not ready and not self.threads and timeout:
            self.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._clock = _Clock()
        super().__init__(self._clock)

    def time(self) -> float:
        return self._clock.now

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        future = super().run_in_executor(executor, func, *args)
        self._clock.threads += 1
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: object) -> None:
        self._clock.threads -= 1


class Scripted:
    """A model that replies what a function of (text, how often it was asked before) says, after `seconds`."""

    capabilities = Capabilities()

    def __init__(
        self,
        reply: Callable[[str, int], Answer | Failure] | None = None,
        *,
        host: str = "host",
        seconds: float = 0.0,
        batch_size: int = 1,
        absent: bool = False,
    ) -> None:
        self.name = self.identity = host
        self.host = host
        self.batch_size = batch_size
        self.parallel: int | None = None
        self.asked: list[str] = []
        self.batches: list[int] = []
        self.times: list[float] = []
        self.entered = self.left = self.peak = self.open = 0
        self._reply = reply or (lambda text, _: Answer(f"answer to {text}"))
        self._seconds = seconds
        self._absent = absent

    def effective(self, sampling: Mapping[str, Any]) -> dict[str, Any]:
        return dict(sampling)

    async def __aenter__(self) -> Scripted:
        if self._absent:
            raise UserError(f"no server answers at {self.host}")
        self.entered += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.left += 1

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        assert self.entered > self.left, "asked outside 'async with'"
        self.batches.append(len(requests))
        self.times.append(asyncio.get_running_loop().time())
        self.open += len(requests)
        self.peak = max(self.peak, self.open)
        try:
            await asyncio.sleep(self._seconds)
        finally:
            self.open -= len(requests)
        for index, request in enumerate(requests):
            text = text_of(request)
            before = self.asked.count(text)
            self.asked.append(text)
            yield index, self._reply(text, before)


def text_of(request: Request) -> str:
    part = request.messages[0].parts[0]
    assert isinstance(part, Text)
    return part.text


def keyed(text: str, *, draw: int = 0) -> KeyedRequest:
    messages = (user(text),)
    return with_key(Request("", messages, {}, draw=draw), "model")


def runner_of(store: Store, *models: Any, counts: Counts | None = None, **options: Any) -> Runner:
    """A runner of these models with what is usual, where the options do not say otherwise."""
    concurrency = options.pop("concurrency", 8)
    return Runner(
        store,
        models,
        {model.host: Limiter(model.host, concurrency) for model in models},
        RunnerOptions(concurrency, **options),
        counts if counts is not None else Counts(),
        random.Random(1),
    )


async def ask(store: Store, requests: Iterable[KeyedRequest], *models: Any, **options: Any) -> Counts:
    """Ask models, and tell what was counted."""
    counts = Counts()
    await runner_of(store, *models, counts=counts, **options).run(requests)
    return counts


@pytest.fixture(name="runner_of")
def _runner_of() -> Callable[..., Runner]:
    return runner_of


@pytest.fixture(name="ask")
def _ask() -> Callable[..., Coroutine[Any, Any, Counts]]:
    return ask


@pytest.fixture
def in_no_time() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Runs a coroutine to its end in a loop whose waits take no time."""

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            return runner.run(work)

    return run


@pytest.fixture
def scripted() -> Any:
    """The class of models that reply as they are told."""
    return Scripted


@pytest.fixture
def asking() -> Callable[..., list[KeyedRequest]]:
    """Requests with the texts given."""
    return lambda *texts: [keyed(str(text)) for text in texts]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(str(tmp_path / "store.db"))
    yield store
    store.close()
