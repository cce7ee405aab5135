"""From collected answers and judges to a Result: the path that run, score and report share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

import sightline
from sightline.benchmarks.released import add_published
from sightline.engine.limits import Counts, token_limit
from sightline.errors import hide_secrets
from sightline.evaluation.folder import ResultsFolder, group_metrics
from sightline.evaluation.judges import (
    Judge,
    JudgedGroup,
    JudgePanel,
    RecordedJudge,
    agreements,
    can_decide,
    judge_kind,
    judged_partners,
    metrics_of,
    recorded_panel,
)
from sightline.evaluation.measures import (
    NO_MEASURES,
    AnswerMeasures,
    answer_measures,
    with_text_scores,
)
from sightline.evaluation.options import EvaluationDescription, conditions_met, judge_names, recorded_tags
from sightline.evaluation.plan import AnswerLookup, CollectedAnswers, read_stored_probes
from sightline.evaluation.prepare import Prepared, prepared_panel
from sightline.evaluation.runs import latest_finished_run, read_stored_run
from sightline.evaluation.summary import AnswerCounts, Summary, long_response_notes, summary_notes
from sightline.formats.files import SetDigest, data_digest
from sightline.metrics.agreement import CORRECT, VerdictCoder
from sightline.metrics.agreement import DEFINITIONS as AGREEMENT_METRICS
from sightline.metrics.tally import tally
from sightline.reporting.tables import html, import_pandas, report_markdown, summary
from sightline.scoring.scorer import WORST_FIRST, Explanation, explanations
from sightline.scoring.similarity import DEFINITIONS as CONFUSION_METRICS
from sightline.scoring.similarity import SIMILAR, similarity_warning, unknown_words
from sightline.store.database import raise_if_set, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.types import (
    FIRST_ANSWERS,
    CorrectedValue,
    Group,
    Metric,
    MetricDefinition,
    MetricValue,
    Outcome,
    Result,
    Term,
)

NOTHING_LABELLED = "these humans labelled nothing that it counts"

UNFINISHED = "is not finished. Repeat the command to send the missing requests (in a new run)"


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
                task.benchmark, task.options.benchmark, *prepared.measures, store, show_progress=show_progress
            )
        metrics = group_metrics(task.benchmark, task.options.benchmark)
        with ResultsFolder(spec.out, metrics) as folder:
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


def recompute(
    store: Store,
    run: int | None = None,
    against: Sequence[str] = (),
    *,
    humans: Sequence[RecordedJudge] = (),
    on_group: Callable[[JudgedGroup], None] | None = None,
) -> Result:
    """Judge and count a stored run again. Nothing is sent.

    Rules decide again; the replies of judge models and the verdicts of humans come from the store. A note
    says so if the run did not finish.

    Args:
        run: The number of the run; None takes the latest that finished.
    """
    stored, notes = latest_finished_run(store) if run is None else (read_stored_run(store, run), [])
    if not stored.is_finished:
        notes = [f"run {stored.number} {UNFINISHED}"]
    description = replace(stored.description, notes=[*stored.description.notes, *notes])
    benchmark = stored.benchmark
    aggregated = aggregate(
        description,
        CollectedAnswers(
            probes=lambda: read_stored_probes(store, stored.number),
            answers=store.answers,
            reasoning_tags=recorded_tags(stored.description),
            retries="retry_truncated" in stored.description.options,
        ),
        recorded_panel(benchmark, stored, store, humans),
        store.answers,
        measures=answer_measures(
            benchmark, stored.description.benchmark_options, stored.embedder, stored.text_metrics, store
        ),
        on_group=on_group,
    )
    return add_published(aggregated.result, *(against or description.against))


# -- The outcome of one evaluation


class Evaluation(Struct, frozen=True, kw_only=True):
    """The outcome of an evaluation.

    `run` is its number in `store`; None outside a store. `folders` are the data folders of its images.
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

        return answers_frame(kept_answers(self.run, self.store), self.folders, thumbnails)

    def _repr_html_(self) -> str:
        return html(summary([self.result]))


