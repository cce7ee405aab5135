"""The outcome of one evaluation, and the last step of every evaluation: judge, count and write."""

from __future__ import annotations

from threading import Event
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.engine.counts import Counts
from sightline.engine.store import Store
from sightline.engine.threads import raise_if_set, run_until_cancelled, until_set
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.measures import answer_measures
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.result_key import result_key
from sightline.judging.groups import CollectedAnswers
from sightline.judging.measures import NO_MEASURES
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import MetricValue, Result
from sightline.output import print_note
from sightline.reporting.html_table import html
from sightline.reporting.markdown import report_markdown
from sightline.reporting.tables import summary
from sightline.reporting.tables_text import import_pandas
from sightline.results.description import EvaluationDescription
from sightline.results.fail_if import conditions_met
from sightline.results.folder import ResultsFolder, lines_of
from sightline.results.published import add_published
from sightline.results.result_cache import CachedResult, DamagedResultError, LineRecorder, ResultCache
from sightline.secret_text import hide_secrets


class Evaluation(Struct, frozen=True, kw_only=True):
    """The outcome of an evaluation.

    `run` is its number in `store`; None if it called no model. `folders` are the data folders of its images.
    `name_moved` says that its name belonged to an earlier run, and which run has it now; '' if the name is
    new. `unanswered` lists the first probes without an answer: sample, variant, error. `conditions_met`
    describes each condition of --fail-if that holds.
    """

    result: Result
    run: int | None = None
    name_moved: str = ""
    counts: Counts = field(default_factory=Counts)
    judge_counts: Counts = field(default_factory=Counts)
    caption_counts: Counts = field(default_factory=Counts)
    unanswered: list[tuple[str, str, str]]
    out: str | None = None
    store: str = ""
    folders: tuple[str, ...] = ()
    conditions_met: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """All fields, without the password of the store."""
        return hide_secrets(super().__repr__())

    @property
    def exit_status(self) -> int:
        """0: everything is answered and judged. 1: some answers or judgements are missing. 4: a budget is
        reached. 5: a condition of --fail-if holds."""
        if "budget" in [counts.stopped for counts in self.all_counts]:
            return 4
        if self.conditions_met:
            return 5
        return 1 if self.result.unanswered or self.result.judge_errors else 0

    @property
    def all_counts(self) -> tuple[Counts, ...]:
        """The requests to the captioner, to the model, and to the judges."""
        return self.caption_counts, self.counts, self.judge_counts

    @property
    def metrics(self) -> list[MetricValue]:
        """The metrics, the primary one over all samples first."""
        return self.result.metrics

    def frame(self) -> Any:
        """The metrics as a pandas DataFrame, one row each; needs the extra `table`.

        Returns:
            The data frame, with the fields of a metric in metrics.json as columns.

        Raises:
            UserError: Pandas is not installed.
        """
        return import_pandas().DataFrame([msgspec.structs.asdict(metric) for metric in self.result.metrics])

    def answers(self, *, thumbnails: int | None = None) -> Any:
        """The answers as a pandas DataFrame, one row each; needs the extra `table`.

        A stored run is judged again, as by `report`; nothing is sent.

        Args:
            thumbnails: The longest side in pixels of a small version of the first image, which a notebook
                shows; None for no images.

        Returns:
            The data frame: sample, variant, verdict, response and the other fields of answers.jsonl, with a
            column for each label and score.

        Raises:
            UserError: Pandas is not installed, or the answers were not kept (`score` without `out`).
        """
        import_pandas()
        from sightline.evaluation.answers_frame import answers_frame
        from sightline.evaluation.kept_answers import kept_answers

        return answers_frame(kept_answers(self.run, self.store, self.out), self.folders, thumbnails)

    def _repr_html_(self) -> str:
        """The tables of the result as a notebook shows them."""
        return html(summary([self.result]))


async def judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    *,
    run: int | None = None,
    show_progress: bool,
) -> Evaluation:
    """Judge and count the answers of an evaluation, and write its results folder, in a thread.

    Args:
        prepared: The evaluation.
        description: What the result reports about it.
        collected: The probes with their answers.
        store: The replies of judges and the cached measures; None if the evaluation uses neither.
        run: The number of the run in the store, whose result may be cached; None for no run.
        show_progress: Whether to show progress on standard error.

    Returns:
        The evaluation, without its counts of requests. Cancelled, no file of the folder is replaced.
    """

    def work(stop: Event) -> Evaluation:
        interruptible = replace(collected, probes=lambda: until_set(collected.probes(), stop))
        cache = None if store is None or run is None else _cache(prepared, description, store, run)
        return _judge_and_write(
            prepared, description, interruptible, store, cache, stop, show_progress=show_progress
        )

    return await run_until_cancelled(work)


def _cache(
    prepared: Prepared, description: EvaluationDescription, store: Store, run: int
) -> ResultCache | None:
    """Where the result of a run is cached; None if it always is judged."""
    key = result_key(prepared, description, store, run)
    if key is None:
        return None
    return ResultCache(
        store.caches.results, key, lambda: (chunk.definitions for chunk in store.runs.chunks(run))
    )


def _judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    cache: ResultCache | None,
    stop: Event,
    *,
    show_progress: bool,
) -> Evaluation:
    cached = _write_cached(prepared, cache, stop) if cache is not None else None
    if cached is None:
        with ResultsFolder(prepared.spec.out) as folder:
            cached = _judge(
                prepared, description, collected, store, cache, folder, stop, show_progress=show_progress
            )
            _finish(folder, prepared, cached.result, stop)
    return Evaluation(
        result=cached.result,
        unanswered=cached.unanswered,
        out=prepared.spec.out,
        store=prepared.spec.store,
        folders=tuple(prepared.survey.folders),
        conditions_met=conditions_met(prepared.fail_if, cached.result),
    )


def _write_cached(prepared: Prepared, cache: ResultCache, stop: Event) -> CachedResult | None:
    """Write the results folder from the cached result; None, and no folder, if it is missing or damaged."""
    out = prepared.spec.out
    try:
        cached = cache.load(with_lines=out is not None)
        if cached is None:
            return None
        with ResultsFolder(out) as folder:
            if out is not None:
                for lines in until_set(cache.lines(cached.parts or 0), stop):
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
    cache: ResultCache | None,
    folder: ResultsFolder,
    stop: Event,
    *,
    show_progress: bool,
) -> CachedResult:
    """Judge and count, write the lines into the folder, and cache both."""
    # A cached result does without numpy, whose import takes longer than the rest of a small run.
    from sightline.results.aggregate import aggregate

    spec, task = prepared.spec, prepared.task
    measures = NO_MEASURES
    if store is not None:
        measures = answer_measures(
            task.benchmark, task.options.benchmark, prepared.measures, store, show_progress=show_progress
        )
    recorder = LineRecorder(cache) if cache is not None else None

    def write(judged: JudgedGroup) -> None:
        raise_if_set(stop)
        if spec.out is not None:
            lines = lines_of(judged)
            folder.write(lines)
            if recorder is not None:
                recorder.add(lines)

    aggregated = aggregate(
        description,
        collected,
        prepared_panel(prepared),
        store.answers if store is not None else collected.answers,
        measures=measures,
        on_group=write,
    )
    result = add_published(aggregated.result, *spec.against)
    parts = None
    if recorder is not None and spec.out is not None:
        recorder.finish()
        parts = recorder.parts
    judged = CachedResult(result, aggregated.unanswered, parts)
    if cache is not None:
        cache.save(judged)
    return judged
