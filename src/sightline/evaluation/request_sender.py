"""Sends the requests of one evaluation to its model and its judges, within one budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from sightline.engine.account import Account
from sightline.engine.counts import Counts
from sightline.engine.endpoint_check import MODEL_REMEDY, NAMED_REMEDY, CheckPolicy, EndpointCheck
from sightline.engine.keys import KeyedRequest
from sightline.engine.limiter import Limiter
from sightline.engine.open_models import OpenModels
from sightline.engine.runner import Runner, RunnerOptions, calls_at_a_time
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread, run_until_cancelled, until_set
from sightline.engine.token_estimate import CHARACTERS_PER_TOKEN, PIXELS_PER_TOKEN
from sightline.evaluation.batches import batch_notes, connect_batches, live_models
from sightline.evaluation.early_judging import AnsweredSamples, EarlyJudging, may_judge_early
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.judge_requests import JudgeRequests
from sightline.evaluation.judges_to_open import judges_to_open
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.run_account import run_budget
from sightline.judging.groups import CollectedAnswers
from sightline.judging.panel import JudgePanel
from sightline.models.base import Model
from sightline.plan.plan import Plan
from sightline.progress import request_progress


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
        """Prepare to send; nothing is sent yet.

        Args:
            began: Answers that were stored later need no check of their endpoint; None: from now on.
        """
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

    async def __aenter__(self) -> Self:
        """Open nothing yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the judges."""
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
        check = self._endpoint_check(models, MODEL_REMEDY)
        if may_judge_early(prepared):
            planned = CollectedAnswers(probes=plan.probes, answers=self._store.answers)
            self._early = EarlyJudging(self._judges, samples, planned, self._store.answers)
        async with request_progress(prepared.task.name, counts, show_progress=self._show_progress):
            await self._runner(name, models, counts).run(
                requests,
                check=check,
                reread=plan.requests,
                before_sending=partial(self._open_judges, plan) if models[0].capabilities.endpoint else None,
                on_settled=samples.settle,
            )
        await self._close_batches()
        self.notes += check.notes if check is not None else []
        self._note_requests(name, models, counts)
        return counts

    async def ask_judges(
        self, collected: CollectedAnswers, unjudged: CollectedAnswers | None = None
    ) -> Counts:
        """Send the requests of the model judges, then retry those whose reply holds no verdict.

        Where one judge stops early, the others go on.

        Args:
            unjudged: Those that were not judged early, once that has ended; None: all.
        """
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
        concurrency = self._prepared.spec.concurrency
        return {model.host: Limiter(model.host, calls_at_a_time(model, concurrency)) for model in models}

    def _runner(self, name: str, models: Sequence[Model], counts: Counts) -> Runner:
        """What sends to a model within the budget; prices go by `name`."""
        spec, config = self._prepared.spec, self._prepared.config
        batched = connect_batches(models, self._store, counts, show_progress=self._show_progress)
        limits = run_budget(spec)
        options = RunnerOptions(
            spec.concurrency,
            replace(limits, price=config.price(name, in_batches=batched)),
            self._account,
            retry_errors=spec.retry_errors,
            in_batches=batched,
            check_budget=replace(limits, price=config.price(name)),
        )
        return Runner(self._store, models, self._limiters, options, counts)

    async def _close_batches(self) -> None:
        """Forget the batches whose answers are in the store by now."""
        await run_in_thread(self._store.batches.close_answered)

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
        policy = CheckPolicy(remedy, spec.accept_changed)
        return EndpointCheck(self._store, live_models(models), policy, self._began)
