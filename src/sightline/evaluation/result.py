"""From collected answers and judges to a Result: the path that run, score and report share."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

import sightline
from sightline.benchmarks.published import Figure, FigureKey, Paper, joined, no_figures, paper_of
from sightline.engine.account import token_limit
from sightline.errors import some_of
from sightline.evaluation.judges import (
    HumanJudge,
    Judge,
    JudgedGroup,
    JudgePanel,
    agreements,
    can_decide,
    judged_partners,
)
from sightline.evaluation.measures import NO_MEASURES, AnswerMeasures, with_text_scores
from sightline.evaluation.options import EvaluationDescription, judge_names
from sightline.evaluation.plan import AnswerLookup, CollectedAnswers
from sightline.formats.files import SetDigest, data_digest
from sightline.metrics.agreement import CORRECT, VerdictCoder
from sightline.metrics.agreement import DEFINITIONS as AGREEMENT_METRICS
from sightline.metrics.confusion import DEFINITIONS as CONFUSION_METRICS
from sightline.metrics.confusion import similarity_warning
from sightline.metrics.corrected import ClusterTerms, Correction, clusters_to_halve, correct
from sightline.metrics.statistics import Estimates, Floats, intervals, with_interval
from sightline.metrics.tally import SCALES, Integers, Stretches, count_stretches, tally
from sightline.scoring.scorer import flag, undecided_flags
from sightline.scoring.similarity import SIMILAR
from sightline.types import (
    CUT_OFF,
    FIRST_ANSWERS,
    PERCENT,
    CorrectedValue,
    Group,
    Metric,
    MetricDefinition,
    MetricValue,
    Outcome,
    PublishedValue,
    Range,
    Result,
    Term,
    Verdict,
    difference_range,
)

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

    tallied = tally(groups(), metrics, stretches)
    by_judge, corrected = _metrics_by_judge(description, panel, scored, replies, stretches)
    values = [*tallied, *by_judge, *agreements(totals.coder.codes())]
    if measures.similarity is not None:
        values.append(measures.similarity.confused())
    if collected.retries:
        judged = (one.group for one in panel.judge(scored(first=True), replies) if one.group.sent)
        before = [value for value in tally(judged, metrics, stretches) if value.subset == "all" and value.n]
        values += [replace(value, subset=FIRST_ANSWERS) for value in before]
    warning = similarity_warning(values)
    notes = [*([warning] if warning else []), *description.notes]
    notes += summary_notes(totals.summary, description.planned_samples)
    notes += retry_notes(totals.summary.counts, description) if collected.retries else []
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
        if isinstance(judge, HumanJudge) and not judge.matched
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
    range=PERCENT,
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


# -- Counts over all judged groups, and the notes of a result that follow from them

MAX_UNANSWERED = 10
"""The number of probes without an answer that a summary lists."""

MAX_EXAMPLES = 5
"""The number of examples that a note lists."""

MANY_UNDECIDED = 0.2
"""The share of undecided verdicts above which a note recommends another judge."""

LONG_RESPONSE = 200
"""The number of words above which an embedding model may cut off the end of a response."""


class ReasoningCounts(Struct):
    """The responses that held reasoning, and the finish reasons of those without anything else."""

    answered: int = 0
    held: int = 0
    only: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.answered += outcome.answered
        self.held += bool(outcome.reasoning)
        if outcome.reasoning and outcome.status == "empty":
            self.only[outcome.finish_reason] += 1

    def notes(self) -> list[str]:
        """One note, or none where no response held reasoning."""
        if not self.held:
            return []
        note = (
            f"{self.held:,} of {self.answered:,} responses held reasoning, which is cut: judges and metrics"
            " read only the answers"
        )
        if not self.only:
            return [note]
        reasons = ", ".join(f"{number:,} {reason or 'unknown'}" for reason, number in self.only.most_common())
        truncated = sum(number for reason, number in self.only.items() if reason in CUT_OFF)
        return [
            f"{note}. {self.only.total():,} held only reasoning and no answer (finish reasons: {reasons};"
            f" {truncated:,} reached the token limit)"
        ]


class AnswerCounts(Struct):
    """The numbers of judged answers, by kind.

    `undecided_flags` counts answers of which it is undecided whether they have a flag (`scoring.scorer`),
    `undecided_replies` replies of judge models that hold no verdict, `judge_errors` verdicts that a
    judge could not give, `by_file_name` samples whose cluster is named after an unreadable image file,
    `retried` truncated answers that were asked again, `retried_truncated` those of them that are truncated
    again, `groups_not_sent` groups of which some probe was not sent, `with_partner` the other groups for
    which all answers of a partner setting exist, by setting, `invalid_usage` answers whose token counts are
    no numbers.
    """

    samples: int = 0
    probes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    refused: int = 0
    groups: int = 0
    undecided_flags: Counter[str] = field(default_factory=Counter)
    groups_not_sent: int = 0
    with_partner: Counter[str] = field(default_factory=Counter)
    long_responses: int = 0
    by_file_name: int = 0
    undecided_replies: int = 0
    judge_errors: int = 0
    not_sampled: int = 0
    invalid_usage: int = 0
    reasoning: ReasoningCounts = field(default_factory=ReasoningCounts)
    retried: int = 0
    retried_truncated: int = 0

    @property
    def sent(self) -> int:
        return self.probes - self.statuses["not_sent"]

    @property
    def answered(self) -> int:
        """The number of probes with an answer, which may be empty."""
        return self.statuses["ok"] + self.statuses["empty"]


class Examples(Struct):
    """The first examples of what notes and error lists name.

    `unanswered` holds sample, variant and error.
    """

    undecided_replies: list[str] = field(default_factory=list)
    without_reference: list[str] = field(default_factory=list)
    unanswered: list[tuple[str, str, str]] = field(default_factory=list)


class Summary:
    """Counts, examples and reported versions over judged groups, added up in the order of the samples."""

    def __init__(self) -> None:
        self.counts = AnswerCounts()
        self.examples = Examples()
        self.model_versions: set[str] = set()
        self.judge_versions: set[str] = set()
        self._last_sample = ""

    def add(self, judged: JudgedGroup) -> None:
        group = judged.group
        if group.id != self._last_sample:
            self._last_sample = group.id
            self.counts.samples += 1
            self.counts.by_file_name += group.cluster.startswith("file ")
        for verdict in judged.verdicts:
            self._add_verdict(verdict)
        self.counts.groups += 1
        self.counts.groups_not_sent += not group.sent
        if group.sent:
            self.counts.with_partner.update(group.partners.keys())
        for outcome in group:
            self._add_outcome(outcome)

    def _add_verdict(self, verdict: Verdict) -> None:
        self.counts.judge_errors += verdict.verdict == "error"
        if verdict.version:
            self.judge_versions.add(f"{verdict.judge}: {verdict.version}")
        if verdict.kind == "model" and verdict.verdict == "undecided":
            self.counts.undecided_replies += 1
            if len(self.examples.undecided_replies) < MAX_EXAMPLES:
                self.examples.undecided_replies.append(verdict.raw)

    def _add_outcome(self, outcome: Outcome) -> None:
        counts, examples = self.counts, self.examples
        counts.probes += 1
        counts.statuses[outcome.status] += 1
        if outcome.status == "not_sent":
            return
        counts.verdicts[outcome.verdict] += 1
        counts.truncated += outcome.truncated
        counts.reasoning.add(outcome)
        if outcome.first is not None:
            counts.retried += 1
            counts.retried_truncated += outcome.truncated
        counts.invalid_usage += bool(outcome.usage.invalid)
        # A response has fewer words than characters: most responses need no split.
        counts.long_responses += (
            len(outcome.response) > LONG_RESPONSE and len(outcome.response.split()) > LONG_RESPONSE
        )
        counts.refused += bool(flag(outcome.scores, "refused"))
        counts.undecided_flags.update(undecided_flags(outcome.scores))
        if outcome.version:
            self.model_versions.add(outcome.version)
        if outcome.verdict == "unscored":
            self._add_unscored(outcome)
        if not outcome.answered and len(examples.unanswered) < MAX_UNANSWERED:
            examples.unanswered.append((outcome.sample, outcome.variant, outcome.error or ""))

    def _add_unscored(self, outcome: Outcome) -> None:
        """Only a sample that humans judged leaves out an answer with a reference."""
        if outcome.references:
            self.counts.not_sampled += 1
        elif len(self.examples.without_reference) < MAX_EXAMPLES:
            self.examples.without_reference.append(outcome.sample)


def summary_notes(summary: Summary, planned_samples: int) -> list[str]:
    counts, examples, notes = summary.counts, summary.examples, []
    if counts.samples < planned_samples:
        notes.append(f"incomplete: {counts.samples} of {planned_samples} samples")
    if counts.groups_not_sent:
        notes.append(
            f"incomplete: {counts.statuses['not_sent']:,} of {counts.probes:,} probes were not sent; their "
            f"{counts.groups_not_sent:,} groups are left out of all metrics. Run the same command again to "
            "send them"
        )
    sent_groups = counts.groups - counts.groups_not_sent
    for setting, complete in sorted(counts.with_partner.items()):
        if complete < sent_groups:
            notes.append(
                f"incomplete: {sent_groups - complete:,} of {sent_groups:,} groups lack answers of setting "
                f"{setting!r}; metrics that compare with it leave these groups out"
            )
    if counts.verdicts["undecided"] > MANY_UNDECIDED * counts.sent:
        notes.append(
            f"{counts.verdicts['undecided']:,} of {counts.sent:,} verdicts are undecided and count as "
            "not right. Use another --judge (a model or human:FILE) to decide them"
        )
    for name, undecided in sorted(counts.undecided_flags.items()):
        notes.append(
            f"`{name}` leaves out {undecided:,} of {counts.answered:,} answers that rules cannot decide on"
        )
    if counts.judge_errors:
        notes.append(
            f"{counts.judge_errors:,} judgements are missing: the judge failed, or the budget was reached"
        )
    notes += _unscored_notes(counts, examples)
    if examples.undecided_replies:
        replies = [repr(" ".join(reply.split())[:60]) for reply in examples.undecided_replies]
        listed = some_of(replies, len(replies), total=counts.undecided_replies)
        notes.append(f"judge replies without a verdict: {listed}")
    notes += counts.reasoning.notes()
    if counts.invalid_usage:
        notes.append(
            f"the server reports invalid token counts for {counts.invalid_usage:,} answers; `usage` names "
            "them, and no budget counts them"
        )
    if counts.by_file_name:
        notes.append(
            f"the images of {counts.by_file_name} samples cannot be read: their clusters are named after "
            "the files"
        )
    return notes


def _unscored_notes(counts: AnswerCounts, examples: Examples) -> list[str]:
    notes = []
    if counts.not_sampled:
        notes.append(
            f"humans judged a sample, and no other judge is named: {counts.not_sampled:,} of {counts.sent:,} "
            "answers have no verdict and are left out of all metrics; the values are those of the sample, "
            "unweighted. Name a judge that reads everything before human:FILE to correct its values"
        )
    unscored = counts.verdicts["unscored"] - counts.not_sampled
    if 0 < unscored < counts.sent:
        names = some_of(examples.without_reference, unscored, total=unscored)
        notes.append(f"{unscored} answers have no reference and are not scored: {names}")
    return notes


def long_response_notes(summary: Summary) -> list[str]:
    if not summary.counts.long_responses:
        return []
    return [
        f"{summary.counts.long_responses:,} answers have more than {LONG_RESPONSE} words: embedding models "
        "read about 250 tokens and ignore the rest"
    ]


# -- Metrics of judges that read all answers, corrected by humans who labelled a sample of the clusters

NOT_LABELLED = "humans labelled no whole cluster"
MIXED_INCLUSION = "some verdicts of humans state the probability of their cluster, and others do not"
CONTRADICTORY = "verdicts of humans on one cluster state different probabilities"

_COLUMNS = 4
"""The sum and the count by the judge, then those by the humans."""


def corrected_values(
    alone: JudgePanel,
    judge: Judge,
    humans: Sequence[HumanJudge],
    metrics: Sequence[Metric],
    groups: Callable[[], Iterator[Group]],
    replies: AnswerLookup,
    by_judge: Sequence[MetricValue],
) -> list[CorrectedValue]:
    """The metrics of a judge, corrected by humans.

    A cluster is labelled if humans decided on everything that the judge read in it.
    """
    by_humans = replace(alone, judges=humans, decide="majority")
    sample = _Sample([metric for metric in metrics if metric.labels != "varying"])
    both = zip(alone.judge(groups(), replies), by_humans.judge(groups(), replies), strict=True)
    for judged, labelled in both:
        if judged.group.sent:
            sample.add(judged.group, labelled)
    values = {value.metric: value for value in by_judge if value.value is not None}
    names = judge.name, ", ".join(human.name for human in humans)
    return [
        _corrected(names, metric, sample.clusters(column), values[metric.name])
        for column, metric in enumerate(sample.metrics)
        if metric.name in values and sample.is_part(column)
    ]


class _Clusters:
    """The clusters of one metric: k known ones of n.

    A cluster is known if humans labelled it, or if it has nothing to label: failed and empty answers need no
    judge. `judged` has the terms of all n clusters, `human` those of the k at the positions `sample`.
    `inclusion` has the probabilities of these, or says why they are unknown. `labelled` clusters have labels
    for every case, `partly` labelled ones for some.
    """

    def __init__(self, amounts: Floats, cases: Integers, left: Integers, inclusion: Floats | str) -> None:
        used = (amounts[:, 1] > 0) | (amounts[:, 3] > 0)
        whole = left[used] == 0
        self.labelled = int((whole & (cases[used] > 0)).sum())
        self.partly = int(((left > 0) & (left < cases)).sum())
        self.judged = ClusterTerms(amounts[used, 0], amounts[used, 1])
        self.human = ClusterTerms(amounts[used, 2][whole], amounts[used, 3][whole])
        self.sample = np.flatnonzero(whole)
        self.inclusion = inclusion if isinstance(inclusion, str) else inclusion[used][whole]


class _Sample:
    """The terms of metrics by a judge and by humans, added up by cluster."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.metrics = metrics
        self._numbers: dict[str, int] = {}
        self._terms = array("d")
        # For each cluster and metric: how many cases the judge read, and how many of them humans left open.
        self._cases, self._open = array("q"), array("q")
        self._inclusion: list[set[float | None]] = []

    def add(self, judged: Group, labelled: JudgedGroup) -> None:
        width = len(self.metrics)
        cluster = self._numbers.setdefault(judged.cluster or judged.id, len(self._numbers))
        if cluster == len(self._inclusion):
            self._inclusion.append(set())
            self._terms.extend([0.0] * (_COLUMNS * width))
            self._cases.extend([0] * width)
            self._open.extend([0] * width)
        self._inclusion[cluster].update(one.inclusion for one in labelled.verdicts if one.kind == "human")
        for column, metric in enumerate(self.metrics):
            cell = cluster * width + column
            cases, left = _cases(metric, judged, labelled.group)
            self._cases[cell] += cases
            self._open[cell] += left
            for side, group in enumerate((judged, labelled.group)):
                for term in metric.terms(group):
                    if term.overall:
                        self._terms[_COLUMNS * cell + 2 * side] += term.sum
                        self._terms[_COLUMNS * cell + 2 * side + 1] += term.count

    def is_part(self, column: int) -> bool:
        """Whether humans decided some cases of a metric, and left others open."""
        cases, left = self._counts(column)
        return 0 < int(left.sum()) < int(cases.sum())

    def clusters(self, column: int) -> _Clusters:
        cases, left = self._counts(column)
        shape = len(self._numbers), len(self.metrics), _COLUMNS
        amounts = np.frombuffer(self._terms).reshape(shape)[:, column]
        return _Clusters(amounts, cases, left, self._probabilities(cases, left))

    def _counts(self, column: int) -> tuple[Integers, Integers]:
        shape = len(self._numbers), len(self.metrics)
        cases, left = (np.frombuffer(one, dtype=np.int64) for one in (self._cases, self._open))
        return cases.reshape(shape)[:, column], left.reshape(shape)[:, column]

    def _probabilities(self, cases: Integers, left: Integers) -> Floats | str:
        """The probability with which each cluster is labelled; a cluster without a case needs no human."""
        labelled = (left == 0) & (cases > 0)
        found = [self._inclusion[number] for number in np.flatnonzero(labelled).tolist()]
        if any(len(one) > 1 for one in found):
            return CONTRADICTORY
        stated = [next(iter(one), None) for one in found]
        known = [one for one in stated if one is not None]
        if known and len(known) < len(stated):
            return MIXED_INCLUSION
        probabilities = np.ones(len(cases))
        probabilities[labelled] = known or labelled.sum() / max(1, int((cases > 0).sum()))
        return probabilities


