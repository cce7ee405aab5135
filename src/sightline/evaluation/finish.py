"""The last step of every evaluation: judge, count and write; its outcome and its answers for the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.engine.account import Counts
from sightline.errors import UserError, hide_secrets
from sightline.evaluation.fail_if import conditions_met
from sightline.evaluation.folder import ResultsFolder
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.measures import NO_MEASURES
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.plan import CollectedAnswers
from sightline.evaluation.prepared import Prepared, answer_measures, prepared_panel
from sightline.evaluation.recompute import recompute
from sightline.evaluation.result import add_published, aggregate
from sightline.formats.jsonl import read_outcomes
from sightline.formats.run_metadata import ANSWERS
from sightline.reporting.tables import html, import_pandas, report_markdown, summary
from sightline.scoring.scorer import WORST_FIRST, Explanation, explanations
from sightline.store.database import raise_if_set, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.types import MetricValue, Outcome, Result


async def judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    *,
    show_progress: bool,
    explain: bool = False,
) -> Evaluation:
    """Judge, count and write, in a thread; `store` is None where nothing of it is needed."""
    spec, task = prepared.spec, prepared.task

    def work(stop: Event) -> Evaluation:
        measures = NO_MEASURES
        explained: list[Explanation] = []

        def keep(judged: JudgedGroup) -> None:
            folder.write(judged)
            if explain:
                cases = task.benchmark.cases(judged.group)
                scorers = task.benchmark.scorers(task.options.benchmark)
                explained.extend(explanations(judged.group, cases, scorers, judged.verdicts))

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
                on_group=keep,
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
            explanations=sorted(explained, key=lambda one: WORST_FIRST.index(one.verdict)),
        )

    return await run_until_cancelled(work)


# -- The outcome of one evaluation


class Evaluation(Struct, frozen=True, kw_only=True):
    """The outcome of an evaluation.

    `run` is its number in `store`; None if it called no model. `folders` are the data folders of its images.
    `name_moved` says that its name belonged to an earlier run, and which run has it now; '' if the name is
    new. `unanswered` lists the first probes without an answer: sample, variant, error. `conditions_met`
    describes each condition of --fail-if that holds. `explanations` are there with --explain only.
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
    explanations: Sequence[Explanation] = ()

    def __repr__(self) -> str:
        """What was evaluated. `asyncio.run` formats it several times, so the values are left out."""
        result = self.result
        task = f"{result.benchmark}:{result.setting}"
        run = f", run {self.run} in {self.store}" if self.run is not None else ""
        shown = f"<Evaluation of {result.model} on {task}: {len(result.metrics):,} values{run}>"
        return hide_secrets(shown)

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
        return self.caption_counts, self.counts, self.judge_counts

    @property
    def metrics(self) -> list[MetricValue]:
        """The metrics, the primary one over all samples first."""
        return self.result.metrics

    def frame(self) -> Any:
        """The metrics as a pandas DataFrame, one row each; needs the extra `table`."""
        return import_pandas().DataFrame([msgspec.structs.asdict(metric) for metric in self.result.metrics])

    def answers(self, *, thumbnails: int | None = None) -> Any:
        """The answers as a pandas DataFrame, one row each; needs the extra `table`.

        A stored run is judged again, as by `report`; nothing is sent.

        Args:
            thumbnails: The longest side in pixels of a small version of the first image, which a notebook
                shows; None for no images.
        """
        from sightline.evaluation.answers_frame import answers_frame

        return answers_frame(kept_answers(self.run, self.store, self.out), self.folders, thumbnails)

    def _repr_html_(self) -> str:
        return html(summary([self.result]))


# -- The answers of a finished evaluation: from its store, or from its results folder


def kept_answers(run: int | None, store: str, out: str | None) -> Iterable[Outcome]:
    """Read the answers with their verdicts; `run` is None if it called no model. Nothing is sent."""
    if run is None:
        if out is None:
            raise UserError("the answers were not kept", expected="score with out=FOLDER")
        return read_outcomes(Path(out) / ANSWERS)
    outcomes: list[Outcome] = []

    def keep(judged: JudgedGroup) -> None:
        outcomes.extend(judged.group)

    opened = Store.open(store, create=False)
    try:
        recompute(opened, run, on_group=keep)
    finally:
        opened.close()
    return outcomes
