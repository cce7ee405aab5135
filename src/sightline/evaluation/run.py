"""`run`: prepare, ask the model and its judges, then count and write."""

from __future__ import annotations

from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterator
from threading import Event

import msgspec
from msgspec.structs import replace

from sightline.engine.limits import Account, Counts
from sightline.evaluation.batches import open_batches_note
from sightline.evaluation.options import EvaluationDescription, reasoning_names
from sightline.evaluation.plan import CollectedAnswers, Plan, read_stored_probes
from sightline.evaluation.prepare import (
    Prepared,
    check_results_folder,
    describe_evaluation,
    make_plan,
    prepare_evaluation,
    with_notes,
)
from sightline.evaluation.recorded_run import recorded_run, run_body, store_recorded_verdicts
from sightline.evaluation.result import Evaluation, judge_and_write
from sightline.evaluation.sending import (
    AnsweredSamples,
    RequestSender,
)
from sightline.evaluation.spec import Spec
from sightline.replicas.fleet import replicas_kept
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread, run_until_cancelled, until_set
from sightline.store.store import Store

OnStart = Callable[[int, EvaluationDescription], None]


async def run_evaluation(
    spec: Spec,
    *,
    began: float | None = None,
    account: Account | None = None,
    on_start: OnStart = lambda *_: None,
    show_progress: bool = False,
) -> Evaluation:
    """Run an evaluation: ask what has no answer yet, judge, count, and write the results folder.

    Blocking work runs in threads, so that other tasks of the event loop go on. Cancelled, it keeps everything
    answered so far; the CancelledError says how much that is.

    Args:
        began: When the sweep began that the evaluation is part of (seconds since 1970): answers that were
            stored later need no check of their endpoint. None: the evaluation is no part of a sweep.
        account: What the sweep has spent of its budget; None: the evaluation is no part of a sweep.
        on_start: Called with the number of the run before the first request; a UserError refuses the run.
    """
    prepared = await run_in_thread(prepare_evaluation, spec)
    description = await run_in_thread(describe_evaluation, prepared)
    await run_in_thread(check_results_folder, spec, description)
    store = await run_in_thread(Store.open, spec.store)
    try:
        async with recorded_run(prepared, description, store) as recorded:
            await run_in_thread(on_start, recorded.number, description)
            spending = account or Account()
            sender = RequestSender(prepared, store, spending, began=began, show_progress=show_progress)
            with sender.late_errors(f"run {recorded.number}, not finished"):
                evaluation = await _evaluate(
                    prepared,
                    description,
                    store,
                    recorded.number,
                    spending,
                    sender,
                    show_progress=show_progress,
                )
        return replace(evaluation, name_moved=await run_in_thread(recorded.move_name))
    finally:
        await run_in_thread(store.close)


async def _evaluate(
    prepared: Prepared,
    description: EvaluationDescription,
    store: Store,
    run: int,
    account: Account,
    sender: RequestSender,
    *,
    show_progress: bool,
) -> Evaluation:
    augmented, caption_counts = None, Counts()
    if (replacement := prepared.models.replacement) is not None:
        # Few runs replace images.
        from sightline.evaluation.image_texts import images_as_text, images_in_probes

        replacement.spend_from(account)
        task = prepared.task
        images = await run_in_thread(images_in_probes, task.benchmark, task.samples, task.shown)
        augmented = await images_as_text(replacement, images, store, show_progress=show_progress)
        caption_counts = replacement.counts
    plan, samples = make_plan(prepared, store, augmented), AnsweredSamples()
    collected = CollectedAnswers(
        probes=lambda: read_stored_probes(store, run),
        answers=store.answers,
        reasoning_tags=reasoning_names(prepared.spec),
        retries=prepared.spec.retry_truncated is not None,
    )
    unjudged = replace(collected, probes=lambda: read_stored_probes(store, run, without=samples.is_judged))
    async with sender:
        try:
            requests = _stored_requests(plan, store, run, samples)
            counts = await sender.ask_model(requests, plan, samples)
            await run_until_cancelled(lambda stop: _store_unasked(requests, stop))
            if prepared.spec.retry_truncated is not None:
                await sender.ask_truncated_again(plan, counts)
                unjudged = collected
            await run_in_thread(store_recorded_verdicts, prepared, store, run)
            async with replicas_kept():
                judge_counts = await sender.ask_judges(collected, unjudged)
        except CancelledError:
            batches = await run_in_thread(open_batches_note, store) if prepared.spec.batch else ""
            raise CancelledError(_kept(run, sender.asked) + batches) from None
    caption_notes = replacement.notes if replacement is not None else []
    description = with_notes(description, [*caption_notes, *plan.hidden_notes(), *sender.notes])
    evaluation = await judge_and_write(prepared, description, collected, store, show_progress=show_progress)
    finished = {"counts": counts, "spent": evaluation.result.spent or None}
    body = {**run_body(prepared, description), **msgspec.to_builtins(finished)}
    await run_in_thread(store.runs.finish, run, body)
    return replace(
        evaluation, run=run, counts=counts, judge_counts=judge_counts, caption_counts=caption_counts
    )


def _kept(run: int, asked: Counts) -> str:
    return (
        f"all answers so far are kept: run {run} has {asked.cached + asked.answered:,} of {asked.total:,}; "
        "run the same command to continue"
    )


def _stored_requests(plan: Plan, store: Store, run: int, samples: AnsweredSamples) -> Iterator[KeyedRequest]:
    """The requests of a plan; its probes are written to the store on the way, and added to the samples."""
    for chunk in plan.chunks():
        # Before their requests, so that a report of an interrupted run counts the answers it has.
        store.runs.add_probes(
            run, [(planned.position, msgspec.json.encode(planned.probe)) for planned in chunk]
        )
        samples.add(chunk)
        yield from (planned.request for planned in chunk if planned.request is not None)


def _store_unasked(requests: Iterator[KeyedRequest], stop: Event) -> None:
    """Write the rest of the plan where asking ended early: those probes count as unanswered."""
    deque(until_set(requests, stop), maxlen=0)