# -- The answers of a finished evaluation, from its store


def kept_answers(run: int | None, store: str) -> list[Outcome]:
    """Read the answers of a run of the store with their verdicts. Nothing is sent."""
    outcomes: list[Outcome] = []

    def keep(judged: JudgedGroup) -> None:
        outcomes.extend(judged.group)

    opened = Store.open(store, create=False)
    try:
        recompute(opened, run, on_group=keep)
    finally:
        opened.close()
    return outcomes


# -- Judging and counting: a pass over the groups, then the metrics with their confidence intervals


class Aggregate(Struct, frozen=True, kw_only=True):
    """The result of an evaluation, and the first probes without an answer (sample, variant, error)."""

    result: Result
    unanswered: list[tuple[str, str, str]]


class _GroupTotals:
    """Counts and digest of one pass over the judged groups.

    If there are several judges, repeats or humans, `coder` keeps the codes of the verdicts that their
    agreement is computed from.
    """

    def __init__(self, data_digest: str, judges: Sequence[Judge]) -> None:
        self.summary = Summary()
        self._texts = data_digest
        self._images = SetDigest()
        self._last_sample = ""
        self._repeated = {judge.name for judge in judges if judge.repeats > 1}
        agree = len(judges) > 1 or self._repeated or any(isinstance(judge, RecordedJudge) for judge in judges)
        self.coder = VerdictCoder() if agree else None

    def add(self, judged: JudgedGroup) -> None:
        if judged.group.id != self._last_sample:
            self._last_sample = judged.group.id
            self._images.add(f"{judged.group.id}\0{judged.group.cluster}".encode(errors="surrogatepass"))
        self.summary.add(judged)
        if self.coder is not None:
            kept = (
                verdict
                for verdict in judged.verdicts
                if verdict.question == CORRECT or verdict.judge in self._repeated
            )
            self.coder.add(kept, judged.group.cluster)

    def data_digest(self) -> str:
        """The digest of the texts of all samples, and of the first images of the groups so far."""
        return data_digest(self._texts, self._images.hexdigest())


def aggregate(
    description: EvaluationDescription,
    collected: CollectedAnswers,
    panel: JudgePanel,
    replies: AnswerLookup,
    *,
    measures: AnswerMeasures = NO_MEASURES,
    on_group: Callable[[JudgedGroup], None] | None = None,
) -> Aggregate:
    """Judge every group, count the answers, and compute the metrics with their confidence intervals.

    Groups are not kept in memory. Measures need a pass of their own before.
    """
    measures.prepare(collected)
    metrics = metrics_of(panel.benchmark, description.benchmark_options, description.judges)
    if measures.similarity is not None:
        from sightline.metrics.consistency import UNKNOWN_WORDS  # few evaluations measure similarity

        metrics = [*metrics, UNKNOWN_WORDS]
    if collected.retries:
        metrics = [*metrics, TRUNCATED]
        measures.prepare(replace(collected, first=True))
    totals = _GroupTotals(description.data_digest, panel.judges)

    def scored(*, first: bool = False) -> Iterator[Group]:
        groups = measures.measured(replace(collected, first=first))
        return with_text_scores(groups, panel.benchmark, description.benchmark_options)

    def groups() -> Iterator[Group]:
        for judged in panel.judge(scored(), replies):
            totals.add(judged)
            if on_group is not None:
                on_group(judged)
            if judged.group.sent:
                yield judged.group

    if panel.judges and panel.reads_a_sample:
        # Clusters that nobody was asked about do not count, also where their cases need no human.
        metrics = _where_labelled(metrics, panel, collected.groups())
    tallied = tally(groups(), metrics)
    by_judge, corrected = _metrics_by_judge(description, panel, scored, replies)
    values = [*tallied, *by_judge, *([] if totals.coder is None else agreements(totals.coder.codes()))]
    if measures.similarity is not None:
        values.append(measures.similarity.confused())
    if collected.retries:
        judged = (one.group for one in panel.judge(scored(first=True), replies) if one.group.sent)
        before = [value for value in tally(judged, metrics) if value.subset == "all" and value.n]
        values += [replace(value, subset=FIRST_ANSWERS) for value in before]
    notes = summary_notes(totals.summary, description.planned_samples, description.options)
    if measures.similarity is not None:
        values, of_similarity = _with_unknown_words(values, metrics)
        notes = [*of_similarity, *notes]
    notes += retry_notes(totals.summary.counts, description) if collected.retries else []
    notes += collected.tag_notes()
    notes += long_response_notes(totals.summary) if measures.similarity is not None else []
    over_all = {value.metric: value for value in tallied if value.subset == "all"}
    notes = [
        *panel.benchmark.value_notes(over_all, description.benchmark_options),
        *notes,
        *description.notes,
    ]
    result = replace(
        _result(
            description,
            totals.summary,
            data_digest=totals.data_digest(),
            versions={**_versions(totals.summary), **measures.versions},
            metrics=values,
        ),
        notes=[*notes, *_unmatched_notes(panel.judges)],
        metric_definitions=_definitions(values, metrics),
        corrected=corrected,
    )
    return Aggregate(result=result, unanswered=totals.summary.examples.unanswered)


