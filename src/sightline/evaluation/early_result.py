"""Judges by rules and counts while the model answers: only the last answers are left to judge at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from itertools import chain, islice
from threading import Event
from types import TracebackType
from typing import Self

from sightline.engine.answers import Answers
from sightline.engine.store import Store
from sightline.engine.threads import raise_if_set, run_in_thread
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.answered_samples import AnsweredSamples, probes_of
from sightline.evaluation.judge_and_write import Judged, line_writer
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.prepared import Prepared
from sightline.judging.groups import FEW_PROBES, answered_groups
from sightline.judging.judges import judge_kind
from sightline.plan.stored_probe import read_stored_probes
from sightline.results.description import EvaluationDescription
from sightline.results.folder import ResultsFolder
from sightline.results.result_cache import LineRecorder
from sightline.types import Answer, Failure, Group

LOOK_AGAIN_SECONDS = 0.1
"""The time between two looks for the next samples whose answers are complete."""


def may_count_early(prepared: Prepared) -> bool:
    """Decide whether answers may be judged and counted while the model gives others.

    Args:
        prepared: The evaluation.

    Returns:
        True if rules alone judge the answers of an endpoint, no model measures them, and they are few enough
        to be counted in one pass.
    """
    spec, measures = prepared.spec, prepared.measures
    return (
        [judge_kind(judge) for judge in spec.judge] == ["rules"]
        and measures.embedder is None
        and not measures.text_metrics
        and not spec.batch
        and prepared.models.models[0].capabilities.endpoint
        and prepared.survey.probes * spec.repeats <= FEW_PROBES
    )


class AnswersSoFar:
    """The answers of a store, which remembers what had no answer when it was looked up."""

    def __init__(self, answers: Answers) -> None:
        """Start without a look-up.

        Args:
            answers: The answers of the store.
        """
        self._answers = answers
        self._others: dict[str, Failure | None] = {}

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """Look up requests.

        Args:
            keys: Request keys.

        Returns:
            The answers and failures under these keys; absent keys are left out.
        """
        found = self._answers.look_up(keys)
        for key in keys:
            if not isinstance(result := found.get(key), Answer):
                self._others.setdefault(key, result)
        return found

    def are_current(self) -> bool:
        """Compare with the store now: an answer stays, but another process may ask for the others again.

        Returns:
            Whether a look-up of the same keys finds the same.
        """
        failures = {key: failure for key, failure in self._others.items() if failure is not None}
        return self._answers.look_up(list(self._others)) == failures


class EarlyResult:
    """Judges and counts in a thread of its own, sample by sample in their order.

    It waits for the next sample until its answers are complete or the model was asked everything.

    Use it as an async context manager: the end stops the thread, and removes a folder that is not complete.
    """

    def __init__(
        self,
        prepared: Prepared,
        description: EvaluationDescription,
        store: Store,
        run: int,
        samples: AnsweredSamples,
    ) -> None:
        """Prepare it; nothing is judged before `start`.

        Args:
            prepared: The evaluation.
            description: What the result reports about it; its notes may change later.
            store: The store of the run.
            run: The number of the run.
            samples: The samples of the run.
        """
        self._samples = samples
        self._prepared = prepared
        self._description = description
        self._store = store
        self._answers = AnswersSoFar(store.answers)
        self._run = run
        self._has_asked, self._stop = Event(), Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sightline-judge")
        self._judged: Future[Judged] | None = None
        self._folders = ExitStack()

    async def __aenter__(self) -> Self:
        """Do nothing yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread and close the folder."""
        self._stop.set()
        self._has_asked.set()
        await run_in_thread(self._close)

    def start(self) -> None:
        """Begin; the first answers are on their way."""
        self._judged = self._thread.submit(self._judge)

    async def finish(self) -> Judged | None:
        """Judge the rest: the run has all its probes, and the model was asked everything.

        Returns:
            The counted answers and the folder with their lines; None if all must be judged at the end: it did
            not begin, or an error ended it. At the end, the error is raised if it persists.
        """
        self._has_asked.set()
        if self._judged is None:
            return None
        try:
            return await asyncio.wrap_future(self._judged)
        except (UserError, EnvironmentFailedError):
            return None

    def _judge(self) -> Judged:
        groups = self._groups()
        # A run that is refused or cancelled before its first answer makes no folder.
        first = list(islice(groups, 1))
        # It imports numpy, which would hold up the first requests.
        from sightline.results.aggregate import count_answers

        folder = self._folders.enter_context(ResultsFolder(self._prepared.spec.out))
        parts: list[bytes] = []
        recorder = LineRecorder(partial(self._store.runs.chunks, self._run), parts.append)
        counted = count_answers(
            self._description,
            lambda: chain(first, groups),
            prepared_panel(self._prepared),
            self._store.answers,
            stretches=None,
            on_group=line_writer(folder, self._stop, recorder.add),
        )
        recorder.finish()
        return Judged(counted, folder, self._answers.are_current, parts)

    def _groups(self) -> Iterator[Group]:
        """The groups of the run: those of samples with all answers, then the rest as the store has it."""
        samples, has_asked = self._samples, False
        while not has_asked:
            has_asked = self._has_asked.is_set()
            while taken := samples.take_next():
                yield from answered_groups(probes_of(taken), self._answers)
            raise_if_set(self._stop)
            self._has_asked.wait(LOOK_AGAIN_SECONDS)
        if samples.following < self._prepared.survey.samples:
            rest = read_stored_probes(self._store, self._run, without=lambda index: index < samples.following)
            yield from answered_groups(rest, self._answers)

    def _close(self) -> None:
        self._thread.shutdown()
        if self._judged is not None and not self._judged.cancelled():
            self._judged.exception()
        self._folders.close()
