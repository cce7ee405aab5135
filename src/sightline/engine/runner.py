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
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sightline.engine.endpoint_check import NO_ROOM, EndpointCheck
from sightline.engine.limits import (
    CONCURRENCY,
    Account,
    Budget,
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
from sightline.models.base import Model, is_loopback
from sightline.store.answers import Attempt, KeyedRequest, storable
from sightline.store.store import Store
from sightline.types import Answer, Failure, Usage

if TYPE_CHECKING:
    from sightline.engine.server_check import ImageCheck


class RunnerOptions(Struct, frozen=True):
    """How requests are sent.

    Attributes:
        held_back: Finds the requests that must not be sent, although nothing answers them yet.
        check_budget: Has the price of checks of endpoints; None: `budget`.
    """

    concurrency: int | None
    budget: Budget = field(default_factory=Budget)
    account: Account = field(default_factory=Account)
    retry_errors: bool = False
    held_back: Callable[[Sequence[str]], set[str]] = lambda keys: set()
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
        image_check: ImageCheck | None = None,
    ) -> None:
        """Send every request that the store cannot answer.

        Ends early, with `counts.stopped` set, if the budget is reached or every host is unavailable. After a
        cancellation, all answers so far are in the store.

        Args:
            opened: Models that stay open after the run; None: the run closes the models that it opens.
            check: Checks the endpoints before the first request is sent; None for no check. Needs `reread`.
            image_check: Asks then whether they keep images apart; None for no check.
        """
        counts, options = self._counts, self._options

        async def prepare_to_send() -> None:
            if before_sending is not None:
                await before_sending()
            if check is not None and reread is not None:
                await self.check(check, reread, open_models)
            if image_check is not None:
                await image_check.before_sending(open_models, self._ask_again)

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
            held_back=options.held_back,
            cost_at_most=self._full_length_cost if self._takes_hours else None,
        )
        async with self._store.claims.at_work(), AsyncExitStack() as stack:
            open_models = opened or OpenModels(stack)
            try:
                async with asyncio.TaskGroup() as tasks:
                    started = [tasks.create_task(self._select(requests))]
                    # Models load only if something must be sent.
                    await self._queue.first_call.wait()
                    if not self._finished.is_set():
                        workers = [
                            tasks.create_task(self._work(model, self._limiters[model.host]))
                            for model in await self._open_models(open_models, check)
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

    async def check(
        self, check: EndpointCheck, requests: Callable[[], Iterable[KeyedRequest]], opened: OpenModels
    ) -> None:
        """Check the endpoints, unless that is done; before the first request of a run this happens anyway."""
        await check.before_sending(requests, opened, self._ask_again)

    async def _ask_again(self, model: Model, keyed: KeyedRequest, expected: Usage) -> Answer | Failure:
        """Send a cached request once more for a check, with the same limits and retries as others.

        The answer is counted and not stored.
        """
        options, counts = self._options, self._counts
        account, budget = options.account, options.check_budget or options.budget
        if not account.reserve(model.name, budget, 1, budget.cost_of(expected)):
            return NO_ROOM
        counts.sent += 1
        counts.checks += 1
        call = Call(keyed)
        cost: float | None = None
        try:
            while True:
                result = await self._send_alone(model, call)
                if isinstance(result, Answer):
                    cost = count_answer(keyed, result, budget, counts)
                    return result
                if (delay := self._delay(call, result)) is None:
                    return result
                await asyncio.sleep(delay)
                if not account.reserve_attempt(model.name, budget):
                    return result
                counts.retried += 1
        finally:
            account.settle(model.name, cost)

    async def _send_alone(self, model: Model, call: Call) -> Answer | Failure:
        limiter = self._limiters[model.host]
        try:
            await limiter.wait_for_slot()
        except HostUnavailableError:
            return Failure("permanent", f"{model.host} is unavailable")
        limiter.try_acquire()  # There is a slot: nothing was awaited since.
        call.attempts += 1
        result: Answer | Failure = Failure("transient", f"{model.name} gave no answer")
        try:
            async for _, answer in model.answer([call.keyed.request]):
                result = storable(answer)
        except UserError as error:
            result = Failure("permanent", error.message)
        except BaseException:
            limiter.release()
            raise
        report_to(limiter, [result], limiter.successes)
        return result

    @property
    def _takes_hours(self) -> bool:
        """Whether a call takes hours, so that nothing is learned from the first answers."""
        return self._models[0].capabilities.gather > 0

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
        usable = await opened.open_usable(self._models, self._counts)
        if check is not None:
            for model in usable:
                await check.record_contact(model)
        return usable

    async def _work(self, model: Model, limiter: Limiter) -> None:
        """Send calls to a model until its host is unavailable."""
        while True:
            try:
                await limiter.wait_for_slot()
            except HostUnavailableError:
                return
            taken = await self._take(model, is_trial=limiter.is_on_trial)
            await self._work_on(model, limiter, taken)

    async def _work_on(self, model: Model, limiter: Limiter, taken: Sequence[Call]) -> None:
        """Send calls, or queue them again if they may not be sent now."""
        calls = self._admit_again(taken)
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

    async def _take(self, model: Model, *, is_trial: bool) -> list[Call]:
        host = model.host if len(self._models) > 1 else None
        gather = model.capabilities.gather
        return await self._queue.take(model.batch_size, gather, host, is_trial=is_trial)

    async def _claim_again(self, calls: Sequence[Call]) -> None:
        """Make sure of the claims of calls; what another process has answered meanwhile is not sent."""
        for call in await self._selector.claim_again(calls):
            self._retrying.pop(call.keyed.request.key, None)
            self._admission.withdraw(was_sent=call.attempts > 0, is_admitted=call.is_admitted)
        self._finish_if_done()

    async def _send(self, model: Model, calls: Sequence[Call]) -> list[Answer | Failure]:
        """Send calls, and process each result as soon as it arrives; returns all results."""
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
        delay = self._delay(call, result)
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

    def _delay(self, call: Call, failure: Failure) -> float | None:
        """Count a failure; returns the seconds until the call is sent again, None where it is not."""
        if is_capacity_refusal(failure):
            call.refusals += 1
            self._counts.refused += 1
        return retry_delay(call, failure, self._jitter)

    def _admit_again(self, calls: Sequence[Call]) -> list[Call]:
        """The calls that the budget has room for; the latest failure is the result of the others."""
        admitted = []
        for call in calls:
            call.is_admitted = call.is_admitted or self._admission.admit_attempt()
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
        is_server = (capabilities.endpoint or capabilities.own_process) and not self._takes_hours
        is_refusal = failure.kind == "permanent" and failure.status is not None and failure.status < 500
        return is_server and is_refusal and not (counts.answered or counts.cached)

    async def _decide_refusals(self, model: Model) -> None:
        """Raise UserError where nothing was ever answered, and the first requests were refused alike."""
        message, number = self._refused[0][1].message, len(self._refused)
        words = {(refusal.status, _ANY_ID.sub("", refusal.message)) for _, refusal in self._refused}
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


def calls_at_a_time(model: Model, concurrency: int | None) -> int:
    """The most calls to a model; `concurrency` is None where the user names none."""
    return (concurrency or CONCURRENCY) * max(1, model.capabilities.replicas)


def limiter_of(model: Model, concurrency: int | None) -> Limiter:
    """The limiter of the host of a model, which is careful with a server on this machine by default."""
    may_queue = concurrency is None and is_loopback(model.host.rpartition(":")[0])
    return Limiter(model.host, calls_at_a_time(model, concurrency), may_queue=may_queue)


def _first_error(group: BaseExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return _first_error(error) if isinstance(error, BaseExceptionGroup) else error
