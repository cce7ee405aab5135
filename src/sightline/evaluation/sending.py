"""Sends the requests of an evaluation: to its model, and to its judges, early or when the model is done."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, Self

from msgspec.structs import replace

from sightline.engine.endpoint_check import MODEL_REMEDY, NAMED_REMEDY, EndpointCheck
from sightline.engine.limits import (
    CHARACTERS_PER_TOKEN,
    PIXELS_PER_TOKEN,
    Account,
    Budget,
    Counts,
    Limiter,
)
from sightline.engine.runner import Runner, RunnerOptions, limiter_of
from sightline.engine.selector import OpenModels, RequestFeed
from sightline.errors import EnvironmentFailedError, UserError
from sightline.evaluation.batches import BatchJournal, batch_notes, connect_batches, keep_all, live_models
from sightline.evaluation.judges import JudgePanel
from sightline.evaluation.options import reasoning_names
from sightline.evaluation.plan import (
    AnswerLookup,
    CollectedAnswers,
    Plan,
    PlannedProbe,
    StoredProbe,
    sample_index,
)
from sightline.evaluation.prepare import Prepared, prepared_panel
from sightline.evaluation.recorded_run import RefusedLateError
from sightline.models.base import Model
from sightline.progress import request_progress
from sightline.store.answers import Answers, KeyedRequest
from sightline.store.database import run_in_thread, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.types import Answer

if TYPE_CHECKING:
    from sightline.engine.server_check import ImageCheck


LEAST_REQUESTS = 200
"""Smaller runs do not ask whether the endpoint keeps images apart: that takes 9 requests, or 33."""


def checks_images(prepared: Prepared) -> bool:
    """Whether a run that sends requests asks first whether its endpoint keeps images apart."""
    models, spec = prepared.models, prepared.spec
    return (
        spec.canary != "off"
        and not spec.batch
        and models.replacement is None
        and any(model.capabilities.endpoint and model.capabilities.images for model in models.models)
        and prepared.survey.with_images * spec.repeats >= LEAST_REQUESTS
    )


class RequestSender:
    """Sends requests and keeps what the evaluation has spent so far.

    The model and the judges share one limiter per host, and the account of --max-requests and --max-cost.
    Use it as an async context manager: it closes the judges that it has opened.

    `notes` are what the checks of endpoints found, `asked` counts the requests to the model so far.
    """

    def __init__(
        self,
        prepared: Prepared,
        store: Store,
        account: Account,
        *,
        began: float | None = None,
        show_progress: bool,
    ) -> None:
        """Nothing is sent yet; `began` None: only answers stored from now on need no check."""
        self._began = began
        self._prepared = prepared
        self._store = store
        self._account = account
        self._show_progress = show_progress
        self.notes: list[str] = []
        self.asked = Counts()
        self._stack = AsyncExitStack()
        self._opened_judges = OpenModels(self._stack)
        self._limiters = self._new_limiters(
            model for models in (prepared.models.models, *prepared.judges.models.values()) for model in models
        )
        panel = prepared_panel(prepared)
        self._judges = [
            self._judge_requests(replace(panel, judges=[judge]), judge.name)
            for judge in panel.judges
            if judge.name in prepared.judges.models
        ]
        self._early: EarlyJudging | None = None
        models = prepared.models.models
        self._model_check = self._endpoint_check(models, MODEL_REMEDY) if models else None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._early is not None:
                await self._early.cancel()
        finally:
            await self._stack.aclose()

    async def ask_model(
        self, requests: Iterator[KeyedRequest], plan: Plan, samples: AnsweredSamples
    ) -> Counts:
        """Send the requests of the probes that have no answer yet.

        Judges are asked meanwhile about the samples whose answers are complete, where they can; `ask_judges`
        ends that.
        """
        prepared = self._prepared
        self.asked = counts = Counts(total=prepared.survey.probes * prepared.spec.repeats)
        name, models = prepared.spec.model, prepared.models.models
        check, image_check = self._model_check, self._image_check()
        if may_judge_early(prepared):
            tags = reasoning_names(prepared.spec)
            answers = self._store.answers
            planned = CollectedAnswers(probes=plan.probes, answers=answers, reasoning_tags=tags)
            self._early = EarlyJudging(self._judges, samples, planned, answers)
        async with request_progress(prepared.task.name, counts, show_progress=self._show_progress):
            await self._runner(name, models, counts).run(
                requests,
                check=check,
                reread=plan.requests,
                before_sending=partial(self._open_judges, plan) if models[0].capabilities.endpoint else None,
                on_settled=samples.settle,
                image_check=image_check,
            )
        await self._close_batches()
        self.notes += check.notes if check is not None else []
        self.notes += image_check.notes if image_check is not None else []
        self._note_requests(name, models, counts)
        return counts

    async def ask_truncated_again(self, plan: Plan, counts: Counts) -> None:
        """Send the second requests of truncated answers, unless the run has stopped; adds to `counts`."""
        if counts.stopped:
            return
        name, models = self._prepared.spec.model, self._prepared.models.models
        check = self._model_check
        noted = len(check.notes) if check is not None else 0

        def requests() -> Iterator[KeyedRequest]:
            for keyed in plan.retries(self._store.answers):
                counts.total += 1
                yield keyed

        async with request_progress(
            f"{self._prepared.task.name}, truncated", counts, show_progress=self._show_progress
        ):
            await self._runner(name, models, counts).run(requests(), check=check, reread=plan.requests)
        await self._close_batches()
        self.notes += check.notes[noted:] if check is not None else []

    async def ask_judges(
        self, collected: CollectedAnswers, unjudged: CollectedAnswers | None = None
    ) -> Counts:
        """Send the judges' requests, retry replies without a verdict; one that stops leaves the others."""
        total = Counts()
        for judge in self._judges:
            async with request_progress(
                f"judge {judge.name}", judge.counts, show_progress=self._show_progress
            ):
                await self._end_early_judging()
                await judge.ask(collected, unjudged or collected)
            await self._close_batches()
            self.notes += judge.check.notes if judge.check is not None else []
            self._note_requests(judge.name, self._prepared.judges.models[judge.name], judge.counts)
            total = total.plus(judge.counts)
        return total

    @contextmanager
    def late_errors(self, kept: str) -> Iterator[None]:
        """Say of an error how many requests were sent before, and where their answers, if any, are kept."""
        try:
            yield
        except UserError as error:
            replacement = self._prepared.models.replacement
            counts = [self.asked, *(judge.counts for judge in self._judges)]
            counts += [replacement.counts] if replacement is not None else []
            sent = sum(one.sent - one.checks for one in counts)
            answered = sum(one.answered for one in counts)
            if not answered:
                raise
            message, *quoted = str(error).split("\n")
            before = f"requests sent before this was found: {sent:,}, answers kept: {answered:,} ({kept})"
            raise RefusedLateError(f"{message}; {before}", quoted=quoted) from error

    async def _end_early_judging(self) -> None:
        """Wait for the last replies; a host that was given up meanwhile gets another chance."""
        if self._early is None:
            return
        await self._early.finish()
        self._early = None
        for judge in self._judges:
            if judge.counts.stopped:
                judge.counts.stopped = ""
                self._limiters |= self._new_limiters(self._prepared.judges.models[judge.name])

    def _judge_requests(self, panel: JudgePanel, name: str) -> JudgeRequests:
        counts, models = Counts(), self._prepared.judges.models[name]
        return JudgeRequests(
            panel,
            self._store.answers,
            counts,
            partial(self._runner, name, models, counts),
            self._opened(models),
            self._endpoint_check(models, NAMED_REMEDY),
        )

    async def _open_judges(self, plan: Plan) -> None:
        """Open the judges: one that cannot be used is reported before the first answer is paid for.

        One that no answer can reach is not opened. Endpoints stay open. Weights are loaded again when they
        are needed: memory has room for one model.
        """
        names = await run_until_cancelled(
            lambda stop: judges_to_open(self._prepared, lambda: until_set(plan.probes(), stop))
        )
        for name, models in self._prepared.judges.models.items():
            if name in names:
                async with AsyncExitStack() as closed:
                    await (self._opened(models) or OpenModels(closed)).open_usable(models, Counts())

    def _opened(self, models: Sequence[Model]) -> OpenModels | None:
        """Where a judge stays open; None for one that needs memory, here or on a cluster."""
        return self._opened_judges if models[0].capabilities.endpoint else None

    def _new_limiters(self, models: Iterable[Model]) -> dict[str, Limiter]:
        return {model.host: limiter_of(model, self._prepared.spec.concurrency) for model in models}

    def _runner(self, name: str, models: Sequence[Model], counts: Counts) -> Runner:
        """What sends to a model within the budget; prices go by `name`."""
        spec, config = self._prepared.spec, self._prepared.config
        batched = connect_batches(models, self._store, counts, show_progress=self._show_progress)
        limits = Budget(spec.max_requests, spec.max_cost)
        options = RunnerOptions(
            spec.concurrency,
            replace(limits, price=config.price(name, in_batches=batched)),
            self._account,
            retry_errors=spec.retry_errors,
            held_back=keep_all if batched else BatchJournal(self._store).held,
            check_budget=replace(limits, price=config.price(name)),
        )
        return Runner(self._store, models, self._limiters, options, counts)

    async def _close_batches(self) -> None:
        """Forget the batches whose answers are in the store by now."""
        await run_in_thread(BatchJournal(self._store).close_answered)

    def _note_requests(self, name: str, models: Sequence[Model], counts: Counts) -> None:
        """Say which cost is based on estimates or other prices, and which requests were not sent."""
        self.notes += batch_notes(name, models, self._prepared.config, counts)
        if number := counts.spending.estimated:
            self.notes.append(
                f"{name}: {number:,} of {counts.answered:,} answers came without tokens; their cost is an"
                f" estimate by {CHARACTERS_PER_TOKEN} characters or {PIXELS_PER_TOKEN} pixels per token"
            )

    def _endpoint_check(self, models: Sequence[Model], remedy: str) -> EndpointCheck | None:
        """The check of a model; None if --fingerprint is off, or if the model is no endpoint."""
        spec = self._prepared.spec
        if spec.fingerprint == "off" or not models[0].capabilities.endpoint:
            return None
        return EndpointCheck(
            self._store,
            live_models(models),
            remedy,
            accept_changed=spec.accept_changed,
            began=self._began,
        )

    def _image_check(self) -> ImageCheck | None:
        """The check that endpoints keep images apart; None for a run in batches, or too small for it."""
        if not checks_images(self._prepared):
            return None
        from sightline.engine.server_check import ImageCheck  # small runs need none of it

        models = live_models(self._prepared.models.models)
        return ImageCheck(models, stops=self._prepared.spec.canary == "stop")


