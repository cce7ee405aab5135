"""The judge report: agreement of judges and text metrics with humans (ConTextual 3.3.1, Table 4)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.benchmarks.base import RANGES
from sightline.errors import UserError, unknown_name
from sightline.evaluation.judge_data import JudgedAnswer, JudgeData
from sightline.evaluation.judges import MAX_PAIRED_JUDGES
from sightline.metrics.agreement import (
    CORRECT,
    UNDECIDED,
    VerdictCoder,
    item_id,
    levels,
    majority,
    self_agreement,
)
from sightline.metrics.association import (
    AGREEMENT,
    ALPHA,
    ALPHA_OF_TWO,
    KAPPA,
    ROC_AUC,
    SPEARMAN,
    JudgeDifference,
    Statistic,
    judge_difference,
    roc_curve,
    statistic_value,
)
from sightline.metrics.label_quality import ItemLabel, Vote, label_quality
from sightline.metrics.significance import holm
from sightline.metrics.statistics import Floats, clustered_mean
from sightline.reporting.judges import (
    HUMANS,
    SCORES,
    AnnotatorAgreement,
    JudgeReport,
    JudgeResult,
    RatedAnswer,
    RaterAccuracy,
    RatingQuality,
    ResponderValues,
)
from sightline.types import MetricValue, Range, Verdict, each_value, subset_name


class _JudgeLevels(Struct, frozen=True):
    """The answers on which humans have a majority, and what each judge says of them.

    `truth` has shape (answers,): 1 for correct, 0 for not. `by_judge` holds an array of the same shape for
    each judge and each score, NaN for an answer that it did not judge.
    """

    answers: list[JudgedAnswer]
    truth: Floats
    by_judge: Mapping[str, Floats]

    def clusters(self, chosen: NDArray[np.bool_]) -> list[str]:
        """`chosen` has shape (answers,)."""
        return [self.answers[index].cluster for index in np.flatnonzero(chosen)]


def judge_report(data: JudgeData, labels: Sequence[str] = ()) -> JudgeReport:
    """Compare every judge and every text metric with the majority of the humans."""
    ratings = _ratings(data)
    votes = np.array(list(ratings.values())).reshape(len(ratings), len(data.answers))
    majorities = [majority(vote for vote in own if not math.isnan(vote)) for own in votes.T.tolist()]
    truth = {index: vote for index, vote in enumerate(majorities) if vote is not None}
    if not truth:
        raise _no_human_verdict(data)
    answers = [data.answers[index] for index in truth]
    judged = _JudgeLevels(answers, np.array(list(truth.values())), dict(_levels_by_judge(data, answers)))
    if not judged.by_judge:
        raise UserError(
            "no judge and no metric has judged these answers",
            expected="results folders with another --judge than humans, or --set text_metrics=rouge_l",
        )
    rows = [
        _judge_result(judged, judge, subset, chosen)
        for subset, chosen in _subsets(answers, labels)
        for judge in judged.by_judge
    ]
    best, contrasts, tested = _differences_from_best(judged, rows)
    errors = named_errors(data.humans)
    return JudgeReport(
        rows=rows,
        humans=_annotator_agreement(data, ratings, votes),
        repeats=_repeats(data),
        best=best,
        contrasts=contrasts,
        tested=tested,
        responders=responder_values(judged, labels),
        errors=error_shares(data.answers, errors),
        several_errors=any(len(names) > 1 for by_human in errors.values() for names in by_human.values()),
        versions={name: model for name, model in data.versions.items() if name in judged.by_judge},
        benchmarks=data.benchmarks,
        notes=data.notes,
    )


def report_labels(by: str | None, data: JudgeData) -> list[str]:
    """The labels by which a judge report is split; `by` None takes the default."""
    known = dict.fromkeys(name for answer in data.answers for name in answer.labels)
    if by is not None and by not in known:
        raise unknown_name("label", by, known)
    return [by] if by is not None else [name for name in ("category",) if name in known]


def _no_human_verdict(data: JudgeData) -> UserError:
    others = ", ".join(dict.fromkeys(f"{one.judge} ({one.kind})" for one in data.judges))
    found = [f"{len(data.humans):,} human verdicts on them"]
    found += [f"verdicts of {others}"] if others else []
    return UserError(
        f"humans decided on none of the {len(data.answers):,} answers",
        found="; ".join([*found, *data.notes]),
        expected="--human FILE with verdicts on the keys of these answers",
    )


def _judge_result(judged: _JudgeLevels, judge: str, subset: str, chosen: NDArray[np.bool_]) -> JudgeResult:
    """`chosen` has shape (answers,)."""
    values = judged.by_judge[judge]
    read = chosen & ~np.isnan(values)
    is_score = judge in SCORES
    decided = read & (values != UNDECIDED) & (not is_score)

    def measure(statistic: Statistic, among: NDArray[np.bool_]) -> MetricValue:
        clusters = judged.clusters(among)
        value = statistic_value(statistic, values[among], judged.truth[among], clusters)
        return replace(value, subset=subset, judge=judge)

    return JudgeResult(
        judge=judge,
        subset=subset,
        roc_auc=measure(ROC_AUC, read),
        spearman=measure(SPEARMAN, read),
        agreement=measure(AGREEMENT, decided),
        kappa=measure(KAPPA, decided),
        alpha=measure(ALPHA_OF_TWO, decided),
        answers=int(read.sum()),
        decided=None if is_score else int(decided.sum()),
        curve=roc_curve(values[read], judged.truth[read]) if subset == "all" else (),
    )


def _differences_from_best(
    judged: _JudgeLevels, rows: Sequence[JudgeResult]
) -> tuple[str | None, list[tuple[str, JudgeDifference]], int]:
    """The judge with the highest ROC-AUC, the difference of every other judge from it, and the number of
    tests.

    Only judges that judged every answer of the most complete judge can be the best: areas over different
    answers are not comparable. The best is chosen on the same answers, so that every pair of judges counts as
    a test.
    """
    overall = {row.judge: row.roc_auc.value for row in rows if row.subset == "all"}
    areas = {judge: value for judge, value in overall.items() if value is not None}
    if not areas:
        return None, [], 0
    read = {judge: ~np.isnan(judged.by_judge[judge]) for judge in areas}
    most = max(read.values(), key=np.count_nonzero)
    best = max((judge for judge in areas if read[judge][most].all()), key=areas.__getitem__)
    others = sorted((one for one in areas if one != best), key=lambda one: -areas[one])
    pairs = list(combinations([*others, best], 2))
    differences = [_difference(judged, *pair) for pair in pairs]
    corrected = holm([one.p for one in differences])
    contrasts = [
        (judge, replace(one, holm=p, difference=replace(one.difference, judge=judge)))
        for (judge, other), one, p in zip(pairs, differences, corrected, strict=True)
        if other == best
    ]
    return best, contrasts, sum(p is not None for p in corrected)


def _difference(judged: _JudgeLevels, judge: str, other: str) -> JudgeDifference:
    """The ROC-AUC of a judge minus that of another, over the answers that both read."""
    readings = judged.by_judge[judge], judged.by_judge[other]
    shared = ~np.isnan(readings[0]) & ~np.isnan(readings[1])
    levels_of_both = readings[0][shared], readings[1][shared]
    return judge_difference(ROC_AUC, levels_of_both, judged.truth[shared], judged.clusters(shared))


def _subsets(
    answers: Sequence[JudgedAnswer], labels: Sequence[str]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """All answers, those of each responder if there are several, and those under each value of a label."""
    yield "all", np.ones(len(answers), dtype=bool)
    responders = [answer.responders for answer in answers]
    if len({name for names in responders for name in names}) > 1:
        for name, chosen in _by_value(responders):
            yield f"{RESPONDER}={name}", chosen
    for label in labels:
        for value, chosen in _by_value([each_value(answer.labels.get(label, ())) for answer in answers]):
            yield subset_name(label, value), chosen


def _by_value(values: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    for value in dict.fromkeys(value for own in values for value in own):
        yield value, np.array([value in own for own in values])


def _levels_by_judge(data: JudgeData, answers: Sequence[JudgedAnswer]) -> Iterator[tuple[str, Floats]]:
    """The levels of each judge, then those of each score: shape (answers,), NaN for none."""
    for judge, verdicts in _verdicts_by_judge(data).items():
        by_item = levels(verdicts)
        values = np.array([_level(by_item, answer) for answer in answers])
        if not np.isnan(values).all():
            yield judge, values
    for name in SCORES:
        # Rounding removes differences of floating point only, so that equal scores share a rank.
        values = np.array([round(answer.scores.get(name, np.nan), 9) for answer in answers])
        if not np.isnan(values).all():
            yield name, values


def _verdicts_by_judge(data: JudgeData) -> Mapping[str, Sequence[Verdict]]:
    """The verdicts of each judge; the name of a judge with several scorers contains the scorer."""
    scorers: dict[str, set[str]] = defaultdict(set)
    for verdict in data.judges:
        scorers[verdict.judge].add(verdict.scorer)
    by_judge: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in data.judges:
        several = len(scorers[verdict.judge]) > 1
        by_judge[f"{verdict.judge} ({verdict.scorer})" if several else verdict.judge].append(verdict)
    return by_judge


def _repeats(data: JudgeData) -> list[MetricValue]:
    """The agreement of the repeats of each judge, over all answers that it judged repeatedly."""
    clusters: dict[tuple[str, ...], str] = {(answer.key,): answer.cluster for answer in data.answers}
    values: list[MetricValue] = []
    for judge, verdicts in _verdicts_by_judge(data).items():
        coder = VerdictCoder()
        for verdict in verdicts:
            coder.add([verdict], clusters.get(verdict.targets))
        codes = coder.codes()
        for rater in codes.codes:
            repeats = self_agreement(codes, rater)
            values += [replace(value, subset=f"repeated_judge={judge}", judge=judge) for value in repeats]
    return values


def _level(by_item: Mapping[int, float], answer: JudgedAnswer) -> float:
    """The level of an answer; a verdict without a variant applies under every variant."""
    items = (item_id((answer.key,), CORRECT, variant) for variant in (answer.variant, ""))
    return next((by_item[item] for item in items if item in by_item), np.nan)


def _ratings(data: JudgeData) -> dict[str, Floats]:
    """The rating of every answer by each human: 1 correct, 0 not, NaN for undecided or none."""
    by_human: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in data.humans:
        by_human[verdict.judge].append(verdict)
    ratings = {}
    for human, verdicts in by_human.items():
        decided = {item: level for item, level in levels(verdicts).items() if level != UNDECIDED}
        ratings[human] = np.array([_level(decided, answer) for answer in data.answers])
    return ratings


def _annotator_agreement(data: JudgeData, ratings: Mapping[str, Floats], votes: Floats) -> AnnotatorAgreement:
    """`votes` has shape (humans, answers)."""
    right, wrong = ((votes == vote).sum(axis=0).astype(np.float64) for vote in (1, 0))
    rated = right + wrong

    def clusters(chosen: NDArray[np.bool_]) -> list[str]:
        return [data.answers[index].cluster for index in np.flatnonzero(chosen)]

    pairs = []
    if len(ratings) <= MAX_PAIRED_JUDGES:
        for (one, first), (other, second) in combinations(ratings.items(), 2):
            both = ~np.isnan(first) & ~np.isnan(second)
            kappa = statistic_value(KAPPA, first[both], second[both], clusters(both))
            pairs.append(replace(kappa, subset=f"humans={one} and {other}"))
    several = rated >= 2
    alpha = statistic_value(ALPHA, right[several], wrong[several], clusters(several))
    return AnnotatorAgreement(
        raters=len(ratings),
        answers=int((rated > 0).sum()),
        tied=int(((rated > 0) & (right == wrong)).sum()),
        alpha=replace(alpha, subset="human"),
        pairs=pairs,
        quality=rating_quality(data.answers, ratings),
    )


# -- What humans, judges and metrics say of each responder's answers, the errors that humans name in them, the
#    raters

_LABELS = ("wrong", "right")

RESPONDER = "responder"
"""The label of subsets by the model that answered."""


def responder_values(judged: _JudgeLevels, labels: Sequence[str]) -> list[ResponderValues]:
    """The answers of each responder that humans and judges accept, in percent, and the means of its scores.

    As Table 3 of ConTextual, over the answers that humans decided: all of them, then those of each value of
    each label.
    """
    columns = {HUMANS: judged.truth} | {
        judge: levels / 100 if judge in SCORES else np.where(np.isnan(levels), np.nan, levels > UNDECIDED)
        for judge, levels in judged.by_judge.items()
    }
    subsets = [("all", np.ones(len(judged.answers), dtype=bool))]
    for label in labels:
        found = _by_value([each_value(answer.labels.get(label, ())) for answer in judged.answers])
        subsets += [(subset_name(label, value), chosen) for value, chosen in found]

    def mean(name: str, chosen: NDArray[np.bool_]) -> MetricValue:
        read = chosen & ~np.isnan(columns[name])
        values = list(zip(judged.clusters(read), columns[name][read].tolist(), strict=True))
        bounds: Range = (None, None) if RANGES.get(name) == (None, None) else (0, 1)
        return clustered_mean(
            name, values, reason="it read none of these answers", bounds=bounds, graded=name in SCORES
        )

    return [
        ResponderValues(responder, subset, {name: mean(name, own & chosen) for name in columns})
        for responder, own in _by_value([answer.responders for answer in judged.answers])
        for subset, chosen in subsets
        if (own & chosen).any()
    ]


NO_MAJORITY = "no majority"
"""The error of an answer in which humans name errors, but no majority of them the same one."""


def error_shares(answers: Sequence[JudgedAnswer], named: NamedErrors) -> list[MetricValue]:
    """The share of each error among a responder's answers in which some human names an error.

    An answer has an error if more than half of the humans who name any error in it name this one.

    Returns:
        One value per responder and error, in percent, the most frequent error first.
    """
    by_responder: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for answer in answers:
        # A verdict without a variant applies to the answer under every variant.
        by_human = {**named.get((answer.key, ""), {}), **named.get((answer.key, answer.variant), {})}
        if by_human:
            for responder in answer.responders:
                by_responder[responder].append((answer.cluster, _agreed_errors(by_human)))
    counts = Counter(error for of in by_responder.values() for _, errors in of for error in sorted(errors))
    return [
        _share(error, responder, [(cluster, float(error in errors)) for cluster, errors in found])
        for responder, found in by_responder.items()
        for error, _ in counts.most_common()
    ]


def rating_quality(answers: Sequence[JudgedAnswer], ratings: Mapping[str, Floats]) -> RatingQuality | str:
    """The accuracy of each rater, and the answers to adjudicate first, by the model of Dawid and Skene.

    Args:
        ratings: The rating of every answer by each rater: 1 right, 0 not, NaN for none; shape (answers,).
    """
    votes = [
        Vote(str(number), rater, _LABELS[int(level)])
        for rater, levels in ratings.items()
        for number, level in enumerate(levels.tolist())
        if not math.isnan(level)
    ]
    found = label_quality(votes)
    if isinstance(found, str):
        return found
    by_answer: dict[str, list[Vote]] = defaultdict(list)
    for vote in votes:
        by_answer[vote.item].append(vote)
    posteriors = {one.item: one.posterior for one in found.items}

    def accuracy(rater: str) -> MetricValue:
        own = [
            (answers[int(vote.item)].cluster, posteriors[vote.item][vote.label])
            for vote in votes
            if vote.annotator == rater
        ]
        share = clustered_mean("accuracy", own, reason="there is no rating", graded=True)
        return replace(share, subset=f"human={rater}")

    return RatingQuality(
        raters=[
            RaterAccuracy(
                rater=one.annotator,
                accuracy=accuracy(one.annotator),
                right=100 * one.confusion["right"]["right"],
                wrong=100 * one.confusion["wrong"]["wrong"],
            )
            for one in found.annotators
        ],
        answers=[_rated(answers[int(one.item)], by_answer[one.item], one) for one in found.items]
        if found.orders
        else [],
        notes=found.notes(),
    )


def _rated(answer: JudgedAnswer, votes: Sequence[Vote], label: ItemLabel) -> RatedAnswer:
    return RatedAnswer(
        sample=answer.sample or answer.key,
        variant=answer.variant,
        responders=answer.responders,
        right=sum(vote.label == "right" for vote in votes),
        raters=len(votes),
        probability=100 * label.posterior["right"],
        loss=100 * label.loss,
    )


NamedErrors = Mapping[tuple[str, str], Mapping[str, set[str]]]
"""The errors that each human names, by answer key and variant."""


def named_errors(verdicts: Iterable[Verdict]) -> NamedErrors:
    """The errors of the first verdict of each human that names any, as for verdicts themselves."""
    named: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
    for verdict in verdicts:
        if verdict.labels:
            named[verdict.targets[0], verdict.variant].setdefault(verdict.judge, set(verdict.labels))
    return named


def _agreed_errors(by_human: Mapping[str, set[str]]) -> frozenset[str]:
    named = frozenset[str]().union(*by_human.values())
    agreed = (error for error in named if majority(error in errors for errors in by_human.values()))
    return frozenset(agreed) or frozenset((NO_MAJORITY,))


def _share(name: str, responder: str, values: Sequence[tuple[str, float]]) -> MetricValue:
    share = clustered_mean(name, values, reason="there is no answer")
    return replace(share, subset=f"{RESPONDER}={responder}")