def _cases(metric: Metric, judged: Group, labelled: Group) -> tuple[int, int]:
    """How many cases of a metric a judge decided in a group, and how many of them humans left open."""
    if metric.judged != "correct":
        asked, given = (
            {frozenset(one.targets) for one in group.judgements if one.question == metric.judged}
            for group in (judged, labelled)
        )
        return len(asked), len(asked - given)
    pairs = zip(_outcomes(judged, metric), _outcomes(labelled, metric), strict=True)
    open_cases = [not other.judge for one, other in pairs if one.judge]
    return len(open_cases), sum(open_cases)


def _outcomes(group: Group, metric: Metric) -> tuple[Outcome, ...]:
    return (*group.outcomes, *(group.partners.get(metric.needs, ()) if metric.needs else ()))


def _corrected(
    names: tuple[str, str], metric: Metric, clusters: _Clusters, judged: MetricValue
) -> CorrectedValue:
    judge, humans = names
    unit = "points" if metric.unit == "percent" else metric.unit
    human = MetricValue(metric.name, "all", None, 0, clusters.labelled, unit=metric.unit, judge=humans)
    found = CorrectedValue(
        metric=metric.name,
        judge=judge,
        humans=humans,
        labelled=clusters.labelled,
        partly=clusters.partly,
        judged=judged,
        human=human,
        corrected=replace(human, judge=f"{judge}, corrected by {humans}"),
        bias=replace(human, unit=unit, judge=judge),
    )
    if isinstance(clusters.inclusion, str) or not clusters.labelled:
        reason = clusters.inclusion if isinstance(clusters.inclusion, str) else NOT_LABELLED
        return replace(
            found,
            human=replace(found.human, reason=reason),
            corrected=replace(found.corrected, reason=reason),
            bias=replace(found.bias, reason=reason),
        )
    correction = correct(clusters.judged, clusters.human, clusters.sample, clusters.inclusion)
    return _with_values(found, metric, correction, float(clusters.human.counts.sum()))