def _with_unknown_words(
    values: Sequence[MetricValue], metrics: Sequence[Metric]
) -> tuple[list[MetricValue], list[str]]:
    """The values, without similarity where the embedder does not know too many answers, and their notes."""
    from sightline.metrics.consistency import UNKNOWN_WORDS, null_where_unknown

    unknown = [value for value in values if value.metric == UNKNOWN_WORDS.name]
    if unknown[0].value:
        kept, share = null_where_unknown(values, unknown, metrics), unknown_words(unknown[0])
    else:
        kept, share = [value for value in values if value.metric != UNKNOWN_WORDS.name], ""
    warning = similarity_warning(kept) or ""
    return kept, [note for note in (warning, "" if share in warning else share) if note]


def _versions(summary: Summary) -> dict[str, Any]:
    return {
        "sightline": sightline.__version__,
        "reported": sorted(summary.model_versions),
        "judges": sorted(summary.judge_versions),
    }


def _metrics_by_judge(
    description: EvaluationDescription,
    panel: JudgePanel,
    groups: Callable[[], Iterator[Group]],
    replies: AnswerLookup,
) -> tuple[list[MetricValue], list[CorrectedValue]]:
    """The judged metrics as each judge alone decides them, and corrected by the humans among the judges."""
    judges, benchmark, options = panel.judges, panel.benchmark, description.benchmark_options
    if len(judges) < 2:
        return [], []
    metrics = [
        metric
        for metric in benchmark.metrics(options)
        if metric.judged is not None and metric.judged != SIMILAR
    ]
    partners = judged_partners(metrics)
    humans = [
        judge for judge in judges if isinstance(judge, RecordedJudge) and judge_kind(judge.name) == "human"
    ]
    values: list[MetricValue] = []
    corrected: list[CorrectedValue] = []

    def decides(judge: Judge, question: str | None) -> bool:
        return question is not None and can_decide(benchmark, judge.name, question, options)

    for judge in judges:
        # A judge that only compares answers needs the others to say which of them are right.
        others = [] if decides(judge, "correct") else [other for other in judges if decides(other, "correct")]
        alone = replace(
            panel, judges=[judge, *others], decide="first", judged_partners=partners, only_labelled=True
        )
        own = [metric for metric in metrics if decides(judge, metric.judged)]
        if isinstance(judge, RecordedJudge):
            own = _where_labelled(own, alone, groups())
        judged = (one.group for one in alone.judge(groups(), replies) if one.group.sent)
        tallied = [value for value in tally(judged, own) if value.subset == "all"]
        values += [replace(value, subset=f"judge={judge.name}") for value in tallied]
        if humans and judge not in humans:
            from sightline.evaluation.corrected import corrected_values

            corrected += corrected_values(alone, judge, humans, own, groups, replies, tallied)
    return values, corrected


