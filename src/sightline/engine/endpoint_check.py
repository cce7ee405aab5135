"""Checks whether the endpoints of a model still have the model that gave the cached answers.

An endpoint is known by URL and model name: another checkpoint can be served under the same name. The check
takes place once, before anything else is sent, also if nothing else is left to send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.asking_again import AskingAgain, Means, is_comparable
from sightline.engine.cached_evidence import LOOKED_UP, Asked, CachedEvidence, StoredRequests
from sightline.engine.check_rule import CLOSED, report_changes
from sightline.engine.endpoint_log import EndpointRecord
from sightline.engine.keys import KeyedRequest
from sightline.engine.open_models import OpenModels
from sightline.engine.request_selector import REQUESTS_PER_LOOKUP
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.models.server_report import ServerReport

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
        self._so_far: CachedEvidence | None = None

    @property
    def is_due(self) -> bool:
        """Whether `must_wait` found cached replies, and no check has taken place."""
        return self._so_far is not None and self._so_far.has_cached and not self._is_done

    async def must_wait(self, requests: Sequence[KeyedRequest]) -> bool:
        """Decide whether the requests so far are too few for a check that is due.

        Args:
            requests: More requests of the run, which are not sent yet.

        Returns:
            True if the store answers some of those so far, but fewer than a check can need.

        Raises:
            EnvironmentFailedError: The store fails.
        """
        self._so_far = self._so_far or await self._evidence()
        if self._so_far is None or self._is_done:
            return False
        await run_in_thread(self._so_far.add, _asked(requests))
        return self.is_due and len(self._so_far.candidates) < CLOSED.most

    async def before(
        self,
        requests: Iterable[KeyedRequest],
        reread: Reread,
        opened: OpenModels,
        means: Means,
    ) -> Iterable[KeyedRequest]:
        """Check the endpoints if the store answers some of the requests.

        Args:
            requests: The requests of the run, which are read in a thread.
            reread: Reads them again where the first ones do not suffice.
            opened: Opens the models that are asked.
            means: What the check may send to each endpoint.

        Returns:
            All requests, in their order.

        Raises:
            UserError: An endpoint changed, and the policy does not accept it.
            EnvironmentFailedError: The store fails.
        """
        evidence = await self._evidence()
        if evidence is None:
            return requests
        read_requests, found = await self._read_ahead(requests, reread, evidence)
        await self._compare(evidence, found, opened, means)
        return read_requests

    async def of_stored(
        self,
        stored: StoredRequests,
        opened: OpenModels,
        means: Means,
    ) -> None:
        """Check the endpoints where the store answers all requests: only those to ask again are made.

        Args:
            stored: The requests of the run.
            opened: Opens the models that are asked.
            means: What the check may send to each endpoint.

        Raises:
            UserError: An endpoint changed, and the policy does not accept it.
            EnvironmentFailedError: The store fails.
        """
        evidence = await self._evidence()
        if evidence is None:
            return
        asked = iter(stored.asked)
        while await run_in_thread(evidence.add_next, asked):
            pass
        keys = {one.key for one in evidence.candidates}
        made = await run_in_thread(lambda: list(stored.make(keys)))
        found = {keyed.request.key: keyed for keyed in made}
        await self._compare(evidence, found, opened, means)

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

    async def _evidence(self) -> CachedEvidence | None:
        """The evidence of a check, without requests; None if there is nothing to check."""
        if self._is_done or not await run_in_thread(self._log.has_requests, self._identity):
            return None
        records = await run_in_thread(self._log.records, self._identity)
        return CachedEvidence(self._answers, records, self._began)

    async def _read_ahead(
        self, requests: Iterable[KeyedRequest], reread: Reread, evidence: CachedEvidence
    ) -> tuple[Iterable[KeyedRequest], Mapping[str, KeyedRequest]]:
        """Read requests until enough can be asked again; returns all requests, and those to ask again."""
        iterator = iter(requests)
        held: list[KeyedRequest] = []
        found: dict[str, KeyedRequest] = {}

        def read_chunk(source: Iterator[KeyedRequest], held: list[KeyedRequest]) -> bool:
            nonlocal found
            chunk = list(islice(source, REQUESTS_PER_LOOKUP))
            held.extend(chunk)
            evidence.add(_asked(chunk))
            known = {**found, **{one.request.key: one for one in chunk}}
            found = {one.key: known[one.key] for one in evidence.candidates}
            return bool(chunk)

        while len(held) < LOOKED_UP and await run_in_thread(read_chunk, iterator, held):
            pass
        if len(held) >= LOOKED_UP and not evidence.is_enough:
            rest = islice(reread(), len(held), None)
            while not evidence.is_enough and await run_in_thread(read_chunk, rest, []):
                pass
        return chain(held, iterator), found

    async def _compare(
        self,
        evidence: CachedEvidence,
        found: Mapping[str, KeyedRequest],
        opened: OpenModels,
        means: Means,
    ) -> None:
        """Check the endpoints, if the store answers some of the requests."""
        if not evidence.has_cached:
            return
        candidates = [one for one in evidence.candidates if one.key in found]
        reports = evidence.reports()
        checks = [
            self._check(model, reports, AskingAgain(model, candidates, found, means), opened)
            for model in self._models
        ]
        records = await asyncio.gather(*checks)
        for record in records:
            await run_in_thread(self._log.add, record)
        self._conclude(records)
        self._is_done = True

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


def _asked(requests: Iterable[KeyedRequest]) -> list[Asked]:
    return [Asked(one.request.key, is_comparable(one.request.draw, one.request.sampling)) for one in requests]