def _with_values(found: CorrectedValue, metric: Metric, correction: Correction, n: float) -> CorrectedValue:
    scale, whole = SCALES[metric.unit], int(n) if n.is_integer() else n
    low, high = (None if bound is None else bound / scale for bound in metric.range)

    def measured(value: MetricValue, estimates: Estimates, *, difference: bool = False) -> MetricValue:
        bounds = difference_range((low, high)) if difference else (low, high)
        within = _within(float(estimates.values[0]), bounds)
        if math.isnan(within):
            return replace(value, reason=metric.absent)
        known = estimates._replace(values=np.array([within]), clusters=np.array([found.labelled]))
        (interval,) = intervals(known, [bounds], graded=metric.graded)
        return with_interval(replace(value, value=scale * within, n=whole), interval, scale)

    human = measured(found.human, correction.human)
    corrected = measured(found.corrected, correction.corrected)
    sampled = replace(found.human, judge=found.judge)
    return replace(
        found,
        human=human,
        sampled=measured(sampled, correction.sampled),
        corrected=corrected,
        bias=measured(found.bias, correction.bias, difference=True),
        weight=correction.weight,
        narrowed=_narrowed(human, corrected),
        needed=clusters_to_halve(correction, found.judged.clusters) if corrected.interval else None,
    )


