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
from sightline.errors import UserError
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.measures import answer_measures
from sightline.evaluation.prepared import Prepared
from sightline.judging.groups import CollectedAnswers
from sightline.judging.measures import NO_MEASURES
from sightline.judging.panel import JudgedGroup
from sightline.metric_types import MetricValue, Result
from sightline.report.markdown import report_markdown
from sightline.results.aggregate import aggregate
from sightline.results.description import EvaluationDescription
from sightline.results.fail_if import conditions_met
from sightline.results.folder import ResultsFolder
from sightline.results.published import add_published


class Evaluation(Struct, frozen=True, kw_only=True):
    """The outcome of an evaluation.

    `run` is its number in the store; None if it called no model. `name_moved` says that its name belonged to
    an earlier run, and which run has it now; '' if the name is new. `unanswered` lists the first probes
    without an answer: sample, variant, error. `conditions_met` describes each condition of --fail-if that
    holds.
    """

    result: Result
    run: int | None = None
    name_moved: str = ""
    counts: Counts = field(default_factory=Counts)
    judge_counts: Counts = field(default_factory=Counts)
    caption_counts: Counts = field(default_factory=Counts)
    unanswered: list[tuple[str, str, str]]
    out: str | None = None
    conditions_met: tuple[str, ...] = ()

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
        try:
            import pandas
        except ModuleNotFoundError:
            raise UserError("pandas is not installed", expected="pip install 'sightline[table]'") from None
        return pandas.DataFrame([msgspec.structs.asdict(metric) for metric in self.result.metrics])


async def judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    *,
    show_progress: bool,
) -> Evaluation:
    """Judge and count the answers of an evaluation, and write its results folder, in a thread.

    Args:
        prepared: The evaluation.
        description: What the result reports about it.
        collected: The probes with their answers.
        store: The replies of judges and the cached measures; None if the evaluation uses neither.
        show_progress: Whether to show progress on standard error.

    Returns:
        The evaluation, without its counts of requests. Cancelled, no file of the folder is replaced.
    """

    def work(stop: Event) -> Evaluation:
        interruptible = replace(collected, probes=lambda: until_set(collected.probes(), stop))
        return _judge_and_write(
            prepared, description, interruptible, store, stop, show_progress=show_progress
        )

    return await run_until_cancelled(work)


def _judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    stop: Event,
    *,
    show_progress: bool,
) -> Evaluation:
    spec, task = prepared.spec, prepared.task
    measures = NO_MEASURES
    if store is not None:
        measures = answer_measures(
            task.benchmark, task.options.benchmark, prepared.measures, store, show_progress=show_progress
        )
    with ResultsFolder(spec.out) as folder:

        def write(judged: JudgedGroup) -> None:
            raise_if_set(stop)
            folder.write(judged)

        aggregated = aggregate(
            description,
            collected,
            prepared_panel(prepared),
            collected.answers if store is None else store.answers,
            measures=measures,
            on_group=write,
        )
        result = add_published(aggregated.result, *spec.against)
        raise_if_set(stop)
        folder.finish(result, task.benchmark, report=report_markdown(result), data=task.folder)
    return Evaluation(
        result=result,
        unanswered=aggregated.unanswered,
        out=spec.out,
        conditions_met=conditions_met(prepared.fail_if, result),
    )
