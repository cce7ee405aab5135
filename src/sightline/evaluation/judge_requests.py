"""The requests of one model judge in one evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from sightline.engine.counts import Counts
from sightline.engine.endpoint_check import EndpointCheck
from sightline.engine.keys import KeyedRequest
from sightline.engine.open_models import OpenModels
from sightline.engine.runner import Runner
from sightline.engine.threads import run_in_thread
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
        self._opened = opened

    async def ask(self, collected: CollectedAnswers, unjudged: CollectedAnswers) -> None:
        """Send the first requests, then retry those whose reply holds no verdict.

        Args:
            collected: The answers to judge.
            unjudged: Those about which the judge was not asked yet.
        """
        await self._send(partial(self._first_requests, unjudged))
        for attempt in range(1, self._max_attempts):
            if not self.counts.stopped:
                await self._send(partial(self._retries, collected, attempt))

    async def ask_about(self, probes: Sequence[StoredProbe]) -> None:
        """Send the first requests about some probes.

        Args:
            probes: Probes of whole samples, whose answers the store has.
        """
        await self._send(partial(self._first_requests, self._collected(probes)))

    async def must_wait(self, probes: Sequence[StoredProbe]) -> bool:
        """Decide whether the judge cannot be asked yet, because a check of its endpoint needs more requests.

        Args:
            probes: More probes of whole samples, whose answers the store has.

        Returns:
            Whether all probes so far must wait.
        """
        if self.check is None:
            return False
        requests = partial(self._first_requests, self._collected(probes))
        return await self.check.must_wait(await run_in_thread(lambda: list(requests())))

    async def _send(self, requests: Callable[[], Iterable[KeyedRequest]]) -> None:
        # A runner that ended early takes what it did not send for sent.
        runner, self._runner = self._runner or self._new_runner(), None
        await runner.run(requests(), self._opened, self.check, requests)
        if not self.counts.stopped:
            self._runner = runner

    def _first_requests(self, collected: CollectedAnswers) -> Iterator[KeyedRequest]:
        return self._panel.requests(collected.groups())

    def _retries(self, collected: CollectedAnswers, attempt: int) -> Iterator[KeyedRequest]:
        return self._panel.retry_requests(collected.groups(), self._answers, attempt)

    def _collected(self, probes: Sequence[StoredProbe]) -> CollectedAnswers:
        return CollectedAnswers(probes=lambda: probes, answers=self._answers)
