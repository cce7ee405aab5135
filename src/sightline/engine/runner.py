"""The runner: sends the requests that the store cannot answer, and stores the results.

A request is sent at most once per key: the selector finds what must be sent, workers send it to the models,
and the committer writes each result to the store.
"""

from __future__ import annotations

import asyncio
import random
import re
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import islice
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.engine.limits import (
    CONCURRENCY,
    Account,
    Budget,
    Counts,
    HostUnavailableError,
    Limiter,
    complete_usage,
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
from sightline.models.base import Model, ServerReport, is_loopback
from sightline.store.answers import Attempt, CachedAnswer, CheckResult, EndpointRecord, KeyedRequest, storable
from sightline.store.database import run_in_thread, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.text import local_time
from sightline.types import Answer, Failure, Request


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
    ) -> None:
        """Send every request that the store cannot answer.

        Ends early, with `counts.stopped` set, if the budget is reached or every host is unavailable. After a
        cancellation, all answers so far are in the store.

        Args:
            opened: Models that stay open after the run; None: the run closes the models that it opens.
            check: Checks the endpoints before the first request is sent; None for no check. Needs `reread`.
        """
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._store.claims.at_work())
            opened = opened or OpenModels(stack)
            await self._run(requests, opened, check, reread, before_sending, on_settled)

    async def check(
        self, check: EndpointCheck, requests: Callable[[], Iterable[KeyedRequest]], opened: OpenModels
    ) -> None:
        options = self._options
        budget = options.check_budget or options.budget
        means = Means(budget, options.account, self._counts, self._limiters)
        await check.before_sending(requests, opened, means)

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
            held_back=options.held_back,
            cost_at_most=self._full_length_cost if self._takes_hours else None,
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
        """Open the models that can be used. Raises UserError where none can."""
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


# -- The check of endpoints: whether they still have the models that gave their cached answers
#
# An endpoint is known by URL and model name: another checkpoint can be served under the same name. The check
# takes place once, in a run that sends something, before its other requests. It compares what the server says
# of itself, and the texts of a few cached requests that are asked again (error rates: docs/models.md).

OPEN, CLOSED = 3, 8
"""Cached answers that are asked again at most. Closed answers of two models agree by chance: more of them are
compared. They cost a few tokens each."""
SHORT_CHARACTERS = 16
"""Responses of at most this length are closed answers, such as "Yes." or "The answer is B."."""
LOOKED_UP = 4096
"""Requests that are looked up if some are cached, but too few of these can be compared."""
SHOWN_CHARACTERS = 60

MODEL_REMEDY = (
    "--fresh TAG (ask everything again), --model-id NAME (a model of its own), or --accept-changed "
    "(use the cached answers)"
)
NAMED_REMEDY = "--accept-changed (use the cached answers), or a model of sightline.toml with another model_id"
"""For a model that has no --fresh or --model-id: a judge, or a captioner."""
_NO_ROOM = Failure("transient", "the budget has no room for the check")


class CheckPolicy(Struct, frozen=True):
    """What a message says that the user can do, and whether --accept-changed uses the cached answers of an
    endpoint that changed.
    """

    remedy: str
    accept_changed: bool = False


class Means(NamedTuple):
    """What a check sends with: budget, account, counts and limiters of the run."""

    budget: Budget
    account: Account
    counts: Counts
    limiters: Mapping[str, Limiter]


class _Cached(NamedTuple):
    """When the cached answers of a run were stored, and those to ask again with their requests."""

    times: Sequence[float]
    chosen: Sequence[tuple[KeyedRequest, CachedAnswer]]


def is_comparable(request: Request, cached: Answer) -> bool:
    """Only first draws at temperature 0 can be compared: others draw anew."""
    return request.draw == 0 and request.sampling.get("temperature") == 0 and bool(cached.text.strip())


def choose(texts: Mapping[str, str]) -> list[str]:
    """Choose the cached answers to ask again.

    >>> choose({"a": "Yes.", "b": "No.", "c": "Yes.", "d": "No."})
    ['a', 'b', 'c', 'd']
    """
    longest = sorted(texts, key=lambda key: -len(texts[key]))[:OPEN]
    found = {texts[key] for key in longest}
    is_open = len(found) == len(longest) and all(len(text) > SHORT_CHARACTERS for text in found)
    return longest if is_open else list(texts)


def decide(chosen: int, compared: int, differing: int) -> CheckResult:
    """Decide from the cached answers that were asked again.

    Returns:
        `changed` if most of the chosen ones differ, `unsure` if some do; without a difference `same`,
        `incomplete` if some were not compared, or `not checked` if none was.
    """
    if 2 * differing > chosen:
        return "changed"
    if differing:
        return "unsure"
    if compared < chosen:
        return "incomplete" if compared else "not checked"
    return "same"


