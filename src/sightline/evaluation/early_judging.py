"""Asks judges while the model still answers: a run then takes the longer of both times, not their sum."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.answered_samples import AnsweredSample, AnsweredSamples
from sightline.evaluation.judge_requests import JudgeRequests
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.run_account import run_budget

LOOK_AGAIN_SECONDS = 0.2
"""The time between two looks for samples whose answers are complete, at least."""
MOST_OF_TIME = 0.02
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

    The rest is left to the end of the run where the store has a reply from before the run, since the endpoint
    must then be checked first, and after an error, which is raised there if it persists.
    """

    def __init__(self, judges: Sequence[JudgeRequests], samples: AnsweredSamples) -> None:
        """Start.

        Args:
            judges: The judges.
            samples: The samples of the run.
        """
        self._judges = judges
        self._samples = samples
        self._is_ending = False
        self._task = asyncio.create_task(self._run())

    async def finish(self) -> None:
        """Wait for the replies to the requests that were sent; ask about no more samples."""
        self._is_ending = True
        await self._task

    async def cancel(self) -> None:
        """Stop at once; the replies so far are kept."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while not self._is_ending:
            began = clock()
            samples = await run_in_thread(self._samples.take)
            if not samples:
                await asyncio.sleep(max(LOOK_AGAIN_SECONDS, (clock() - began) / MOST_OF_TIME))
            elif await self._ask(samples):
                self._samples.record_judged(samples)
            else:
                return

    async def _ask(self, samples: Sequence[AnsweredSample]) -> bool:
        """Ask every judge about samples; False if they are left to the end of the run."""
        probes = [probe for sample in samples for probe in sample.probes]
        failed = False
        try:
            for judge in self._judges:
                if await judge.must_check(probes):
                    return False
            async with asyncio.TaskGroup() as tasks:
                for judge in self._judges:
                    tasks.create_task(judge.ask_about(probes))
        except* (UserError, EnvironmentFailedError):
            failed = True
        return not failed and not any(judge.counts.stopped for judge in self._judges)
