"""Asks judges while the model still answers: a run then takes the longer of both times, not their sum.

The runner says which requests have their results. When all of a sample have, the judges' requests about it
are added to their queues.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from threading import Lock
from typing import NamedTuple

from sightline.engine.answers import Answers
from sightline.engine.request_feed import RequestFeed
from sightline.engine.threads import run_in_thread
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.judge_requests import JudgeRequests
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.run_account import run_budget
from sightline.judging.groups import CollectedAnswers
from sightline.plan.plan import PlannedProbe
from sightline.plan.stored_probe import StoredProbe, sample_index

HELD = 4096
"""Probes that wait for their answers at most, 3 KB each; others are judged at the end."""
SAMPLES_PER_LOT = 128
"""Samples that are looked up, and added to the queues of the judges, together."""


def may_judge_early(prepared: Prepared) -> bool:
    """Decide whether judges may be asked while the model still answers."""
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


class Sample(NamedTuple):
    """A sample: its number, which is its index in the run, and its probes."""

    number: int
    probes: list[StoredProbe]


class AnsweredSamples:
    """Finds samples whose requests all have results, and keeps which of them the judges are asked about.

    A thread adds samples as they are planned; everything else happens on the event loop.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[str, list[int]] = defaultdict(list)
        self._unanswered: dict[int, set[str]] = {}
        self._probes: dict[int, list[StoredProbe]] = {}
        self._held = 0
        self._complete: list[Sample] = []
        self._changed = asyncio.Event()
        self._is_closed = False
        self._judged: set[int] = set()

    def add(self, planned: Sequence[PlannedProbe]) -> None:
        """Add the samples of a chunk of the plan, as far as there is room."""
        for number, members in groupby(planned, key=lambda one: sample_index(one.position)):
            probes = [one.probe for one in members]
            keys = {probe.key for probe in probes if probe.error is None}
            with self._lock:
                if keys and self._held + len(probes) <= HELD:
                    self._held += len(probes)
                    self._probes[number], self._unanswered[number] = probes, keys
                    for key in keys:
                        self._waiting[key].append(number)

    def settle(self, keys: Iterable[str]) -> None:
        """Complete the samples that waited for nothing but these results."""
        with self._lock:
            for key in keys:
                for number in self._waiting.pop(key, ()):
                    unanswered = self._unanswered[number]
                    unanswered.discard(key)
                    if not unanswered:
                        del self._unanswered[number]
                        self._complete.append(Sample(number, self._probes.pop(number)))
        if self._complete:
            self._changed.set()

    def close(self) -> None:
        """The model was asked everything: no more samples become complete."""
        self._is_closed = True
        self._changed.set()

    async def take(self) -> list[Sample]:
        """Wait for complete samples.

        Returns:
            Some of them, none of which is returned again; empty after `close`, when all were taken.
        """
        if not self._complete and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        with self._lock:
            taken, self._complete = self._complete[:SAMPLES_PER_LOT], self._complete[SAMPLES_PER_LOT:]
            self._held -= sum(len(sample.probes) for sample in taken)
        return taken

    def record_judged(self, samples: Iterable[Sample]) -> None:
        """Record that the judges are asked about samples."""
        self._judged.update(sample.number for sample in samples)

    def forget_judged(self) -> None:
        """Forget what was recorded: the judges must be asked about all samples."""
        self._judged.clear()

    def is_judged(self, index: int) -> bool:
        """Whether the judges are asked about the sample with this index in the run."""
        return index in self._judged


class EarlyJudging:
    """Asks judges about samples as soon as their answers are complete.

    After an error, the end of the run asks about all samples, where an error that persists is raised.
    """

    def __init__(
        self,
        judges: Sequence[JudgeRequests],
        samples: AnsweredSamples,
        planned: CollectedAnswers,
        answers: Answers,
    ) -> None:
        self._samples = samples
        self._judges = judges
        self._planned = planned
        self._answers = answers
        self._task = asyncio.create_task(self._run())

    async def finish(self) -> None:
        """Ask about the rest of the samples whose answers are complete, and wait for all replies."""
        self._samples.close()
        await self._task

    async def cancel(self) -> None:
        """Stop at once; the replies so far are kept."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        has_failed = False
        feeds = [RequestFeed() for _ in self._judges]
        try:
            async with asyncio.TaskGroup() as tasks:
                asking = [
                    tasks.create_task(judge.ask_early(feed, self._planned))
                    for judge, feed in zip(self._judges, feeds, strict=True)
                ]
                adding = tasks.create_task(self._add_samples(feeds))
                # A judge whose host is given up ends before its feed.
                await asyncio.wait([adding, *asking], return_when=asyncio.FIRST_COMPLETED)
                adding.cancel()
                for feed in feeds:
                    feed.close()
        except* (UserError, EnvironmentFailedError):
            has_failed = True
        if has_failed or any(judge.counts.stopped for judge in self._judges):
            self._samples.forget_judged()
            for judge in self._judges:
                judge.forget_sent()

    async def _add_samples(self, feeds: Sequence[RequestFeed]) -> None:
        """Add requests about complete samples to the feed of each judge, until the model was asked all."""
        while complete := await self._samples.take():
            answered = await run_in_thread(answered_only, complete, self._answers)
            about = self._collected(answered)
            for judge, feed in zip(self._judges, feeds, strict=True):
                feed.add(judge.first_requests(about))
            self._samples.record_judged(answered)
            for feed in feeds:
                await feed.all_read()

    def _collected(self, samples: Sequence[Sample]) -> CollectedAnswers:
        probes = [probe for sample in samples for probe in sample.probes]
        return CollectedAnswers(probes=lambda: probes, answers=self._answers)


def answered_only(samples: Sequence[Sample], answers: Answers) -> list[Sample]:
    """The samples without a failure, also in the settings that they are compared with.

    The others are left for the end: another process may ask for them again meanwhile.
    """
    needed = [(sample, set(_keys(sample.probes))) for sample in samples]
    keys = sorted(set().union(*(keys for _, keys in needed)))
    answered = answers.settled(keys, retry_errors=True)
    return [sample for sample, keys in needed if keys <= answered]


def _keys(probes: Iterable[StoredProbe]) -> Iterator[str]:
    """The keys of all answers that judging a sample may read."""
    for probe in probes:
        if probe.error is None:
            yield probe.key
        for others in probe.partners.values():
            yield from _keys(others)