# -- Asks judges while the model still answers: a run then takes the longer of both times, not their sum

MOST_WAITING = 4096
"""Probes that wait for their answers at most, 3 KB each; others are judged at the end."""
SAMPLES_PER_LOT = 128
"""Samples that are looked up, and added to the queues of the judges, together."""


def may_judge_early(prepared: Prepared) -> bool:
    """Decide whether judges may be asked while the model still answers.

    Not with a budget, which is the model's first; not in batches; not where a judge needs the memory or the
    server that the model uses.
    """
    spec, judges = prepared.spec, prepared.judges.models.values()
    hosts = {model.host for model in prepared.models.models}
    return (
        bool(judges)
        and not spec.batch
        and spec.max_requests is None
        and spec.max_cost is None
        and all(
            model.capabilities.endpoint and model.host not in hosts for models in judges for model in models
        )
    )


class AnsweredSample(NamedTuple):
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
        self._complete: list[AnsweredSample] = []
        self._changed = asyncio.Event()
        self._is_closed = False
        self._judged: set[int] = set()

    def add(self, planned: Sequence[PlannedProbe]) -> None:
        """Add the samples of a chunk of the plan, as far as there is room."""
        for number, members in groupby(planned, key=lambda one: sample_index(one.position)):
            probes = [one.probe for one in members]
            keys = {probe.key for probe in probes if probe.error is None}
            with self._lock:
                if keys and self._held + len(probes) <= MOST_WAITING:
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
                        self._complete.append(AnsweredSample(number, self._probes.pop(number)))
        if self._complete:
            self._changed.set()

    def close(self) -> None:
        """The model was asked everything: no more samples become complete."""
        self._is_closed = True
        self._changed.set()

    async def take(self) -> list[AnsweredSample]:
        """Wait for complete samples, none of which comes twice; empty when all were taken."""
        if not self._complete and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        with self._lock:
            taken, self._complete = self._complete[:SAMPLES_PER_LOT], self._complete[SAMPLES_PER_LOT:]
            self._held -= sum(len(sample.probes) for sample in taken)
        return taken

    def record_judged(self, samples: Iterable[AnsweredSample]) -> None:
        self._judged.update(sample.number for sample in samples)

    def forget_judged(self) -> None:
        """Forget what was recorded: the judges must be asked about all samples."""
        self._judged.clear()

    def is_judged(self, index: int) -> bool:
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

    def _collected(self, samples: Sequence[AnsweredSample]) -> CollectedAnswers:
        probes = [probe for sample in samples for probe in sample.probes]
        return replace(self._planned, probes=lambda: probes)


