"""Asks cached requests again, to compare the new texts with the cached ones."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sightline.engine.account import Account
from sightline.engine.budget import Budget
from sightline.engine.call_queue import Call
from sightline.engine.check_rule import (
    CLOSED,
    REPEATS,
    SHORT_CHARACTERS,
    Found,
    Plan,
    choose_plan,
    decide,
)
from sightline.engine.counts import Counts, count_answer
from sightline.engine.endpoint_log import CheckResult
from sightline.engine.keys import KeyedRequest
from sightline.engine.retry import retry_delay
from sightline.engine.storable import storable
from sightline.engine.token_estimate import complete_usage
from sightline.errors import UserError
from sightline.models.base import Model
from sightline.types import Answer, Failure

ATTEMPTS = 3
"""Calls for one answer if calls fail."""
SHOWN_CHARACTERS = 60


class Means(NamedTuple):
    """What a check may send: within the budget of the run, which `account` shows, and how much at a time."""

    budget: Budget
    account: Account
    counts: Counts
    concurrency: int


class Candidate(NamedTuple):
    """The key of a request whose answers can be compared, and its cached answer."""

    key: str
    cached: Answer


def is_comparable(draw: int, sampling: Mapping[str, Any]) -> bool:
    """Decide whether a new answer to a request can be compared with the cached one.

    Args:
        draw: The number of the repeat.
        sampling: The sampling options.

    Returns:
        True for first draws at temperature 0: other draws ask the same again, and other temperatures draw
        anew.
    """
    return draw == 0 and sampling.get("temperature") == 0


def select_candidates(candidates: Iterable[Candidate], cached: Mapping[str, Answer]) -> list[Candidate]:
    """Select the cached answers to ask again: those that tell most about a model.

    Args:
        candidates: Those selected from earlier requests.
        cached: More cached answers of comparable requests, by request key.

    Returns:
        As many as a check needs at most: different long texts first, the longest at the beginning, then
        others; short ones in the order of their keys, which is random and so favours no text.
    """
    more = (Candidate(key, answer) for key, answer in cached.items())
    distinct = {one.key: one for one in (*candidates, *more) if one.cached.text.strip()}
    ranked = sorted(distinct.values(), key=lambda one: (-_long(one.cached.text), one.key))
    first_of_text = {one.cached.text: one for one in reversed(ranked) if _long(one.cached.text)}
    ranked.sort(key=lambda one: first_of_text.get(one.cached.text) is not one)
    return ranked[: CLOSED.most]


def plan_of(candidates: Iterable[Candidate]) -> Plan:
    """Choose how many cached answers are asked again.

    Args:
        candidates: As `select_candidates` returned them.

    Returns:
        The plan.
    """
    return choose_plan([one.cached.text for one in candidates])


def _long(text: str) -> int:
    """The length of a long text, 0 for all short ones."""
    return len(text) if len(text) > SHORT_CHARACTERS else 0


class AskingAgain:
    """Asks one endpoint again, within the budget of the run. New answers are counted, not stored.

    `asked` is how many requests it sent.
    """

    def __init__(
        self,
        model: Model,
        candidates: Sequence[Candidate],
        requests: Mapping[str, KeyedRequest],
        means: Means,
    ) -> None:
        """Prepare the requests; nothing is sent.

        Args:
            model: The model at the endpoint, open when `compare` is called.
            candidates: The cached answers, as `select_candidates` returned them.
            requests: Their requests by key.
            means: What may be sent.
        """
        self.asked = 0
        self._slots = asyncio.Semaphore(means.concurrency)
        self._model = model
        self._plan = plan_of(candidates)
        self._candidates = candidates[: self._plan.most]
        self._requests = requests
        self._means = means
        self._jitter = random.Random()
        self._problem = ""
        self._example = ""
        self._versions: dict[tuple[str, str], None] = {}

    @property
    def version_notes(self) -> list[str]:
        """A note for each version (model and system fingerprint) that differs from a cached answer's."""
        return [
            f"the server reports the version '{now}', a cached answer has '{before}'"
            for before, now in self._versions
        ]

    async def compare(self) -> tuple[CheckResult, str]:
        """Ask again until the rule decides.

        Returns:
            The result, and what it is based on.
        """
        if not self._candidates:
            return "by name", "no cached answer at temperature 0 can be asked again"
        plan, size = self._plan, self._plan.first
        found: list[bool | None] = []
        while True:
            batch = self._candidates[len(found) : len(found) + size]
            found += await asyncio.gather(*map(self._differs, batch))
            failed = found.count(None)
            state = Found(len(found) - failed, found.count(True), failed, len(self._candidates) - len(found))
            decision = decide(plan, state)
            if decision != "ask further":
                break
            size = plan.further
        if not state.compared:
            return "not checked", self._problem
        evidence = f"{state.differing} of {state.compared} cached answers differ when asked again"
        evidence += self._example
        if failed:
            evidence += f"; {failed} more could not be asked again: {self._problem}"
        return decision, evidence

    async def _differs(self, candidate: Candidate) -> bool | None:
        """Whether all new texts differ from the cached one; None if there are none."""
        texts: list[str] = []
        for _ in range(1 + REPEATS):
            answer = await self._ask(candidate)
            if answer is None:
                return None
            texts.append(answer.text)
            before, now = candidate.cached.version, answer.version
            if before and now and before != now:
                self._versions[before, now] = None
            if answer.text == candidate.cached.text:
                return False
        self._example = f", such as '{_start(texts[-1])}' for the cached '{_start(candidate.cached.text)}'"
        return True

    async def _ask(self, candidate: Candidate) -> Answer | None:
        """Send a request; None if the budget has no room for it, or if it fails."""
        counts, keyed = self._means.counts, self._requests[candidate.key]
        budget, account = self._means.budget, self._means.account
        expected = budget.cost_of(complete_usage(keyed, candidate.cached))
        if not await account.reserve(self._model.name, budget, 1, expected):
            self._problem = "the budget has no room for the check"
            return None
        counts.sent += 1
        counts.checks += 1
        self.asked += 1
        cost: float | None = None
        try:
            answer = await self._answer(Call(keyed))
            if answer is not None:
                cost = count_answer(keyed, answer, budget, counts)
            return answer
        finally:
            account.settle(self._model.name, cost)

    async def _answer(self, call: Call) -> Answer | None:
        """Send a request until it has an answer; None if it fails."""
        while True:
            call.attempts += 1
            async with self._slots:
                result = await self._call(call)
            if isinstance(result, Answer):
                return result
            self._problem = result.message
            delay = retry_delay(call, result, self._jitter)
            if delay is None or call.attempts >= ATTEMPTS:
                return None
            await asyncio.sleep(delay)
            if not await self._means.account.reserve_attempt(self._model.name, self._means.budget):
                return None
            self._means.counts.retried += 1

    async def _call(self, call: Call) -> Answer | Failure:
        try:
            results = [storable(result) async for _, result in self._model.answer([call.keyed.request])]
        except UserError as error:
            return Failure("permanent", error.message)
        return results[0] if results else Failure("permanent", f"{self._model.name} gave no answer")


def _start(text: str) -> str:
    """The first characters of a text, on one line."""
    words = " ".join(text.split())
    return words if len(words) <= SHOWN_CHARACTERS else words[:SHOWN_CHARACTERS] + " ..."
