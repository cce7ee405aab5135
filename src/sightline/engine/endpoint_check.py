"""Checks whether the endpoints of a model still have the model that gave its cached answers.

An endpoint is known by URL and model name: another checkpoint can be served under the same name. The check
takes place once, in a run that sends something, before its other requests. It compares what the server says
of itself, and the texts of a few cached requests that are asked again. docs/models.md states its error rates.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.limits import (
    Account,
    Counts,
    HostUnavailableError,
    Limiter,
    complete_usage,
    count_answer,
)
from sightline.engine.selector import (
    REQUESTS_PER_LOOKUP,
    Call,
    OpenModels,
    is_capacity_refusal,
    report_to,
    retry_delay,
)
from sightline.errors import UserError
from sightline.models.base import Model, ServerReport
from sightline.store.answers import CachedAnswer, CheckResult, EndpointRecord, KeyedRequest, storable
from sightline.store.claims import Budget
from sightline.store.database import run_in_thread, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.text import local_time
from sightline.types import Answer, Failure, Request

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
        for field in ("root", "max_model_len"):
            before, current = getattr(report, field), getattr(now, field)
            if before is not None and current is not None and before != current:
                changes[f"{field} is {current}, was {before}"] = None
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
        if not await account.reserve(model.name, budget, 1, expected):
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
            if not await account.reserve_attempt(model.name, budget):
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
