"""The last step of every evaluation: judge and count the answers, and write the results folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.engine.threads import raise_if_set, run_until_cancelled, until_set
from sightline.evaluation.evaluation import Evaluation
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.measures import answer_measures
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.result_key import result_key
from sightline.judging.groups import CollectedAnswers
from sightline.judging.measures import NO_MEASURES
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import Result
from sightline.output import print_note
from sightline.reporting.markdown import report_markdown
from sightline.results.description import EvaluationDescription
from sightline.results.fail_if import conditions_met
from sightline.results.folder import Lines, ResultsFolder, lines_of
from sightline.results.published import add_published
from sightline.results.result_cache import CachedResult, DamagedResultError, ResultCache, recorded

if TYPE_CHECKING:
    from sightline.results.aggregate import CountedAnswers


class Judged(NamedTuple):
    """Counted answers, and the results folder that has their lines.

    `are_current` looks whether an answer has come since they were looked up, for example of another process.
    `parts` are the lines as a result cache keeps them; None if they were not recorded yet.
    """

    counted: CountedAnswers
    folder: ResultsFolder
    are_current: Callable[[], bool] = lambda: True
    parts: Sequence[bytes] | None = None


async def judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    *,
    run: int | None = None,
    judged: Judged | None = None,
    show_progress: bool,
) -> Evaluation:
    """Judge and count the answers of an evaluation, and write its results folder, in a thread.

    Args:
        prepared: The evaluation.
        description: What the result reports about it.
        collected: The probes with their answers.
        store: The replies of judges and the cached measures; None if the evaluation uses neither.
        run: The number of the run in the store, whose result may be cached; None for no run.
        judged: The answers, if they were judged while the model answered; where they are not current, all are
            judged again.
        show_progress: Whether to show progress on standard error.

    Returns:
        The evaluation, without its counts of requests. Cancelled, no file of the folder is replaced.
    """

    def work(stop: Event) -> Evaluation:
        interruptible = replace(collected, probes=lambda: until_set(collected.probes(), stop))
        # Before the look whether answers are current: the key must not name answers that came after it.
        cache = None if store is None or run is None else _cache(prepared, description, store, run)
        with ExitStack() as stack:
            made = None
            if judged is not None and judged.are_current():
                made = _complete(prepared, description, judged, cache, stop)
            elif cache is not None:
                made = _write_cached(prepared, cache, stop)
            if made is None:
                folder = stack.enter_context(ResultsFolder(prepared.spec.out))
                counted = _judge(
                    prepared, description, interruptible, store, folder, stop, show_progress=show_progress
                )
                made = _complete(prepared, description, Judged(counted, folder), cache, stop)
        return _evaluation(prepared, made)

    return await run_until_cancelled(work)


def _evaluation(prepared: Prepared, made: CachedResult) -> Evaluation:
    return Evaluation(
        result=made.result,
        unanswered=made.unanswered,
        out=prepared.spec.out,
        store=prepared.spec.store,
        folders=tuple(prepared.survey.folders),
        conditions_met=conditions_met(prepared.fail_if, made.result),
    )


def _cache(
    prepared: Prepared, description: EvaluationDescription, store: Store, run: int
) -> ResultCache | None:
    """Where the result of a run is cached; None if it always is judged."""
    key = result_key(prepared, description, store, run)
    if key is None:
        return None
    return ResultCache(store.caches.results, key, partial(store.runs.chunks, run))


def _write_cached(prepared: Prepared, cache: ResultCache, stop: Event) -> CachedResult | None:
    """Write the results folder from the cached result; None, and no folder, if it is missing or damaged."""
    out = prepared.spec.out
    try:
        cached = cache.load(with_lines=out is not None)
        if cached is None:
            return None
        with ResultsFolder(out) as folder:
            if out is not None and cached.lines is not None:
                for lines in until_set(cache.lines(cached.lines), stop):
                    folder.write(lines)
            _finish(folder, prepared, cached.result, stop)
    except DamagedResultError as error:
        print_note(f"{error}; the answers are judged again")
        return None
    return cached


def _finish(folder: ResultsFolder, prepared: Prepared, result: Result, stop: Event) -> None:
    raise_if_set(stop)
    task, report = prepared.task, report_markdown(result, prepared.spec.name)
    folder.finish(result, task.benchmark, report=report, data=task.folder)


def _judge(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    folder: ResultsFolder,
    stop: Event,
    *,
    show_progress: bool,
) -> CountedAnswers:
    """Judge and count all answers, and write their lines."""
    # A cached result does without numpy, whose import takes longer than the rest of a small run.
    from sightline.results.aggregate import count_collected

    task, measures = prepared.task, NO_MEASURES
    if store is not None:
        measures = answer_measures(
            task.benchmark, task.options.benchmark, prepared.measures, store, show_progress=show_progress
        )
    return count_collected(
        description,
        collected,
        prepared_panel(prepared),
        store.answers if store is not None else collected.answers,
        measures=measures,
        on_group=line_writer(folder, stop),
    )


def line_writer(
    folder: ResultsFolder, stop: Event, record: Callable[[Lines], None] = lambda lines: None
) -> Callable[[JudgedGroup], None]:
    """What writes the lines of judged groups.

    Args:
        folder: The results folder.
        stop: Ends the work once it is set.
        record: Receives the lines, too.

    Returns:
        A function for each group, in the order of the samples.
    """

    def write(judged: JudgedGroup) -> None:
        raise_if_set(stop)
        if folder.is_written:
            lines = lines_of(judged)
            folder.write(lines)
            record(lines)

    return write


def _complete(
    prepared: Prepared,
    description: EvaluationDescription,
    judged: Judged,
    cache: ResultCache | None,
    stop: Event,
) -> CachedResult:
    """Complete the results folder of judged answers, and cache the result."""
    from sightline.results.aggregate import complete

    aggregated = complete(description, judged.counted)
    result = add_published(aggregated.result, *prepared.spec.against)
    stored = None
    if cache is not None and judged.folder.is_written:
        lines = until_set(judged.folder.written(), stop)
        stored = cache.add_lines(recorded(lines, cache.chunks) if judged.parts is None else judged.parts)
    made = CachedResult(result, aggregated.unanswered, stored)
    if cache is not None:
        cache.save(made)
    _finish(judged.folder, prepared, result, stop)
    return made
