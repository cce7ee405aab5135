"""The runner: sends the requests that the store cannot answer, and stores the results.

A request is sent at most once per key: the selector finds what must be sent, workers send it to the models,
and the committer writes each result to the store.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import reduce

from msgspec import Struct, field

from sightline.engine.endpoint_check import EndpointCheck, Means
from sightline.engine.limits import (
    Account,
    Counts,
    HostUnavailableError,
    Limiter,
    count_answer,
    full_length_usage,
)
from sightline.engine.selector import (
    REQUESTS_PER_LOOKUP,
    Admission,
    Call,
    CallQueue,
    Committer,
    OpenModels,
    RequestFeed,
    RequestSelector,
    SharedAnswers,
    is_capacity_refusal,
    report_to,
    retry_delay,
)
from sightline.errors import UserError, some_of
from sightline.models.base import ImageTraffic, Model
from sightline.store.answers import Attempt, KeyedRequest, storable
from sightline.store.claims import Budget
from sightline.store.store import Store
from sightline.types import Answer, Failure


class RunnerOptions(Struct, frozen=True):
    """How requests are sent; `check_budget` has the price of checks of endpoints, None: `budget`."""

    concurrency: int
    budget: Budget = field(default_factory=Budget)
    account: Account = field(default_factory=Account)
    retry_errors: bool = False
    in_batches: bool = False
    check_budget: Budget | None = None


class Runner:
    """Sends the requests of one model, which one or several hosts serve, and stores the results.

    It may run several times, one after the other, but not after a run that ended early: requests that are
    equal to recent ones count as sent.
    """

    def __init__(
        self,
        store: Store,
        models: Sequence[Model],
        limiters: Mapping[str, Limiter],
        options: RunnerOptions,
        counts: Counts,
        jitter: random.Random | None = None,
    ) -> None:
        """`jitter` is the source of random retry delays; None: a new one."""
        self._store = store
        self._models = models
        self._limiters = limiters
        self._options = options
        self._counts = counts
        self._jitter = jitter or random.Random()
        self._retrying: dict[str, tuple[Call, Failure]] = {}
        self._refused: list[tuple[Call, Failure]] = []
        self._is_deciding = False
        self._recent: dict[str, None] = {}
        self._shared = SharedAnswers(counts)

    async def run(
        self,
        requests: Iterable[KeyedRequest] | RequestFeed,
        opened: OpenModels | None = None,
        check: EndpointCheck | None = None,
        reread: Callable[[], Iterable[KeyedRequest]] | None = None,
        before_sending: Callable[[], Awaitable[None]] | None = None,
        on_settled: Callable[[Iterable[str]], None] = lambda keys: None,
    ) -> None:
        """Send every request that the store cannot answer.

        Ends early, with `counts.stopped` set, if the budget is reached or every host is unavailable. After a
        cancellation, all answers so far are in the store.

        Args:
            opened: Models that stay open after the run; None: the run closes the models that it opens.
            check: Checks the endpoints before the first request is sent; None for no check. Needs `reread`.
        """
        images = self._image_traffic
        try:
            async with AsyncExitStack() as stack:
                with self._store.claims.renewed():
                    opened = opened or OpenModels(stack)
                    await self._run(requests, opened, check, reread, before_sending, on_settled)
        finally:
            self._counts.images = self._counts.images.plus(self._image_traffic.since(images))

    async def check(
        self, check: EndpointCheck, requests: Callable[[], Iterable[KeyedRequest]], opened: OpenModels
    ) -> None:
        options = self._options
        budget = options.check_budget or options.budget
        means = Means(budget, options.account, self._counts, self._limiters)
        await check.before_sending(requests, opened, means)

    @property
    def _image_traffic(self) -> ImageTraffic:
        traffic = [model.image_traffic() for model in self._models if model.capabilities.references]
        return reduce(ImageTraffic.plus, filter(None, traffic), ImageTraffic())

    async def _run(
        self,
        requests: Iterable[KeyedRequest] | RequestFeed,
        opened: OpenModels,
        check: EndpointCheck | None,
        reread: Callable[[], Iterable[KeyedRequest]] | None,
        before_sending: Callable[[], Awaitable[None]] | None,
        on_settled: Callable[[Iterable[str]], None],
    ) -> None:
        counts, options = self._counts, self._options

        async def prepare_to_send() -> None:
            if before_sending is not None:
                await before_sending()
            if check is not None and reread is not None:
                await self.check(check, reread, opened)

        self._is_selecting = True
        self._finished = asyncio.Event()
        self._queue = CallQueue()
        capacity = REQUESTS_PER_LOOKUP + sum(
            2 * max(calls_at_a_time(model, options.concurrency), model.batch_size) for model in self._models
        )
        self._sent = self._sent_again = 0
        self._admission = Admission(
            capacity, self._models[0].name, options.budget, options.account, counts, self._queue
        )
        self._committer = Committer(self._store, self._on_commit)
        self._selector = RequestSelector(
            self._store,
            self._committer,
            self._admission,
            self._queue,
            counts,
            self._shared,
            self._recent,
            prepare_to_send,
            on_settled,
            retry_errors=options.retry_errors,
            cost_in_batch=self._full_length_cost if options.in_batches else None,
        )
        try:
            async with asyncio.TaskGroup() as tasks:
                started = [tasks.create_task(self._select(requests))]
                # Models load only if something must be sent.
                await self._queue.first_call.wait()
                if not self._finished.is_set():
                    workers = [
                        tasks.create_task(self._work(model, self._limiters[model.host]))
                        for model in await self._open_models(opened, check)
                        for _ in range(self._parallel_calls(model))
                    ]
                    started += [*workers, tasks.create_task(self._fail_when_all_stop(workers))]
                    await self._finished.wait()
                for task in started:
                    task.cancel()
        except ExceptionGroup as group:
            raise _first_error(group) from None
        finally:
            self._admission.close(self._sent, self._sent_again)
            await self._committer.close()

    def _full_length_cost(self, keyed: KeyedRequest) -> float:
        return self._options.budget.cost_of(full_length_usage(keyed))

    async def _select(self, requests: Iterable[KeyedRequest] | RequestFeed) -> None:
        await self._selector.queue_unanswered(requests)
        self._is_selecting = False
        self._queue.pause()
        self._finish_if_done()

    def _parallel_calls(self, model: Model) -> int:
        calls = max(1, calls_at_a_time(model, self._options.concurrency) // model.batch_size)
        return calls if model.parallel is None else min(calls, model.parallel)

    async def _open_models(self, opened: OpenModels, check: EndpointCheck | None) -> list[Model]:
        """Open the models that can be used. Raises UserError where none can."""
        usable = await opened.open_usable(self._models, self._counts)
        if check is not None:
            for model in usable:
                await check.record_contact(model)
        return usable

    async def _work(self, model: Model, limiter: Limiter) -> None:
        """Send batches to a model until its host is unavailable."""
        while True:
            try:
                await limiter.wait_for_slot()
            except HostUnavailableError:
                return
            taken = await self._take_batch(model, is_trial=limiter.is_on_trial)
            try:
                await self._work_on(model, limiter, taken)
            finally:
                if model.capabilities.sends_once:
                    self._queue.end(model.host, taken)

    async def _work_on(self, model: Model, limiter: Limiter, taken: Sequence[Call]) -> None:
        """Send calls, or queue them again if they may not be sent now."""
        calls = await self._admit_again(taken)
        # Nothing is awaited between this and the model: the claims may lapse meanwhile.
        if not all(self._store.claims.hold(call.claimed) for call in calls):
            await self._claim_again([*calls, *self._queue.take_all()])
            return
        if not calls or not limiter.try_acquire():
            for call in calls:
                self._queue.put(call)
            return
        successes = limiter.successes
        try:
            results = await self._send(model, calls)
        except BaseException:
            limiter.release()
            raise
        report_to(limiter, results, successes)

    async def _take_batch(self, model: Model, *, is_trial: bool) -> list[Call]:
        capabilities = model.capabilities
        host = model.host if len(self._models) > 1 or capabilities.sends_once else None
        return await self._queue.take_batch(
            model.batch_size,
            capabilities.gather,
            host,
            sends_once=capabilities.sends_once,
            is_trial=is_trial,
        )

    async def _claim_again(self, calls: Sequence[Call]) -> None:
        """Make sure of the claims of calls; what another process has answered meanwhile is not sent."""
        for call in await self._selector.claim_again(calls):
            self._retrying.pop(call.keyed.request.key, None)
            self._admission.withdraw(was_sent=call.attempts > 0, is_admitted=call.is_admitted)
        self._finish_if_done()

    async def _send(self, model: Model, calls: Sequence[Call]) -> list[Answer | Failure]:
        """Send a batch, and process each result as soon as it arrives; returns all results."""
        counts = self._counts
        first = sum(call.attempts == 0 for call in calls)
        self._sent += first
        self._sent_again += len(calls) - first
        counts.sent += first
        counts.retried += len(calls) - first
        counts.in_flight += len(calls)
        waiting = dict(enumerate(calls))
        results: list[Answer | Failure] = []
        for call in calls:
            call.attempts += 1
            call.is_admitted = False
        try:
            async for index, result in model.answer([call.keyed.request for call in calls]):
                counts.in_flight -= 1
                results.append(result)
                self._process(waiting.pop(index), storable(result))
                if len(self._refused) >= SAME_REFUSALS and not self._is_deciding:
                    await self._decide_refusals(model)
        finally:
            counts.in_flight -= len(waiting)
        for call in waiting.values():
            results.append(Failure("transient", f"{model.name} gave no answer to this request"))
            self._process(call, results[-1])
        return results

    def _process(self, call: Call, result: Answer | Failure) -> None:
        counts = self._counts
        if isinstance(result, Answer):
            counts.answered += 1
            self._settle_refused()
            self._settle(call, result, count_answer(call.keyed, result, self._options.budget, counts))
            return
        counts.last_error = result.message
        if is_capacity_refusal(result):
            call.refusals += 1
            counts.refused += 1
        delay = retry_delay(call, result, self._jitter)
        if delay is None:
            counts.failed += 1
            if self._is_of_all(result):
                self._refused.append((call, result))
                self._finish_if_done()
            else:
                self._settle(call, result)
            return
        self._retrying[call.keyed.request.key] = (call, result)
        asyncio.get_running_loop().call_later(delay, self._queue.put, call)

    async def _admit_again(self, calls: Sequence[Call]) -> list[Call]:
        """The calls that the budget has room for; the latest failure is the result of the others."""
        admitted = []
        for call in calls:
            # Other processes count, too: this may wait for the store.
            call.is_admitted = call.is_admitted or await self._admission.admit_attempt()
            if call.is_admitted:
                admitted.append(call)
            else:
                _, failure = self._retrying[call.keyed.request.key]
                self._counts.failed += 1
                self._settle(call, failure)
        return admitted

    def _settle(self, call: Call, result: Answer | Failure, cost: float | None = None) -> None:
        self._retrying.pop(call.keyed.request.key, None)
        self._shared.settled(call.keyed.request.key, result, cost)
        self._committer.add(Attempt(call.keyed.request.key, call.keyed.canonical, result))
        self._admission.settle(cost)
        self._finish_if_done()

    def _on_commit(self, attempts: Sequence[Attempt]) -> None:
        """Admit more requests for those that are stored; where the store fails, end the run."""
        self._admission.release(len(attempts))
        self._selector.written(attempts)
        if self._committer.error is not None:
            self._finish()

    def _is_of_all(self, failure: Failure) -> bool:
        """Whether a failure may be a refusal that holds for every request to a server."""
        counts, capabilities = self._counts, self._models[0].capabilities
        is_server = (capabilities.endpoint or capabilities.own_process) and not self._options.in_batches
        is_refusal = failure.kind == "permanent" and failure.status is not None and failure.status < 500
        return is_server and is_refusal and not (counts.answered or counts.cached)

    async def _decide_refusals(self, model: Model) -> None:
        """Raise UserError where nothing was ever answered, and the first requests were refused alike."""
        message, number = self._refused[0][1].message, len(self._refused)
        words = {_ANY_ID.sub("", refusal.message) for _, refusal in self._refused}
        self._is_deciding = True
        report = await model.server_report() if len(words) == 1 else None
        if len(words) > 1 or self._counts.cached or self._counts.answered:
            self._is_deciding = False
            self._settle_refused()
            return
        listed = f"; the server lists {some_of(report.listed, LISTED)}" if report and report.listed else ""
        raise UserError(
            f"the first {number} requests to {model.name} are refused alike, so that nothing is "
            f"recorded: {message}{listed}",
            expected=_remedy(message),
        )

    def _settle_refused(self) -> None:
        """Record the refusals that may have been those of every request, and were not."""
        refused, self._refused = self._refused, []
        for call, refusal in refused:
            self._settle(call, refusal)

    def _finish_if_done(self) -> None:
        if self._admission.outstanding == len(self._refused) > 0 and not self._is_deciding:
            self._settle_refused()
        if not self._is_selecting and self._admission.outstanding == 0:
            self._finish()

    def _finish(self) -> None:
        self._finished.set()
        self._queue.first_call.set()

    async def _fail_when_all_stop(self, workers: Sequence[asyncio.Task[None]]) -> None:
        """End the run when every host is unavailable; calls that wait for a retry have then failed."""
        await asyncio.wait(workers)
        self._settle_refused()
        for call, failure in list(self._retrying.values()):
            self._counts.failed += 1
            self._settle(call, failure)
        self._counts.stopped = self._counts.stopped or "host"
        self._finish()


# -- Refusals that hold for every request, and what the user can do

SAME_REFUSALS = 8
"""So many first requests that are refused alike, before anything was answered, end the run."""

LISTED = 10
"""The most models that a message lists."""

_ANY_ID = re.compile(r"[0-9a-f-]{8,}|\d+")
"""What differs between the messages of one refusal."""

_REMEDIES = (
    ("max_tokens", "--gen max_tokens=null --gen max_completion_tokens=N (--judge-gen for a judge)"),
    ("temperature", "--gen temperature=null, or the value that it takes (--judge-gen for a judge)"),
    ("stream", "a server or a gateway that can answer without streaming"),
    ("image", "a model that takes images, or --augment ocr"),
    ("multimodal", "a model that takes images, or --augment ocr"),
    ("model", "the name of a model that the server has"),
)
"""A word of a refusal, and its remedy; the first ones count."""


def _remedy(message: str) -> str:
    said = message.lower()
    other = "options that the server takes: --gen NAME=null omits one"
    return next((remedy for word, remedy in _REMEDIES if word in said), other)


def calls_at_a_time(model: Model, concurrency: int) -> int:
    return concurrency * max(1, model.capabilities.replicas)


def _first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
