"""The requests of one model judge in one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sightline.engine.counts import Counts
from sightline.engine.endpoint_check import EndpointCheck
from sightline.engine.keys import KeyedRequest
from sightline.engine.open_models import OpenModels
from sightline.engine.request_feed import RequestFeed
from sightline.engine.runner import Runner
from sightline.judging.groups import AnswerLookup, CollectedAnswers
from sightline.judging.panel import JudgePanel


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
        self._opened = opened

    async def ask(self, collected: CollectedAnswers, unjudged: CollectedAnswers) -> None:
        """Send the first requests, then retry those whose reply holds no verdict."""
        known = partial(self.first_requests, collected)
        if self.check is not None and self.counts.sent and self._opened is not None:
            # At the first request, cached replies to later responses of the model were not known.
            await self._new_runner().check(self.check, known, self._opened)
        await self._send(partial(self.first_requests, unjudged), known)
        for attempt in range(1, self._max_attempts):
            if not self.counts.stopped:
                await self._send(partial(self._retries, collected, attempt), known)

    async def ask_early(self, feed: RequestFeed, answered: CollectedAnswers) -> None:
        """Send first requests as they are added, until the feed is closed."""
        assert self._opened is not None, "a judge that is asked while the model answers stays open"
        runner, self._runner = self._new_runner(), None
        await runner.run(feed, self._opened, self.check, partial(self.first_requests, answered))
        if not self.counts.stopped:
            self._runner = runner

    def forget_sent(self) -> None:
        """Forget what `ask_early` sent: the judge is asked about all probes again, which is nothing new."""
        self._runner = None

    async def _send(
        self, requests: Callable[[], Iterable[KeyedRequest]], known: Callable[[], Iterable[KeyedRequest]]
    ) -> None:
        # A runner that ended early takes what it did not send for sent.
        runner, self._runner = self._runner or self._new_runner(), None
        await runner.run(requests(), self._opened, self.check, known)
        if not self.counts.stopped:
            self._runner = runner

    def first_requests(self, collected: CollectedAnswers) -> Iterator[KeyedRequest]:
        """The first request about each case, read anew at each call."""
        return self._panel.requests(collected.groups())

    def _retries(self, collected: CollectedAnswers, attempt: int) -> Iterator[KeyedRequest]:
        return self._panel.retry_requests(collected.groups(), self._answers, attempt)