def _within(value: float, bounds: Range) -> float:
    """The value, or the bound that it exceeds; NaN stays."""
    least, most = bounds
    if least is not None and value < least:
        return least
    return most if most is not None and value > most else value


def _narrowed(human: MetricValue, corrected: MetricValue) -> float | None:
    if human.low is None or human.high is None or corrected.low is None or corrected.high is None:
        return None
    width = human.high - human.low
    # Equal widths differ by rounding errors, which would be shown as -0.0.
    return round(100 * (1 - (corrected.high - corrected.low) / width), 9) + 0.0 if width else None


# -- Attaches the figures of a paper to the metrics of a run, and says whether they are comparable

FEW_ERRORS = 0.01
"""The share of probes that may lack an answer, or a verdict, before a figure is no longer comparable."""

NOT_THEIRS: Mapping[str, str] = {
    "synthetic": "the data are synthetic, so published figures are not shown",
    "other_data": "the data are not verifiably those that the paper released, "
    "so published figures are not shown",
}
"""The options that mark data for which the paper printed no figures, and the note for each."""


def add_published(result: Result, *against: str) -> Result:
    """Add the paper's figures to each metric: those of the named rows, then those of humans.

    If the paper prints a figure both for exactly what was run (at this size, this temperature) and for its
    own default, the first counts. A figure is not comparable, and its note says why, if the paper took it
    under other conditions, if this run used other samples or options than the paper, or if too many answers
    are missing. The notes of the result name a row that has no figures for this setting. Data that are not
    the paper's get no figures.

    Args:
        against: Rows of the paper, such as the names of models.
    """
    paper = paper_of(result.benchmark)
    if paper is None:
        if against:
            raise no_figures(result.benchmark)
        return result
    named = [paper.row(row) for row in against]
    not_theirs = next((why for option, why in NOT_THEIRS.items() if result.options.get(option)), None)
    if not_theirs is not None:
        return replace(result, notes=list(dict.fromkeys([*result.notes, not_theirs])))
    settings = _settings_of(paper, result)
    humans = [paper.human] if paper.human else []
    by_row = {
        row: {key: figures for name in settings for key, figures in paper.figures(name, row).items()}
        for row in dict.fromkeys([*named, *humans])
    }
    silent = [f"{paper.paper}: no figure of {row} for this setting" for row in named if not by_row[row]]
    return replace(
        result,
        metrics=[_beside(metric, list(by_row.values()), paper, result) for metric in result.metrics],
        notes=list(dict.fromkeys([*result.notes, *silent])),
    )


