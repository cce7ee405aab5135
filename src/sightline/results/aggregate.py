"""From collected answers and judges to a Result: the path that run, score and report share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import sightline
from sightline.formats.digests import SetDigest, data_digest
from sightline.judging.agreement import agreements
from sightline.judging.groups import AnswerLookup, CollectedAnswers
from sightline.judging.judges import HumanJudge, Judge, can_decide
from sightline.judging.measures import NO_MEASURES, AnswerMeasures
from sightline.judging.panel import JudgedGroup, JudgePanel, judged_partners
from sightline.judging.text_scores import with_text_scores
from sightline.metric_types import (
    CorrectedValue,
    Metric,
    MetricDefinition,
    MetricValue,
    Result,
)
from sightline.metrics.agreement import CORRECT
from sightline.metrics.agreement_definitions import DEFINITIONS as AGREEMENT_METRICS
from sightline.metrics.cluster_ends import Stretches, count_stretches
from sightline.metrics.confusion import DEFINITIONS as CONFUSION_METRICS
from sightline.metrics.confusion import similarity_warning
from sightline.metrics.tally import tally
from sightline.metrics.verdict_codes import VerdictCoder
from sightline.results.corrected import corrected_values
from sightline.results.description import EvaluationDescription, judge_names
from sightline.results.summary import Summary, long_response_notes, summary_notes
from sightline.scoring.similarity import SIMILAR
from sightline.types import Group

FEW_PROBES = 1 << 14
"""Probes of an evaluation that is counted without a pass before, which finds where clusters end."""


class Aggregate(Struct, frozen=True, kw_only=True):
    """The result of an evaluation, and the first probes without an answer (sample, variant, error)."""

    result: Result
    unanswered: list[tuple[str, str, str]]


class _GroupTotals:
    """Counts and digest of one pass over the judged groups.

    If there are several judges, repeats or humans, it keeps the codes of the verdicts that their agreement is
    computed from.
    """

    def __init__(self, data_digest: str, judges: Sequence[Judge]) -> None:
        self.summary = Summary()
        self._texts = data_digest
        self._images = SetDigest()
        self.coder = VerdictCoder()
        self._last_sample = ""
        self._repeated = {judge.name for judge in judges if judge.repeats > 1}
        self._keep = (
            len(judges) > 1 or bool(self._repeated) or any(isinstance(judge, HumanJudge) for judge in judges)
        )

    def add(self, judged: JudgedGroup) -> None:
        if judged.group.id != self._last_sample:
            self._last_sample = judged.group.id
            self._images.add(f"{judged.group.id}\0{judged.group.cluster}".encode(errors="surrogatepass"))
        self.summary.add(judged)
        if self._keep:
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
    stretches = _stretches(collected)
    metrics = panel.benchmark.metrics(description.benchmark_options)
    totals = _GroupTotals(description.data_digest, panel.judges)

    def scored() -> Iterator[Group]:
        return with_text_scores(measures.measured(collected), panel.benchmark, description.benchmark_options)

    def groups() -> Iterator[Group]:
        for judged in panel.judge(scored(), replies):
            totals.add(judged)
            if on_group is not None:
                on_group(judged)
            if judged.group.sent:
                yield judged.group

    tallied = tally(groups(), metrics, stretches)
    by_judge, corrected = _metrics_by_judge(description, panel, scored, replies, stretches)
    values = [*tallied, *by_judge, *agreements(totals.coder.codes())]
    if measures.similarity is not None:
        values.append(measures.similarity.confused())
    warning = similarity_warning(values)
    notes = [*([warning] if warning else []), *description.notes]
    notes += summary_notes(totals.summary, description.planned_samples)
    notes += long_response_notes(totals.summary) if measures.similarity is not None else []
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


def _stretches(collected: CollectedAnswers) -> Stretches | None:
    """The stretches of the clusters, after which their numbers are pooled; None if all fit into memory."""
    clusters = (probe.cluster or probe.sample for probe in collected.probes())
    first = list(islice(clusters, FEW_PROBES + 1))
    return count_stretches(chain(first, clusters)) if len(first) > FEW_PROBES else None


def _versions(summary: Summary) -> dict[str, Any]:
    """The version of this package, and those that models and judges report."""
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
    stretches: Stretches | None,
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
    humans = [judge for judge in judges if isinstance(judge, HumanJudge)]
    values: list[MetricValue] = []
    corrected: list[CorrectedValue] = []

    def decides(judge: Judge, question: str | None) -> bool:
        return question is not None and can_decide(benchmark, judge.name, question, options)

    for judge in judges:
        # A judge that only compares answers needs the others to say which of them are right.
        others = [] if decides(judge, "correct") else [other for other in judges if decides(other, "correct")]
        alone = replace(panel, judges=[judge, *others], decide="first", judged_partners=partners)
        own = [metric for metric in metrics if decides(judge, metric.judged)]
        judged = (one.group for one in alone.judge(groups(), replies) if one.group.sent)
        tallied = [value for value in tally(judged, own, stretches) if value.subset == "all"]
        values += [replace(value, subset=f"judge={judge.name}") for value in tallied]
        if humans and judge not in humans:
            corrected += corrected_values(alone, judge, humans, own, groups, replies, tallied)
    return values, corrected


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
        unparsed=counts.undecided_replies,
        judge_errors=counts.judge_errors,
        not_sent=counts.statuses["not_sent"],
        mixed_versions=len(summary.model_versions) > 1,
    )


def _definitions(values: Iterable[MetricValue], metrics: Iterable[Metric]) -> dict[str, MetricDefinition]:
    """The definitions of the metrics that have a value or a reason, by name, in the order of the values."""
    known = {
        **AGREEMENT_METRICS,
        **CONFUSION_METRICS,
        **{metric.name: metric.definition for metric in metrics},
    }
    return {name: known[name] for name in dict.fromkeys(value.metric for value in values)}


def _unmatched_notes(judges: Sequence[Judge]) -> list[str]:
    """The human judges none of whose verdicts fit an answer of this evaluation."""
    return [
        f"{judge.name}: none of its {len(judge.verdicts)} verdicts fits these answers (targets, question)"
        for judge in judges
        if isinstance(judge, HumanJudge) and not judge.matched
    ]
