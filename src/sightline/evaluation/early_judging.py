"""Asks judges while the model still answers: a run then takes the longer of both times, not their sum."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.answered_samples import (
    PROBES_PER_LOT,
    AnsweredSample,
    AnsweredSamples,
    probes_of,
)
from sightline.evaluation.judge_requests import JudgeRequests
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.run_account import run_budget
from sightline.judging.groups import CollectedAnswers

LOOK_AGAIN_SECONDS = 0.2
"""The time between two looks for samples whose answers are complete, at least."""
MOST_OF_TIME = 0.1
"""The share of the time that these looks may take."""


def may_judge_early(prepared: Prepared) -> bool:
    """Decide whether judges may be asked while the model still answers.

    Args:
        prepared: The evaluation.

    Returns:
        False with a budget, which is the model's first; in batches; and where a judge needs the memory or the
        server that the model uses.
    """
    spec, judges = prepared.spec, prepared.judges.models.values()
    hosts = {model.host for model in prepared.models.models}
    return (
        bool(judges)
        and not spec.batch
        and not run_budget(spec).is_limited
        and all(
            model.capabilities.endpoint and model.host not in hosts for models in judges for model in models
        )
    )


class EarlyJudging:
    """Asks judges about samples as soon as their answers are complete.

    After an error, the end of the run asks about all samples, where an error that persists is raised.
    """

    def __init__(
        self, judges: Sequence[JudgeRequests], samples: AnsweredSamples, answered: CollectedAnswers
    ) -> None:
        """Start.

        Args:
            judges: The judges.
            samples: The samples of the run.
            answered: All of its probes, with the answers that the store has so far.
        """
        self._judges = judges
        self._answered = answered
        self._samples = samples
        self._is_ending = False
        self._task = asyncio.create_task(self._run())

    async def finish(self) -> None:
        """Ask about the rest of the samples whose answers are complete, and wait for all replies."""
        self._is_ending = True
        await self._task

    async def cancel(self) -> None:
        """Stop at once; the replies so far are kept."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        has_failed = False
        try:
            async with asyncio.TaskGroup() as tasks:
                for judge in self._judges:
                    tasks.create_task(judge.ask_added(self._answered))
                await self._add_samples()
        except* (UserError, EnvironmentFailedError):
            has_failed = True
        if has_failed or self._is_stopped:
            self._samples.forget_judged()
            for judge in self._judges:
                judge.forget_sent()

    async def _add_samples(self) -> None:
        """Add samples for the judges until the run ends, or a host is given up."""
        clock = asyncio.get_running_loop().time
        try:
            while not self._is_stopped:
                began, is_ending = clock(), self._is_ending
                has_room = all(judge.waiting < PROBES_PER_LOT for judge in self._judges)
                new = await run_in_thread(self._samples.take) if has_room else []
                if new:
                    self._ask(new)
                elif is_ending and has_room:
                    return
                else:
                    await asyncio.sleep(max(LOOK_AGAIN_SECONDS, (clock() - began) / MOST_OF_TIME))
        finally:
            for judge in self._judges:
                judge.close()

    def _ask(self, samples: Sequence[AnsweredSample]) -> None:
        probes = probes_of(samples)
        for judge in self._judges:
            judge.add(probes)
        self._samples.record_judged(samples)

    @property
    def _is_stopped(self) -> bool:
        return any(judge.counts.stopped for judge in self._judges)