def report_changes(earlier: Iterable[ServerReport], now: ServerReport) -> list[str]:
    changes: dict[str, None] = {}
    for report in earlier:
        for name in ("root", "max_model_len"):
            before, current = getattr(report, name), getattr(now, name)
            if before is not None and current is not None and before != current:
                changes[f"{name} is {current}, was {before}"] = None
    return list(changes)


class EndpointCheck:
    """Checks the endpoints of one model in one evaluation.

    `notes` are what the result says about the check: nothing if the endpoints are the same.
    """

    def __init__(
        self, store: Store, models: Sequence[Model], policy: CheckPolicy, began: float | None = None
    ) -> None:
        """Answers stored after `began` (seconds since 1970) need no check; None: from now on."""
        self.notes: list[str] = []
        self._log = store.endpoints
        self._answers = store.answers
        self._models = models
        self._identity = models[0].identity
        self._policy = policy
        self._began = self._log.now() if began is None else began
        self._jitter = random.Random()
        self._is_done = False
        self._error: UserError | None = None

    async def before_sending(
        self, requests: Callable[[], Iterable[KeyedRequest]], opened: OpenModels, means: Means
    ) -> None:
        """Check the endpoints, unless that is done or no answer of the run is cached."""
        if self._error is not None:
            raise self._error
        if self._is_done or not await run_in_thread(self._log.has_requests, self._identity):
            return
        cached = await run_until_cancelled(lambda stop: self._find_cached(until_set(requests(), stop)))
        if not cached.times:
            return
        log = await run_in_thread(self._log.records, self._identity)
        checks = [self._check(model, cached, log, opened, means) for model in self._models]
        records = await asyncio.gather(*checks)
        for record in records:
            await run_in_thread(self._log.add, record)
        self._is_done = True
        self._conclude(records)

    async def record_contact(self, model: Model) -> None:
        """Record what an open model's server says of itself, if not recorded, for later runs."""
        if self._is_done or (report := await model.server_report()) is None:
            return
        records = await run_in_thread(self._log.records, self._identity)
        known = [record.report for _, record in records if record.report is not None]
        if report not in [one for one in known if one.address == report.address][-1:]:
            contact = EndpointRecord(
                identity=self._identity, host=model.host, result="first contact", report=report
            )
            await run_in_thread(self._log.add, contact)

    def _find_cached(self, requests: Iterable[KeyedRequest]) -> _Cached:
        times: set[float] = set()
        found: dict[str, tuple[KeyedRequest, CachedAnswer]] = {}
        iterator, looked_up = iter(requests), 0
        while chunk := list(islice(iterator, REQUESTS_PER_LOOKUP)):
            cached = self._answers.answers_before([one.request.key for one in chunk], self._began)
            times.update(one.created for one in cached.values())
            for keyed in chunk:
                one = cached.get(keyed.request.key)
                if one is not None and len(found) < CLOSED and is_comparable(keyed.request, one.answer):
                    found[keyed.request.key] = keyed, one
            looked_up += len(chunk)
            if len(found) == CLOSED or (times and looked_up >= LOOKED_UP):
                break
        chosen = choose({key: one.answer.text for key, (_, one) in found.items()})
        return _Cached(sorted(times), [found[key] for key in chosen])

    async def _check(
        self,
        model: Model,
        cached: _Cached,
        log: Sequence[tuple[float, EndpointRecord]],
        opened: OpenModels,
        means: Means,
    ) -> EndpointRecord:
        record = EndpointRecord(identity=self._identity, host=model.host, result="not checked")
        try:
            await opened.open(model)
        except UserError as error:
            return replace(record, detail=error.message)
        report = await model.server_report()
        record = replace(record, report=report)
        earlier = _reports_at(cached.times, log, report.address) if report is not None else []
        if report is not None and (changes := report_changes(earlier, report)):
            stored = f" (cached answers stored {_span(cached.times)})"
            return replace(record, result="changed", detail=", ".join(changes) + stored)
        if not cached.chosen:
            result: CheckResult = "by name" if earlier else "not checked"
            return replace(
                record, result=result, detail="no cached answer at temperature 0 can be asked again"
            )
        results = await asyncio.gather(*[self._ask(model, *one, means) for one in cached.chosen])
        self._note_versions(model, cached, results)
        asked = sum(one is not _NO_ROOM for one in results)
        result, detail = _compare([one for _, one in cached.chosen], results)
        return replace(record, result=result, detail=detail, asked=asked)

    async def _ask(
        self, model: Model, keyed: KeyedRequest, cached: CachedAnswer, means: Means
    ) -> Answer | Failure:
        """Ask again, as far as the budget has room. The new answer is counted, not stored."""
        budget, account, counts, _ = means
        expected = budget.cost_of(complete_usage(keyed, cached.answer))
        if not account.reserve(model.name, budget, 1, expected):
            return _NO_ROOM
        counts.sent += 1
        counts.checks += 1
        cost: float | None = None
        try:
            result = await self._send(model, Call(keyed), means)
            if isinstance(result, Answer):
                cost = count_answer(keyed, result, budget, counts)
            return result
        finally:
            account.settle(model.name, cost)

    async def _send(self, model: Model, call: Call, means: Means) -> Answer | Failure:
        budget, account, counts, limiters = means
        limiter = limiters[model.host]
        while True:
            try:
                await limiter.wait_for_slot()
            except HostUnavailableError:
                return Failure("transient", f"{model.host} is unavailable")
            limiter.try_acquire()  # There is a slot: nothing was awaited since.
            call.attempts += 1
            try:
                result = await _call(model, call.keyed.request)
            except BaseException:
                limiter.release()
                raise
            report_to(limiter, [result], limiter.successes)
            if isinstance(result, Answer):
                return result
            if is_capacity_refusal(result):
                call.refusals += 1
                counts.refused += 1
            delay = retry_delay(call, result, self._jitter)
            if delay is None:
                return result
            await asyncio.sleep(delay)
            if not account.reserve_attempt(model.name, budget):
                return result
            counts.retried += 1

    def _note_versions(self, model: Model, cached: _Cached, results: Sequence[Answer | Failure]) -> None:
        """Add a note for each version (model and system fingerprint) that differs from a cached answer's."""
        versions = {
            (one.answer.version, result.version): None
            for (_, one), result in zip(cached.chosen, results, strict=True)
            if isinstance(result, Answer)
        }
        self.notes += [
            f"{model.host}: the server reports the version '{now}', a cached answer has '{before}'"
            for before, now in versions
            if before and now and before != now
        ]

    def _conclude(self, records: Sequence[EndpointRecord]) -> None:
        """Add the notes. Raises UserError where an endpoint changed and the policy does not accept it."""
        name, policy = self._models[0].name, self._policy
        for record in records:
            if record.result == "changed" and not policy.accept_changed:
                self._error = UserError(
                    f"{name} is not the model that gave its cached answers: at {record.host},"
                    f" {record.detail}",
                    expected=policy.remedy,
                )
                raise self._error
            text = {
                "changed": "--accept-changed: cached answers of {} are used although its endpoint changed",
                "unsure": "it is uncertain whether {} is the model that gave its cached answers",
                "incomplete": "the check of {} is incomplete",
                "by name": "{} was checked by name only",
                "not checked": "{} was not checked: its cached answers may come from other weights",
            }.get(record.result)
            if text is not None:
                self.notes.append(f"{text.format(name)} (at {record.host}, {record.detail})")


