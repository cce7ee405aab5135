"""Running a benchmark: plan, ask, judge, conclude."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.budget import Budget
from sightline.engine.counts import Counts
from sightline.engine.keys import KeyedRequest
from sightline.engine.limiter import Limiter
from sightline.engine.runner import Runner, RunnerOptions
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.augment import images_of, in_words
from sightline.evaluation.prepare import (
    Prepared,
    data_of,
    describe,
    judge_sampling,
    make_judges,
    measures_of,
    panel_of,
    partner_options,
    prepare,
)
from sightline.judging.groups import CollectedAnswers
from sightline.judging.judges import Judge
from sightline.judging.text_metrics import identities_of
from sightline.models.augmented import Augmented
from sightline.models.base import Model
from sightline.plan.effective import effective
from sightline.plan.plan import Part, Plan
from sightline.plan.spec import Spec
from sightline.plan.stored_probe import probe_position, read_stored_probes
from sightline.progress import request_progress
from sightline.published import attach
from sightline.report.markdown import report_markdown
from sightline.results.aggregate import EvaluationDescription, aggregate
from sightline.results.fail_if_value import failed
from sightline.results.folder import Folder
from sightline.scoring.scorer import ModelScorer
from sightline.types import ImageRef, MetricValue, Result

STORE_ROWS = 256


class Evaluation(Struct, frozen=True):
    """What came of an evaluation. `unanswered` lists the first probes without an answer, and why, `failed`
    what was found of each condition of `fail_if` that holds."""

    result: Result
    run: int | None
    counts: Counts
    judge_counts: Counts
    unanswered: list[tuple[str, str, str]]
    out: str | None = None
    failed: tuple[str, ...] = ()
    caption_counts: Counts = msgspec.field(default_factory=Counts)

    @property
    def exit_status(self) -> int:
        """0 all answered and judged; 1 some probes or judgements could not be had; 4 a budget was reached;
        5 a condition of `fail_if` holds."""
        if "budget" in [counts.stopped for counts in self.all_counts]:
            return 4
        if self.failed:
            return 5
        return 1 if self.result.errors or self.result.judge_errors else 0

    @property
    def all_counts(self) -> tuple[Counts, ...]:
        """What was asked of the captioner, of the model, and of judges."""
        return self.caption_counts, self.counts, self.judge_counts

    @property
    def metrics(self) -> list[MetricValue]:
        """The numbers, the primary metric over all first."""
        return self.result.metrics

    def frame(self) -> Any:
        """The metrics as a pandas DataFrame, a row each; needs the extra `table`."""
        try:
            import pandas
        except ModuleNotFoundError:
            raise UserError("no pandas", expected="pip install 'sightline[table]'") from None
        return pandas.DataFrame([msgspec.structs.asdict(metric) for metric in self.result.metrics])


async def arun(spec: Spec, *, show_progress: bool = False) -> Evaluation:
    """Run an evaluation: ask what is not known, judge, conclude, write the results folder.

    Raises UserError before the first call where anything is wrong, EnvironmentFailedError where the store or a
    disk fails on the way. Cancelled, it keeps everything answered so far.
    """
    ready = prepare(spec)
    description = describe(ready)
    store = Store.open(spec.store)
    try:
        run = store.start_run(_run_body(ready, description))
        try:
            return await _evaluate(ready, description, store, run, show_progress)
        except UserError:
            # What was refused is no run, whenever that was found out.
            store.drop_run(run)
            raise
    finally:
        store.close()


def plan_of(
    ready: Prepared, store: Store, augmented: Augmented | None = None, *, records: bool = True
) -> Plan:
    """The plan of an evaluation that was prepared; `augmented` are its images where they are told in words,
    `records` is whether it may write to the store."""
    spec, model = ready.spec, ready.models[0]
    part = Part(ready.setting, ready.options.benchmark, model.effective(ready.options.sampling))
    partners = [
        Part(name, options, model.effective(_sampling_of(ready, name)))
        for name, options in partner_options(ready).items()
    ]
    return Plan(
        ready.benchmark,
        ready.samples,
        part,
        partners,
        model,
        store,
        repeats=spec.repeats,
        fresh=spec.fresh,
        augmented=augmented,
        records=records,
    )


def all_images(ready: Prepared) -> dict[str, ImageRef]:
    """Every image that is shown, under the settings that metrics need too, by its path."""
    settings = [ready.options.benchmark, *partner_options(ready).values()]
    return images_of(ready.benchmark, ready.samples, settings)


async def _evaluate(
    ready: Prepared, description: EvaluationDescription, store: Store, run: int, show_progress: bool
) -> Evaluation:
    spec, benchmark = ready.spec, ready.benchmark
    augmented, captioning = None, Counts()
    if ready.augment is not None:
        augmented = await in_words(ready.augment, all_images(ready), store, show_progress=show_progress)
        captioning = ready.augment.counts
    plan = plan_of(ready, store, augmented)
    limiters = {
        model.host: Limiter(model.host, spec.concurrency)
        for models in (ready.models, *ready.judge_models.values())
        for model in models
    }
    counts = Counts()
    per_sample = sum(1 for _ in benchmark.probes(ready.samples[0], ready.options.benchmark))
    counts.total = len(ready.samples) * per_sample * spec.repeats
    async with request_progress(f"{benchmark.name}:{ready.setting}", counts, show_progress=show_progress):
        requests = _requests(plan, store, run)
        await ask(ready, store, ready.models, limiters, spec.model, counts, requests, captioning)
    # Where asking ended early, the rest of the plan still belongs to the run: it counts as unanswered.
    for _ in requests:
        pass
    judges = make_judges(ready)
    for name, humans in ready.humans.items():
        store.add_verdicts(run, [replace(verdict, scorer=name) for verdict in humans.verdicts])
    collected = CollectedAnswers(probes=lambda: read_stored_probes(store, run), answers=store)
    spent = captioning.plus(counts)
    judge_counts = await ask_judges(
        ready, store, judges, collected, limiters, spent, show_progress=show_progress
    )
    with Folder(spec.out) as folder:
        aggregated = aggregate(
            description,
            collected,
            panel_of(ready, judges),
            store,
            measures=measures_of(ready, store, show_progress),
            on_group=folder.write,
        )
        result = attach(aggregated.result, spec.against)
        folder.finish(result, report=report_markdown(result), data=data_of(spec), split=ready.split)
    store.finish_run(run, {**_run_body(ready, description), "counts": msgspec.to_builtins(counts)})
    return Evaluation(
        result,
        run,
        counts,
        judge_counts,
        aggregated.unanswered,
        spec.out,
        failed(ready.wanted, result.metrics),
        captioning,
    )


def _requests(plan: Plan, store: Store, run: int) -> Iterator[KeyedRequest]:
    """What the plan wants asked; on the way its rows are put into the store."""
    pending: list[tuple[int, bytes]] = []
    for chunk in plan.chunks():
        for sample, made in chunk:
            for number, (row, _) in enumerate(made):
                pending.append((probe_position(sample, number), msgspec.json.encode(row)))
        if len(pending) >= STORE_ROWS:
            store.add_probes(run, pending)
            pending = []
        yield from (keyed for _, made in chunk for _, keyed in made if keyed is not None)
    store.add_probes(run, pending)


async def ask_judges(
    ready: Prepared,
    store: Store,
    judges: Sequence[Judge],
    collected: CollectedAnswers,
    limiters: Mapping[str, Limiter],
    spent: Counts,
    *,
    show_progress: bool,
) -> Counts:
    """Ask the models among the judges all that they need, then once more what got no verdict, within what
    `spent` leaves of the budget. Where one ends early the others go on."""
    benchmark = ready.benchmark
    scorer = benchmark.scorer("correct", "model", ready.options.benchmark)
    chances = scorer.chances if isinstance(scorer, ModelScorer) else 1
    total = Counts()
    for judge in judges:
        models = ready.judge_models.get(judge.name)
        if models is None:
            continue
        own, before = Counts(), spent.plus(total)
        async with request_progress(f"judge {judge.name}", own, show_progress=show_progress):
            panel = panel_of(ready, [judge])
            requests = panel.requests(collected.groups())
            await ask(ready, store, models, limiters, judge.name, own, requests, before)
            for draw in range(1, 1 if own.stopped else chances):
                requests = panel.retry_requests(collected.groups(), store, draw)
                await ask(ready, store, models, limiters, judge.name, own, requests, before)
        total = total.plus(own)
    return total


async def ask(
    ready: Prepared,
    store: Store,
    models: Sequence[Model],
    limiters: Mapping[str, Limiter],
    name: str,
    counts: Counts,
    requests: Iterable[KeyedRequest],
    spent: Counts,
) -> None:
    """Ask a model, or a judge, within what `spent` leaves of the budget."""
    spec = ready.spec
    budget = Budget(
        None if spec.max_requests is None else max(0, spec.max_requests - spent.sent),
        None if spec.max_cost is None else max(0.0, spec.max_cost - spent.cost),
        ready.config.price(name),
    )
    options = RunnerOptions(spec.concurrency, budget, spec.retry_errors)
    await Runner(store, models, limiters, options, counts).run(requests)


def _run_body(ready: Prepared, description: EvaluationDescription) -> dict[str, Any]:
    """All that `report` needs to make the judges and the numbers anew; no key is in it."""
    return {
        "description": msgspec.to_builtins(description),
        "judges": {
            name: {
                "identity": models[0].identity,
                "sampling": judge_sampling(ready.spec, models[0]),
                "limits": models[0].capabilities.limits,
            }
            for name, models in ready.judge_models.items()
        },
        "embedder": ready.embedder.identity if ready.embedder else None,
        "texts": identities_of(ready.texts),
    }


def _sampling_of(ready: Prepared, setting: str) -> Mapping[str, Any]:
    """The sampling of a partner setting: its own defaults (else the same), and what the user said."""
    partner = ready.benchmark.settings.get(setting)
    if partner is None:
        return ready.options.sampling
    return effective(ready.benchmark, partner, replace(ready.spec, set={})).sampling
