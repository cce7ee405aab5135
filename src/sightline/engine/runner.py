"""Asks what is not yet known: de-duplicates, schedules, retries, remembers.

A request is asked at most once per key, whoever wants it: keys seen before in this run or in the store are
not sent, and what another process on the same store is asking is waited for.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from typing import NamedTuple

from msgspec import Struct, field

from sightline.engine.budget import Budget
from sightline.engine.committer import Committer
from sightline.engine.limiter import PATIENCE, HostGone, Limiter
from sightline.engine.store import LEASE_SECONDS, Entry, Store
from sightline.engine.threads import run_in_thread
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.types import Answer, Failure, Request

CHUNK = 64
REVISIT_SECONDS = 0.2
"""How often what another process is asking is looked at again."""
MAX_FAILURES = 8
MAX_REFUSALS = 30
"""How often one call may fail, or be refused for want of room, before it counts as failed."""
BACKOFF_SECONDS = 0.2
MAX_BACKOFF_SECONDS = 30.0


class Keyed(NamedTuple):
    """A request and its canonical JSON, which the store keeps beside the answer."""

    request: Request
    canonical: bytes


class Counts(Struct):
    """What has happened so far; progress reads it while the run goes on."""

    total: int = 0
    known: int = 0
    asked: int = 0
    answered: int = 0
    failed: int = 0
    retried: int = 0
    refused: int = 0
    in_flight: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    dearest: float = 0.0
    stopped: str = ""
    """Why asking ended early ('' where it did not): `budget` or `host`."""
    last_error: str = ""
    lost: list[str] = field(default_factory=list)
    """Why some of several addresses were not used at all."""
    opening: str = ""  # The model that is being got ready, which may take minutes.

    @property
    def done(self) -> int:
        """Distinct requests that need no more work."""
        return self.known + self.answered + self.failed

    def plus(self, later: Counts) -> Counts:
        """What has happened in both; the budget is the reason where either was stopped by it."""
        stops = (self.stopped, later.stopped)
        return Counts(
            total=self.total + later.total,
            known=self.known + later.known,
            asked=self.asked + later.asked,
            answered=self.answered + later.answered,
            failed=self.failed + later.failed,
            retried=self.retried + later.retried,
            refused=self.refused + later.refused,
            prompt_tokens=self.prompt_tokens + later.prompt_tokens,
            completion_tokens=self.completion_tokens + later.completion_tokens,
            cost=self.cost + later.cost,
            dearest=max(self.dearest, later.dearest),
            stopped="budget" if "budget" in stops else self.stopped or later.stopped,
            last_error=later.last_error or self.last_error,
            lost=[*self.lost, *later.lost],
        )


class _Call(Struct):
    keyed: Keyed
    sent: int = 0
    refused: int = 0


class Runner:
    """Asks the requests of one model (at one or several hosts) and remembers what comes of them."""

    def __init__(
        self,
        store: Store,
        models: Sequence[Model],
        limiters: Mapping[str, Limiter],
        *,
        concurrency: int,
        budget: Budget,
        counts: Counts,
        retry_errors: bool = False,
        jitter: random.Random | None = None,
    ) -> None:
        self._store = store
        self._models = models
        self._limiters = limiters
        self._concurrency = concurrency
        self._budget = budget
        self._counts = counts
        self._retry_errors = retry_errors
        self._jitter = jitter or random.Random()
        self._planned: set[str] = set()
        self._elsewhere: dict[str, Keyed] = {}
        self._failing: dict[str, tuple[_Call, Failure]] = {}

    async def ask(self, requests: Iterable[Keyed]) -> None:
        """Ask all that is not known. Raises EnvironmentFailedError where the store fails.

        Ends early, with `counts.stopped` set, where the budget is spent or every host is gone. Cancelled,
        it keeps everything answered so far.
        """
        self._queue: asyncio.Queue[_Call] = asyncio.Queue()
        self._room = asyncio.Semaphore(CHUNK + sum(2 * self._width(model) for model in self._models))
        self._admitted = self._counts.asked
        self._outstanding = 0
        self._planning = True
        self._filling = True
        self._news = asyncio.Event()
        self._work_found = asyncio.Event()
        self._settled = asyncio.Event()
        self._finished = asyncio.Event()
        self._committer = Committer(self._store, self._committed)
        try:
            async with AsyncExitStack() as entered, asyncio.TaskGroup() as tasks:
                started = [
                    tasks.create_task(self._plan(iter(requests))),
                    tasks.create_task(self._keep_claims()),
                ]
                await self._work_found.wait()
                if not self._finished.is_set():
                    workers = [
                        tasks.create_task(self._work(model, self._limiters[model.host]))
                        for model in await self._enter(entered)
                        for _ in range(self._calls_at_a_time(model))
                    ]
                    started += [*workers, tasks.create_task(self._watch(workers))]
                    await self._finished.wait()
                for task in started:
                    task.cancel()
        except ExceptionGroup as group:
            raise _first(group) from None
        finally:
            await self._committer.close()

    def _calls_at_a_time(self, model: Model) -> int:
        wanted = max(1, self._concurrency // model.batch_size)
        return wanted if model.parallel is None else min(wanted, model.parallel)

    def _width(self, model: Model) -> int:
        return max(self._concurrency, model.batch_size)

    async def _enter(self, entered: AsyncExitStack) -> list[Model]:
        """The models that can be used. Raises UserError where none can."""
        usable: list[Model] = []
        errors: list[UserError] = []
        for model in self._models:
            self._counts.opening = model.name
            try:
                usable.append(await entered.enter_async_context(model))
            except UserError as error:
                errors.append(error)
        self._counts.opening = ""
        if not usable:
            raise errors[0]
        self._counts.lost += map(str, errors)
        return usable

    # What is to be asked

    async def _plan(self, requests: Iterator[Keyed]) -> None:
        """Put what is not known in the queue, never more of it than is soon asked."""
        loop = asyncio.get_running_loop()
        revisit = loop.time() + REVISIT_SECONDS
        # Planning hashes images and reads the store: in a thread, chunk by chunk.
        while chunk := await run_in_thread(lambda: list(islice(requests, CHUNK))):
            new = {keyed.request.key: keyed for keyed in chunk if keyed.request.key not in self._planned}
            self._planned.update(new)
            if self._elsewhere and loop.time() >= revisit:
                revisit = loop.time() + REVISIT_SECONDS
                new |= self._take_elsewhere()
            if not await self._take(new):
                break
        while self._elsewhere and not self._counts.stopped:
            self._lull()
            await asyncio.sleep(REVISIT_SECONDS)
            await self._take(self._take_elsewhere())
        self._planning = False
        self._lull()
        self._check_finished()

    def _take_elsewhere(self) -> dict[str, Keyed]:
        waiting, self._elsewhere = self._elsewhere, {}
        return waiting

    async def _take(self, new: Mapping[str, Keyed]) -> bool:
        """Queue what nobody knows and nobody else is asking; False where the budget ends that."""
        unknown = await self._unknown(new)
        if not unknown:
            return True
        mine = await self._committer.run(self._store.claim, list(unknown))
        self._elsewhere.update((key, keyed) for key, keyed in unknown.items() if key not in mine)
        # Looked up once more: between the first look and the claim another process may have answered.
        for keyed in (await self._unknown({key: unknown[key] for key in unknown if key in mine})).values():
            if not await self._admit():
                return False
            self._put(_Call(keyed))
            self._work_found.set()
        return True

    async def _unknown(self, wanted: Mapping[str, Keyed]) -> dict[str, Keyed]:
        known = await run_in_thread(self._store.known, list(wanted))
        unknown = {
            key: keyed for key, keyed in wanted.items() if not is_settled(known.get(key), self._retry_errors)
        }
        self._counts.known += len(wanted) - len(unknown)
        return unknown

    async def _admit(self) -> bool:
        """Wait until one more request may be outstanding; False where the budget is spent."""
        if self._room.locked():
            self._lull()
        await self._room.acquire()
        while not self._budget.allows(self._admitted, self._outstanding, self._counts):
            if self._outstanding == 0:
                self._counts.stopped = "budget"
                return False
            self._lull()
            self._settled.clear()
            await self._settled.wait()
        self._filling = True
        self._admitted += 1
        self._outstanding += 1
        return True

    def _put(self, call: _Call) -> None:
        self._queue.put_nowait(call)
        self._news.set()

    def _lull(self) -> None:
        """Nothing more comes until some are answered: who waits for a full batch waits in vain."""
        self._filling = False
        self._news.set()

    async def _keep_claims(self) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 5)
            await self._committer.run(self._store.renew)

    # Asking

    async def _work(self, model: Model, limiter: Limiter) -> None:
        while True:
            try:
                await limiter.room()
            except HostGone:
                return
            calls = await self._batch(model.batch_size)
            if not limiter.try_acquire():
                for call in calls:
                    self._put(call)
                continue
            try:
                results = await self._send(model, calls)
            except BaseException:
                limiter.release()
                raise
            _tell(limiter, results)

    async def _batch(self, size: int) -> list[_Call]:
        """As many calls as the model takes; fewer only where no more are coming for now."""
        calls = [await self._queue.get()]
        while len(calls) < size:
            if not self._queue.empty():
                calls.append(self._queue.get_nowait())
            elif self._filling:
                self._news.clear()
                await self._news.wait()
            else:
                break
        return calls

    async def _send(self, model: Model, calls: Sequence[_Call]) -> list[Answer | Failure]:
        """Ask the model, and see to what comes of each call as soon as it does; returns all of it."""
        counts = self._counts
        counts.asked += sum(call.sent == 0 for call in calls)
        counts.in_flight += len(calls)
        waiting = dict(enumerate(calls))
        results: list[Answer | Failure] = []
        for call in calls:
            call.sent += 1
        try:
            async for index, result in model.answer([call.keyed.request for call in calls]):
                counts.in_flight -= 1
                results.append(result)
                self._take_result(waiting.pop(index), result)
        finally:
            counts.in_flight -= len(waiting)
        for call in waiting.values():
            results.append(Failure("transient", f"{model.name} gave no answer to this request"))
            self._take_result(call, results[-1])
        return results

    def _take_result(self, call: _Call, result: Answer | Failure) -> None:
        if isinstance(result, Answer):
            self._on_answer(result)
        elif self._ask_again(call, result):
            self._failing[call.keyed.request.key] = (call, result)
            return
        self._settle(call, result)

    def _settle(self, call: _Call, result: Answer | Failure) -> None:
        self._failing.pop(call.keyed.request.key, None)
        self._committer.add(Entry(call.keyed.request.key, call.keyed.canonical, result))
        self._outstanding -= 1
        self._settled.set()
        self._check_finished()

    def _on_answer(self, answer: Answer) -> None:
        counts = self._counts
        counts.answered += 1
        counts.prompt_tokens += answer.usage.prompt_tokens or 0
        counts.completion_tokens += answer.usage.completion_tokens or 0
        cost = self._budget.price(answer.usage)
        counts.cost += cost
        counts.dearest = max(counts.dearest, cost)

    def _ask_again(self, call: _Call, failure: Failure) -> bool:
        """Whether a call that failed is sent again, after a while. Being refused says little of the call."""
        self._counts.last_error = failure.message
        if _is_refusal(failure):
            call.refused += 1
            self._counts.refused += 1
        often = call.refused > MAX_REFUSALS or call.sent - call.refused >= MAX_FAILURES
        delay = self._delay(call.sent, failure)
        if failure.kind != "transient" or often or delay > PATIENCE:
            self._counts.failed += 1
            return False
        self._counts.retried += 1
        asyncio.get_running_loop().call_later(delay, self._put, call)
        return True

    def _delay(self, sent: int, failure: Failure) -> float:
        """Seconds until the next attempt: doubling, with full jitter, never before the host allows."""
        backoff = min(MAX_BACKOFF_SECONDS, BACKOFF_SECONDS * 2 ** min(sent - 1, 16))
        jittered: float = backoff * self._jitter.uniform(0.5, 1.0)
        return max(jittered, failure.retry_after or 0.0)

    # The end

    def _committed(self, entries: int) -> None:
        """What is in the store makes room for more to be asked; where the store fails, asking is over."""
        for _ in range(entries):
            self._room.release()
        if self._committer.error is not None:
            self._finish()

    def _check_finished(self) -> None:
        if not self._planning and self._outstanding == 0:
            self._finish()

    def _finish(self) -> None:
        self._finished.set()
        self._work_found.set()

    async def _watch(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """When every host is gone asking is over, and what was to be asked once more has failed."""
        await asyncio.wait(workers)
        for call, failure in list(self._failing.values()):
            self._counts.retried -= 1
            self._counts.failed += 1
            self._settle(call, failure)
        self._counts.stopped = self._counts.stopped or "host"
        self._finish()


def is_settled(prior: Answer | Failure | None, retry_errors: bool) -> bool:
    """Whether what is known of a request is not asked again."""
    if isinstance(prior, Failure):
        return prior.kind != "transient" and not retry_errors
    return prior is not None


def _is_refusal(failure: Failure) -> bool:
    return failure.status == 429 or (failure.status in (503, 529) and failure.retry_after is not None)


def _tell(limiter: Limiter, results: Sequence[Answer | Failure]) -> None:
    """What a call, or a batch of them, says about its host."""
    failures = [result for result in results if isinstance(result, Failure)]
    refusals = [failure.retry_after or 0.0 for failure in failures if _is_refusal(failure)]
    if refusals:
        limiter.was_refused(max(refusals) or None)
    elif len(failures) < len(results) or any(failure.kind != "transient" for failure in failures):
        limiter.succeeded()
    else:
        limiter.failed()


def _first(group: BaseExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
