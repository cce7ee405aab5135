"""Running a benchmark: plan, ask, judge, conclude."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sightline.engine.budget import Budget
from sightline.engine.limiter import Limiter
from sightline.engine.progress import Progress
from sightline.engine.runner import Counts, Keyed, Runner
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation.conclude import Description, conclude
from sightline.evaluation.groups import graded_partners, judge_requests, unjudged
from sightline.evaluation.plan import Part, Plan, Row, place
from sightline.evaluation.prepare import (
    Prepared,
    data_of,
    describe,
    judge_sampling,
    make_judges,
    partner_options,
    prepare,
    similarity_of,
)
from sightline.evaluation.results import Folder
from sightline.evaluation.spec import Spec, effective
from sightline.models.base import Model
from sightline.report.published import attach
from sightline.types import MetricValue, Result

STORE_ROWS = 256


class Evaluation(Struct, frozen=True):
    """What came of an evaluation. `unanswered` lists the first probes without an answer, and why."""

    result: Result
    run: int | None
    counts: Counts
    judge_counts: Counts
    unanswered: list[tuple[str, str, str]]
    out: str | None = None

    @property
    def exit_status(self) -> int:
        """0 all answered and judged; 1 some probes or judgements could not be had; 4 a budget was reached."""
        if "budget" in (self.counts.stopped, self.judge_counts.stopped):
            return 4
        return 1 if self.result.errors or self.result.judge_errors else 0

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

    Raises UserError before the first call where anything is wrong, SurroundingsError where the store or a
    disk fails on the way. Cancelled, it keeps everything answered so far.
    """
    ready = prepare(spec)
    store = Store.open(spec.store)
    try:
        return await _evaluate(ready, store, show_progress)
    finally:
        store.close()


def plan_of(ready: Prepared, store: Store, *, records: bool = True) -> Plan:
    """The plan of an evaluation that was prepared; `records` is whether it may write to the store."""
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
        records=records,
    )


async def _evaluate(ready: Prepared, store: Store, show_progress: bool) -> Evaluation:
    spec, benchmark = ready.spec, ready.benchmark
    description = describe(ready)
    run = store.start_run(_run_body(ready, description))
    plan = plan_of(ready, store)
    limiters = {
        model.host: Limiter(model.host, spec.concurrency)
        for models in (ready.models, *ready.judge_models.values())
        for model in models
    }
    counts = Counts()
    progress = Progress(f"{benchmark.name}:{ready.setting}", shown=show_progress)
    per_sample = sum(1 for _ in benchmark.probes(ready.samples[0], ready.options.benchmark))
    counts.total = len(ready.samples) * per_sample * spec.repeats
    async with progress.of(counts):
        requests = _requests(plan, store, run)
        await ask(ready, store, ready.models, limiters, spec.model, counts, requests, Counts())
    # Where asking ended early, the rest of the plan still belongs to the run: it counts as unanswered.
    for _ in requests:
        pass
    judges = make_judges(ready)
    for name, people in ready.people.items():
        store.add_verdicts(run, [replace(verdict, scorer=name) for verdict in people.verdicts])
    judge_counts = Counts()
    graded = graded_partners(benchmark.metrics(ready.options.benchmark))
    for name, models in ready.judge_models.items():
        judge = next(judge for judge in judges if judge.name == name)
        async with Progress(f"judge {name}", shown=show_progress).of(judge_counts):
            groups = unjudged(rows_of(store, run), store)
            requests = judge_requests(groups, benchmark, [judge], graded)
            await ask(ready, store, models, limiters, name, judge_counts, requests, counts)
    with Folder(spec.out) as folder:
        result, summary = conclude(
            description,
            benchmark,
            lambda: rows_of(store, run),
            store,
            judges,
            store,
            folder,
            similarity_of(ready, store, show_progress),
        )
        result = attach(result, spec.against)
        folder.finish(result, benchmark.name, data_of(spec), ready.split)
    store.finish_run(run, {**_run_body(ready, description), "counts": msgspec.to_builtins(counts)})
    return Evaluation(result, run, counts, judge_counts, summary.unanswered, spec.out)


def rows_of(store: Store, run: int) -> Iterator[Row]:
    """The rows of a run, in the order of the samples."""
    decoder = msgspec.json.Decoder(Row)
    return map(decoder.decode, store.probes(run))


def _requests(plan: Plan, store: Store, run: int) -> Iterator[Keyed]:
    """What the plan wants asked; on the way its rows are put into the store."""
    pending: list[tuple[int, bytes]] = []
    for chunk in plan.chunks():
        for sample, made in chunk:
            for number, (row, _) in enumerate(made):
                pending.append((place(sample, number), msgspec.json.encode(row)))
        if len(pending) >= STORE_ROWS:
            store.add_probes(run, pending)
            pending = []
        yield from (keyed for _, made in chunk for _, keyed in made if keyed is not None)
    store.add_probes(run, pending)


async def ask(
    ready: Prepared,
    store: Store,
    models: Sequence[Model],
    limiters: Mapping[str, Limiter],
    name: str,
    counts: Counts,
    requests: Iterable[Keyed],
    spent: Counts,
) -> None:
    """Ask a model, or a judge, within what `spent` leaves of the budget."""
    spec = ready.spec
    runner = Runner(
        store,
        models,
        limiters,
        concurrency=spec.concurrency,
        budget=Budget(
            None if spec.max_requests is None else max(0, spec.max_requests - spent.asked),
            None if spec.max_cost is None else max(0.0, spec.max_cost - spent.cost),
            ready.config.price(name),
        ),
        counts=counts,
        retry_errors=spec.retry_errors,
    )
    await runner.ask(requests)


def _run_body(ready: Prepared, description: Description) -> dict[str, Any]:
    """All that `report` needs to make the judges and the numbers anew; no key is in it."""
    return {
        "description": msgspec.to_builtins(description),
        "judges": {
            name: {"identity": models[0].identity, "sampling": judge_sampling(ready.spec, models[0])}
            for name, models in ready.judge_models.items()
        },
        "embedder": ready.embedder.identity if ready.embedder else None,
    }


def _sampling_of(ready: Prepared, setting: str) -> Mapping[str, Any]:
    """The sampling of a partner setting: its own defaults (else the same), and what the user said."""
    partner = ready.benchmark.settings.get(setting)
    if partner is None:
        return ready.options.sampling
    return effective(ready.benchmark, partner, replace(ready.spec, set={})).sampling