def _settings_of(paper: Paper, result: Result) -> list[str]:
    """The paper's names for this setting, which options may have made another setting, the most specific
    last. Empty for what it did not run."""
    ours = _flat(result.options)
    found = [
        name
        for name, setting in paper.settings.items()
        if _agree(setting.options, {**setting.options, **ours} if name == result.setting else ours)
    ]
    return sorted(found, key=lambda name: len(paper.settings[name].options))


def _agree(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    return all(_same(ours.get(name), value) for name, value in theirs.items())


def _same(ours: Any, theirs: Any) -> bool:
    """Ours may be a text: '224' is 224."""
    return bool(ours == theirs) or (isinstance(ours, str) and ours == str(theirs))


def _flat(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options by name; those within another one as 'sampling.temperature'."""
    flat: dict[str, Any] = {}
    for name, value in options.items():
        within = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{inner}": v for inner, v in within.items()} or {name: value}
    return flat


def _beside(
    metric: MetricValue, by_row: Sequence[Mapping[FigureKey, Sequence[Figure]]], paper: Paper, result: Result
) -> MetricValue:
    figures = [figure for row in by_row for figure in row.get((metric.metric, metric.subset), ())]
    values = [_departed(figure.value, _departure(figure, metric, paper, result)) for figure in figures]
    return replace(metric, published=values or None)


def _departure(figure: Figure, metric: MetricValue, paper: Paper, result: Result) -> str:
    """How the conditions of this value differ from those of the paper's figure."""
    ours = _flat(result.options)
    others = [
        f"{name.rpartition('.')[2]} {ours[name]} here, {'none' if theirs is None else theirs} in the paper"
        for name, theirs in figure.options.items()
        if ours.get(name) is not None and not _same(ours[name], theirs)
    ]
    if result.samples != figure.samples:
        others.append(f"{result.samples:,} {paper.unit} here, {figure.samples:,} in the paper")
    elif metric.metric in paper.whole and 0 < metric.n < (1 - FEW_ERRORS) * figure.n * _repeats(result):
        others.append(f"over {metric.n:,.0f} here, {figure.n * _repeats(result):,} in the paper")
    if result.unanswered > FEW_ERRORS * result.probes:
        others.append(f"{result.unanswered:,} of {result.probes:,} probes without an answer here")
    return joined(*others) or ""


def _repeats(result: Result) -> int:
    return int(result.options.get("repeats") or 1)


def _departed(value: PublishedValue, departure: str) -> PublishedValue:
    """The figure with the difference as its note; a figure that is not comparable anyway keeps its own."""
    if not value.comparable or not departure:
        return value
    return replace(value, comparable=False, note=joined(value.note or "", departure))
