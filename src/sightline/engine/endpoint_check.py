"""The check of endpoints: whether they still have the models that gave their cached answers.

An endpoint is known by URL and model name: another checkpoint can be served under the same name. The check
takes place once, in a run that sends something, before its other requests. It compares what the server says
of itself, and the texts of a few cached requests that are asked again (error rates: docs/models.md).
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from sightline.engine.limits import complete_usage
from sightline.engine.selector import REQUESTS_PER_LOOKUP, OpenModels
from sightline.errors import UserError
from sightline.models.base import Model, ServerReport
from sightline.store.answers import CachedAnswer, CheckResult, EndpointRecord, KeyedRequest
from sightline.store.database import run_in_thread, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.text import local_time
from sightline.types import Answer, Failure, Request, Usage

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
NO_ROOM = Failure("transient", "the budget has no room for the check")
"""The result of a request that was not sent."""

_NOTES = {
    "changed": "--accept-changed: cached answers of {} are used although its endpoint changed",
    "unsure": "it is uncertain whether {} is the model that gave its cached answers",
    "incomplete": "the check of {} is incomplete",
    "by name": "{} was checked by name only",
    "not checked": "{} was not checked: its cached answers may come from other weights",
}

AskAgain = Callable[[Model, KeyedRequest, Usage], Awaitable[Answer | Failure]]
"""Sends a request whose answer has about the given usage; `NO_ROOM` where the budget does not allow it."""


class _Cached(NamedTuple):
    """When the cached answers of a run were stored, and those to ask again with their requests."""

    times: Sequence[float]
    chosen: Sequence[tuple[KeyedRequest, CachedAnswer]]


class EndpointCheck:
    """Checks the endpoints of one model in one evaluation.

    `notes` are what the result says about the check: nothing if the endpoints are the same.
    """

    def __init__(
        self,
        store: Store,
        models: Sequence[Model],
        remedy: str,
        *,
        accept_changed: bool = False,
        began: float | None = None,
    ) -> None:
        """Create it.

        Args:
            remedy: What the user can do where an endpoint changed.
            accept_changed: Use the cached answers of an endpoint that changed.
            began: Answers stored later (seconds since 1970) need no check; None: from now on.
        """
        self.notes: list[str] = []
        self._log = store.endpoints
        self._answers = store.answers
        self._models = models
        self._identity = models[0].identity
        self._remedy = remedy
        self._accept_changed = accept_changed
        self._began = self._log.now() if began is None else began
        self._is_done = False
        self._error: UserError | None = None

    async def before_sending(
        self, requests: Callable[[], Iterable[KeyedRequest]], opened: OpenModels, ask: AskAgain
    ) -> None:
        """Check the endpoints, unless that is done or no answer of the run is cached.

        Raises:
            UserError: An endpoint changed, and its cached answers are not accepted.
        """
        if self._error is not None:
            raise self._error
        if self._is_done or not await run_in_thread(self._log.has_requests, self._identity):
            return
        cached = await run_until_cancelled(lambda stop: self._find_cached(until_set(requests(), stop)))
        if not cached.times:
            return
        log = await run_in_thread(self._log.records, self._identity)
        checks = [self._check(model, cached, log, opened, ask) for model in self._models]
        records = await asyncio.gather(*checks)
        for record in records:
            await run_in_thread(self._log.add, record)
        self._is_done = True
        name = self._models[0].name
        for record in records:
            if record.result == "changed" and not self._accept_changed:
                # A judge that is asked early is asked once more at the end.
                self._error = UserError(
                    f"{name} is not the model that gave its cached answers: at {record.host},"
                    f" {record.detail}",
                    expected=self._remedy,
                )
                raise self._error
            if note := _NOTES.get(record.result):
                self.notes.append(f"{note.format(name)} (at {record.host}, {record.detail})")

    async def record_contact(self, model: Model) -> None:
        """Record what an open model's server says of itself, if not recorded, for later runs."""
        if self._is_done or (report := await model.server_report()) is None:
            return
        log = await run_in_thread(self._log.records, self._identity)
        if report not in [known for _, known in _reports(log, report.address)][-1:]:
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
        ask: AskAgain,
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
        before = [one for _, one in cached.chosen]
        asked = [ask(model, keyed, complete_usage(keyed, one.answer)) for keyed, one in cached.chosen]
        results = await asyncio.gather(*asked)
        self.notes += _version_notes(model.host, before, results)
        result, detail = _compare(before, results)
        return replace(record, result=result, detail=detail, asked=sum(one is not NO_ROOM for one in results))


# -- What is compared, and the decision


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


def _reports(log: Iterable[tuple[float, EndpointRecord]], address: str) -> list[tuple[float, ServerReport]]:
    return [
        (created, record.report)
        for created, record in log
        if record.report is not None and record.report.address == address
    ]


def _reports_at(
    times: Iterable[float], log: Iterable[tuple[float, EndpointRecord]], address: str
) -> list[ServerReport]:
    """What a server said last before each of the times."""
    reports = _reports(log, address)
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


def _version_notes(
    host: str, cached: Sequence[CachedAnswer], results: Sequence[Answer | Failure]
) -> list[str]:
    """A note for each version (model and system fingerprint) that differs from a cached answer's."""
    versions = {
        (one.answer.version, result.version): None
        for one, result in zip(cached, results, strict=True)
        if isinstance(result, Answer) and one.answer.version and result.version
    }
    return [
        f"{host}: the server reports the version '{now}', a cached answer has '{before}'"
        for before, now in versions
        if before != now
    ]


def _span(times: Sequence[float]) -> str:
    """When answers were stored: one local time, or the first and the last."""
    first, last = local_time(min(times)), local_time(max(times))
    return first if first == last else f"{first} to {last}"


def _start(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SHOWN_CHARACTERS else words[:SHOWN_CHARACTERS] + " ..."