def answered_only(samples: Sequence[AnsweredSample], answers: Answers) -> list[AnsweredSample]:
    """The samples without a failure, also in the settings that they are compared with.

    The others are left for the end: another process may ask for them again meanwhile.
    """
    needed = [(sample, set(_keys(sample.probes))) for sample in samples]
    keys = sorted(set().union(*(keys for _, keys in needed)))
    answered = answers.settled(keys, retry_errors=True)
    return [sample for sample, keys in needed if keys <= answered]


def _keys(probes: Iterable[StoredProbe]) -> Iterator[str]:
    for probe in probes:
        if probe.error is None:
            yield probe.key
        for others in probe.partners.values():
            yield from _keys(others)


# -- The requests of one model judge in one evaluation


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
        """`opened` is None if the judge is opened for each attempt, `check` None for no check."""
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
        return self._panel.requests(collected.groups_to_judge())

    def _retries(self, collected: CollectedAnswers, attempt: int) -> Iterator[KeyedRequest]:
        return self._panel.retry_requests(collected.groups_to_judge(), self._answers, attempt)


# -- The model judges that an answer can reach: they must be usable before the first one is paid for


class _AssumedAnswers:
    """An answer to every request, like no other one: equal answers need no judge."""

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer]:
        return {key: Answer(key) for key in keys}


def judges_to_open(prepared: Prepared, probes: Callable[[], Iterable[StoredProbe]]) -> set[str]:
    """Find the model judges that may be asked.

    Others are named in vain, for example where rules decide all cases of a benchmark. Their requests are made
    as if every probe were answered, up to the first one of each judge.
    """
    panel = prepared_panel(prepared)
    waiting = {
        judge.name: replace(panel, judges=[judge])
        for judge in panel.judges
        if judge.name in prepared.judges.models
    }
    found: set[str] = set()
    if waiting:
        for group in CollectedAnswers(probes=probes, answers=_AssumedAnswers()).groups():
            reached = [name for name, one in waiting.items() if any(True for _ in one.requests([group]))]
            found.update(reached)
            for name in reached:
                del waiting[name]
            if not waiting:
                break
    return found
