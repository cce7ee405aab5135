"""The requests of one model judge in one evaluation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from sightline.engine.counts import Counts
from sightline.engine.endpoint_check import EndpointCheck
from sightline.engine.keys import KeyedRequest
from sightline.engine.open_models import OpenModels
from sightline.engine.runner import Runner
from sightline.judging.groups import AnswerLookup, CollectedAnswers
from sightline.judging.panel import JudgePanel
from sightline.plan.stored_probe import StoredProbe


class JudgeRequests:
    """Sends the requests of a judge, the only one of its panel. `counts` says what happened to them."""

    def __init__(
        self,
        panel: JudgePanel,
        answers: AnswerLookup,
        counts: Counts,
        runner: Callable[[], Runner],
        opened: OpenModels | None,
        check: EndpointCheck | None,
    ) -> None:
        """Prepare it; nothing is sent.

        Args:
            panel: The judge.
            answers: The answers of the store, and the replies of the judge.
            counts: The counts that `runner` updates.
            runner: Makes what sends requests to the judge.
            opened: Where the judge stays open; None if it is opened for each attempt.
            check: The check of its endpoints; None for no check.
        """
        (judge,) = panel.judges
        self.name = judge.name
        self.counts = counts
        self.check = check
        self._max_attempts = judge.max_attempts
        self._panel = panel
        self._answers = answers
        self._new_runner = runner
        self._runner: Runner | None = None
        self._added: deque[Sequence[StoredProbe]] = deque()
        self._is_closed = False
        self._opened = opened

    async def ask(self, collected: CollectedAnswers, unjudged: CollectedAnswers) -> None:
        """Send the first requests, then retry those whose reply holds no verdict.

        Args:
            collected: The answers to judge.
            unjudged: Those about which the judge was not asked yet.
        """
        known = partial(self._first_requests, collected)
        if self.check is not None and self.counts.sent and self._opened is not None:
            # At the first request, cached replies to later responses of the model were not known.
            await self._new_runner().check(self.check, known, self._opened)
        await self._send(partial(self._first_requests, unjudged), known)
        for attempt in range(1, self._max_attempts):
            if not self.counts.stopped:
                await self._send(partial(self._retries, collected, attempt), known)

    @property
    def waiting(self) -> int:
        """How many probes were added, and wait until their requests are read."""
        return sum(map(len, self._added))

    def add(self, probes: Sequence[StoredProbe]) -> None:
        """Ask about probes next; `ask_added` sends their first requests.

        Args:
            probes: Probes of whole samples, whose answers the store has.
        """
        self._added.append(probes)

    def close(self) -> None:
        """End `ask_added` when it has sent the requests about all probes so far."""
        self._is_closed = True

    async def ask_added(self, answered: CollectedAnswers) -> None:
        """Send the first requests about the probes that `add` adds meanwhile, until `close`.

        Args:
            answered: All probes of the run: the cached replies about them tell whether the endpoint changed.
        """
        assert self._opened is not None, "a judge that is asked while the model answers stays open"
        runner, self._runner = self._new_runner(), None
        known = partial(self._first_requests, answered)
        await runner.run(self._requests_of_added(), self._opened, self.check, known)
        if not self.counts.stopped:
            self._runner = runner

    def forget_sent(self) -> None:
        """Forget what `ask_added` sent: the judge is asked about all probes again, which is nothing new."""
        self._runner = None

    async def _send(
        self, requests: Callable[[], Iterable[KeyedRequest]], known: Callable[[], Iterable[KeyedRequest]]
    ) -> None:
        # A runner that ended early takes what it did not send for sent.
        runner, self._runner = self._runner or self._new_runner(), None
        await runner.run(requests(), self._opened, self.check, known)
        if not self.counts.stopped:
            self._runner = runner

    def _first_requests(self, collected: CollectedAnswers) -> Iterator[KeyedRequest]:
        return self._panel.requests(collected.groups())

    def _retries(self, collected: CollectedAnswers, attempt: int) -> Iterator[KeyedRequest]:
        return self._panel.retry_requests(collected.groups(), self._answers, attempt)

    def _first_of(self, probes: Sequence[StoredProbe]) -> list[KeyedRequest]:
        return list(self._first_requests(CollectedAnswers(probes=lambda: probes, answers=self._answers)))

    def _requests_of_added(self) -> Iterator[KeyedRequest | None]:
        while True:
            is_closed = self._is_closed  # before the look at what was added: nothing is added afterwards
            while self._added:
                yield from self._first_of(self._added.popleft())
            if is_closed:
                return
            yield None
