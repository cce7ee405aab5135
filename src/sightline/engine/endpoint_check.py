"""Checks whether the endpoints of a model still have the model that gave the cached answers.

An endpoint is known by URL and model name: another checkpoint can be served under the same name. The check
takes place once, before anything else is sent, also if nothing else is left to send.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.asking_again import AskingAgain, Candidate, plan_of, select_candidates
from sightline.engine.budget import Budget
from sightline.engine.check_rule import report_changes
from sightline.engine.counts import Counts
from sightline.engine.endpoint_log import EndpointRecord
from sightline.engine.keys import KeyedRequest
from sightline.engine.open_models import OpenModels
from sightline.engine.request_selector import REQUESTS_PER_LOOKUP
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.models.server_report import ServerReport

READ_AHEAD = 4096
"""Requests that are read before the check and held (3 KB each)."""

Reread = Callable[[], Iterable[KeyedRequest]]
"""Starts another pass over the requests of a run, which leaves nothing behind."""

MODEL_REMEDY = (
    "--fresh TAG (ask everything again), --model-id NAME (a model of its own), or --accept-changed "
    "(use the cached answers)"
)
NAMED_REMEDY = "--accept-changed (use the cached answers), or a model of sightline.toml with another model_id"
"""For a model that has no --fresh or --model-id: a judge, or a captioner."""


class CheckPolicy(Struct, frozen=True):
    """What happens when an endpoint changed.

    Attributes:
        remedy: What the message says that the user can do.
        accept_changed: Whether the cached answers are used nevertheless (--accept-changed).
    """

    remedy: str
    accept_changed: bool = False


class _Ahead(NamedTuple):
    """Requests that were read before the check, followed by the rest.

    `reports` are those that were the last ones when a cached answer was stored, by URL; None if no answer is
    cached. `candidates` are the best to ask again.
    """

    requests: Iterable[KeyedRequest]
    reports: Mapping[str, Sequence[ServerReport]] | None
    candidates: Sequence[Candidate]


class _Reports(NamedTuple):
    """The reports of one URL, and since when each of them is the last one."""

    starts: list[float]
    reports: list[ServerReport]


class EndpointCheck:
    """Checks the endpoints of one model in one evaluation.

    `notes` are what the result says about the check: nothing if the endpoints are the same.
    """

    def __init__(
        self, store: Store, models: Sequence[Model], policy: CheckPolicy, began: float | None = None
    ) -> None:
        """Prepare the check; nothing is sent or read.

        Args:
            store: The store.
            models: The model at each of its endpoints.
            policy: What happens when an endpoint changed.
            began: Answers that were stored later (seconds since 1970) need no check; None: from now on.
        """
        self.notes: list[str] = []
        self._log = store.endpoints
        self._answers = store.answers
        self._models = models
        self._identity = models[0].identity
        self._policy = policy
        self._began = self._log.now() if began is None else began
        self._is_done = False

    async def before(
        self,
        requests: Iterable[KeyedRequest],
        reread: Reread,
        opened: OpenModels,
        budget: Budget,
        counts: Counts,
        concurrency: int,
    ) -> Iterable[KeyedRequest]:
        """Check the endpoints if the store answers some of the requests.

        Args:
            requests: The requests of the run, which are read in a thread.
            reread: Reads them again where the first ones do not suffice.
            opened: Opens the models that are asked.
            budget: The budget of the run; requests of the check are part of it.
            counts: The counts of the run.
            concurrency: Maximum number of calls in flight at each endpoint.

        Returns:
            All requests, in their order.

        Raises:
            UserError: An endpoint changed, and the policy does not accept it.
            EnvironmentFailedError: The store fails.
        """
        if self._is_done or not await run_in_thread(self._log.has_requests, self._identity):
            return requests
        ahead = await self._read_ahead(requests, reread)
        if ahead.reports is not None:
            self._is_done = True
            checks = [
                self._check(
                    model,
                    ahead.reports,
                    AskingAgain(model, ahead.candidates, budget, counts, concurrency),
                    opened,
                )
                for model in self._models
            ]
            records = await asyncio.gather(*checks)
            for record in records:
                await run_in_thread(self._log.add, record)
            self._conclude(records)
        return ahead.requests

    async def record_contact(self, model: Model) -> None:
        """Record what the server of an open model says of itself, if that is not recorded yet.

        Later runs compare it with what the server says then.

        Args:
            model: The model.
        """
        if self._is_done or (report := await model.server_report()) is None:
            return
        records = await run_in_thread(self._log.records, self._identity)
        known = [record.report for _, record in records if record.report is not None]
        if report not in [one for one in known if one.address == report.address][-1:]:
            contact = EndpointRecord(
                identity=self._identity, host=model.host, result="first contact", report=report
            )
            await run_in_thread(self._log.add, contact)

    async def _read_ahead(self, requests: Iterable[KeyedRequest], reread: Reread) -> _Ahead:
        """Read requests until enough can be asked again, and look them up in the store."""
        iterator = iter(requests)
        history = await run_in_thread(self._history)
        read: list[KeyedRequest] = []
        current: dict[str, set[int]] = {address: set() for address in history}
        has_cached = False
        candidates: Sequence[Candidate] = ()

        def look_at(chunk: Sequence[KeyedRequest]) -> None:
            nonlocal candidates, has_cached
            cached = self._answers.answers_before([keyed.request.key for keyed in chunk], self._began)
            has_cached = has_cached or bool(cached)
            times = {one.created for one in cached.values()}
            for address, reports in history.items():
                current[address].update(bisect_right(reports.starts, time) - 1 for time in times)
            answers = {key: one.answer for key, one in cached.items()}
            candidates = select_candidates(candidates, chunk, answers)

        def read_chunk(source: Iterator[KeyedRequest], held: list[KeyedRequest]) -> bool:
            chunk = list(islice(source, REQUESTS_PER_LOOKUP))
            held.extend(chunk)
            look_at(chunk)
            return bool(chunk)

        def is_enough() -> bool:
            return len(candidates) >= plan_of(candidates).first

        while len(read) < READ_AHEAD and await run_in_thread(read_chunk, iterator, read):
            pass
        if len(read) >= READ_AHEAD and not is_enough():
            rest = islice(reread(), len(read), None)
            while not is_enough() and await run_in_thread(read_chunk, rest, []):
                pass
        shown = {
            address: [reports.reports[index] for index in sorted(current[address]) if index >= 0]
            for address, reports in history.items()
        }
        return _Ahead(chain(read, iterator), shown if has_cached else None, candidates)

    def _history(self) -> dict[str, _Reports]:
        """What each URL said, and when."""
        history: dict[str, _Reports] = {}
        for created, record in self._log.records(self._identity):
            if record.report is not None:
                reports = history.setdefault(record.report.address, _Reports([], []))
                reports.starts.append(created)
                reports.reports.append(record.report)
        return history

    async def _check(
        self,
        model: Model,
        earlier: Mapping[str, Sequence[ServerReport]],
        again: AskingAgain,
        opened: OpenModels,
    ) -> EndpointRecord:
        """Check one endpoint."""
        record = EndpointRecord(identity=self._identity, host=model.host, result="not checked")
        try:
            await opened.open(model)
        except UserError as error:
            return replace(record, detail=error.message)
        report = await model.server_report()
        record = replace(record, report=report)
        before = earlier.get(report.address, []) if report is not None else []
        if report is not None and (changes := report_changes(before, report)):
            return replace(record, result="changed", detail=", ".join(changes))
        result, detail = await again.compare()
        if result == "by name" and not before:
            result = "not checked"
        self.notes += [f"{model.host}: {note}" for note in again.version_notes]
        return replace(record, result=result, detail=detail, asked=again.asked)

    def _conclude(self, records: Sequence[EndpointRecord]) -> None:
        """Add the notes. Raises UserError where an endpoint changed and the policy does not accept it."""
        name, policy = self._models[0].name, self._policy
        for record in records:
            if record.result == "changed" and not policy.accept_changed:
                raise UserError(
                    f"{name} is not the model that gave its cached answers: at {record.host},"
                    f" {record.detail}",
                    expected=policy.remedy,
                )
            text = {
                "changed": "--accept-changed: cached answers of {} are used although its endpoint changed",
                "unsure": "it is uncertain whether {} is the model that gave its cached answers",
                "incomplete": "the check of {} is incomplete",
                "by name": "{} was checked by name only",
                "not checked": "{} was not checked: its cached answers may come from other weights",
            }.get(record.result)
            if text is not None:
                self.notes.append(f"{text.format(name)} (at {record.host}, {record.detail})")