def _reports_at(
    times: Iterable[float], log: Iterable[tuple[float, EndpointRecord]], address: str
) -> list[ServerReport]:
    reports = [
        (created, record.report)
        for created, record in log
        if record.report is not None and record.report.address == address
    ]
    starts = [created for created, _ in reports]
    last = {bisect_right(starts, time) - 1 for time in times}
    return [reports[index][1] for index in sorted(last) if index >= 0]


def _compare(cached: Sequence[CachedAnswer], results: Sequence[Answer | Failure]) -> tuple[CheckResult, str]:
    """Compare new texts with the cached ones, except for white space; returns result and evidence."""
    problems = [result.message for result in results if isinstance(result, Failure)]
    differing = [
        (result.text, one.answer.text)
        for one, result in zip(cached, results, strict=True)
        if isinstance(result, Answer) and result.text.split() != one.answer.text.split()
    ]
    compared = len(results) - len(problems)
    decision = decide(len(results), compared, len(differing))
    if not compared:
        return decision, problems[0]
    stored = _span([one.created for one in cached])
    evidence = f"{len(differing)} of {compared} cached answers, stored {stored}, differ when asked again"
    if differing:
        now, before = map(_start, differing[0])
        evidence += f", such as '{now}' for the cached '{before}'"
    if problems:
        evidence += f"; {len(problems)} more could not be asked again: {problems[0]}"
    return decision, evidence


async def _call(model: Model, request: Request) -> Answer | Failure:
    try:
        results = [storable(result) async for _, result in model.answer([request])]
    except UserError as error:
        return Failure("permanent", error.message)
    return results[0] if results else Failure("transient", f"{model.name} gave no answer")


def _span(times: Sequence[float]) -> str:
    """When answers were stored: one local time, or the first and the last."""
    first, last = local_time(min(times)), local_time(max(times))
    return first if first == last else f"{first} to {last}"


def _start(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN_CHARACTERS else words[:SHOWN_CHARACTERS] + " ..."