def _where_labelled(metrics: Sequence[Metric], panel: JudgePanel, groups: Iterable[Group]) -> list[Metric]:
    """The metrics over the clusters that the humans of a panel labelled, of those with open cases."""
    labelled = panel.labelled_clusters(groups, metrics)
    return [_within(metric, labelled.get(metric.name)) for metric in metrics]


def _within(metric: Metric, clusters: Collection[str] | None) -> Metric:
    """The metric over some clusters only; None for all."""
    if clusters is None:
        return metric

    def terms(group: Group) -> Iterable[Term]:
        return metric.terms(group) if (group.cluster or group.id) in clusters else ()

    absent = metric.absent if clusters else NOTHING_LABELLED
    return replace(metric, terms=terms, absent=absent, reads="answers")


def _result(
    description: EvaluationDescription,
    summary: Summary,
    *,
    data_digest: str,
    versions: Mapping[str, Any],
    metrics: list[MetricValue],
) -> Result:
    counts = summary.counts
    return Result(
        benchmark=description.benchmark,
        setting=description.setting,
        model=description.model,
        model_identity=description.identity,
        judge=judge_names(description),
        options=description.options,
        samples=counts.samples,
        probes=counts.probes,
        errors=counts.statuses["error"],
        misses=counts.verdicts["miss"],
        undecided=counts.verdicts["undecided"],
        truncated=counts.truncated,
        versions=versions,
        data_digest=data_digest,
        ids_digest=description.ids_digest,
        metrics=metrics,
        empty=counts.statuses["empty"],
        refused=counts.refused,
        unscored=counts.verdicts["unscored"],
        unparsed=sum(counts.undecided_replies.values()),
        judge_errors=counts.judge_errors,
        not_sent=counts.statuses["not_sent"],
        mixed_versions=len(summary.model_versions) > 1,
        spent=summary.spent(description.price),
    )


def _definitions(values: Iterable[MetricValue], metrics: Iterable[Metric]) -> dict[str, MetricDefinition]:
    known = {
        **AGREEMENT_METRICS,
        **CONFUSION_METRICS,
        **{metric.name: metric.definition for metric in metrics},
    }
    return {name: known[name] for name in dict.fromkeys(value.metric for value in values)}


def _unmatched_notes(judges: Sequence[Judge]) -> list[str]:
    return [
        f"{judge.name}: none of its {len(judge.verdicts)} verdicts fits these answers (targets, question)"
        for judge in judges
        if isinstance(judge, RecordedJudge) and not judge.matched
    ]


# -- Truncated answers that were asked again: how many there are, and the values before


def _truncated_terms(group: Group) -> Iterator[Term]:
    for outcome in group:
        if outcome.answered:
            yield Term(float(outcome.truncated), 1.0)


TRUNCATED = Metric(
    name="truncated_answers",
    terms=_truncated_terms,
    meaning="the share of the answers that reached the token limit",
    better="lower",
    source="--retry-truncated",
    judged=None,
)


def retry_notes(counts: AnswerCounts, description: EvaluationDescription) -> list[str]:
    """What became of the answers that reached the first token limit."""
    before = token_limit(description.options.get("sampling") or {})
    limit = f"the token limit ({before:,})" if before is not None else "the token limit of the server"
    left = counts.truncated - counts.retried_truncated
    first = counts.truncated - counts.retried_truncated + counts.retried
    if not first:
        return [f"--retry-truncated: no answer reached {limit}"]
    after = description.options["retry_truncated"]
    kept = f"; {left:,} have no second answer, and the truncated one counts" if left else ""
    return [
        f"{first:,} of {counts.answered:,} answers reached {limit}; {counts.retried:,} were asked again with"
        f" at most {after:,} tokens, which {counts.retried_truncated:,} of them reached{kept}."
        f" `{FIRST_ANSWERS}` are the values before"
    ]
