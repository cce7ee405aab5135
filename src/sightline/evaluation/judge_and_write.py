"""The last step of every evaluation: judge and count the answers, and write the results folder."""

from __future__ import annotations

from threading import Event

from msgspec.structs import replace

from sightline.engine.store import Store
from sightline.engine.threads import raise_if_set, run_until_cancelled, until_set
from sightline.evaluation.evaluation import Evaluation
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.measures import answer_measures
from sightline.evaluation.prepared import Prepared
from sightline.judging.groups import CollectedAnswers
from sightline.judging.measures import NO_MEASURES
from sightline.reporting.markdown import report_markdown
from sightline.results.aggregate import aggregate
from sightline.results.description import EvaluationDescription
from sightline.results.fail_if import conditions_met
from sightline.results.folder import ResultsFolder
from sightline.results.published import add_published


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
        store: The replies of judges and the cached measures; None if the evaluation uses neither.
    """
    spec, task = prepared.spec, prepared.task

    def work(stop: Event) -> Evaluation:
        measures = NO_MEASURES
        if store is not None:
            measures = answer_measures(
                task.benchmark, task.options.benchmark, prepared.measures, store, show_progress=show_progress
            )
        with ResultsFolder(spec.out) as folder:
            counted = aggregate(
                description,
                replace(collected, probes=lambda: until_set(collected.probes(), stop)),
                prepared_panel(prepared),
                store.answers if store is not None else collected.answers,
                measures=measures,
                on_group=folder.write,
            )
            result = add_published(counted.result, *spec.against)
            raise_if_set(stop)
            folder.finish(result, task.benchmark, report=report_markdown(result, spec.name), data=task.folder)
        return Evaluation(
            result=result,
            unanswered=counted.unanswered,
            out=spec.out,
            store=spec.store,
            folders=tuple(prepared.survey.folders),
            conditions_met=conditions_met(prepared.fail_if, result),
        )

    return await run_until_cancelled(work)
