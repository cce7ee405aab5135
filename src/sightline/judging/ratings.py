"""The share of each responder's answers that humans accept, the errors that humans name in them, the raters.

ConTextual reports the share that the majority of three annotators accepts (section 3.2.1, Table 3) and names
what is wrong with some answers (Appendix I); II-Bench counts the errors of wrong answers (section 4.3,
Figure 4).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from sightline.judging.judge_data import JudgedAnswer
from sightline.judging.judge_results import RatedAnswer, RaterAccuracy, RatingQuality
from sightline.metric_types import MetricValue
from sightline.metrics.dawid_skene import Vote
from sightline.metrics.label_quality import ItemLabel, label_quality
from sightline.metrics.metric_values import clustered_mean
from sightline.metrics.statistics import Floats
from sightline.scoring.majority import majority
from sightline.types import Verdict

_LABELS = ("wrong", "right")

RESPONDER = "responder"
"""The label of subsets by the model that answered."""


def accepted_shares(answers: Sequence[JudgedAnswer], truth: Floats) -> list[MetricValue]:
    """The share of each responder's answers that humans accept.

    Args:
        truth: 1 for each answer that the majority accepts, otherwise 0; shape (answers,).

    Returns:
        One value per responder, in percent.
    """
    by_responder: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for answer, value in zip(answers, truth.tolist(), strict=True):
        for responder in answer.responders:
            by_responder[responder].append((answer.cluster, value))
    return [_share("accepted", responder, values) for responder, values in by_responder.items()]


def error_shares(answers: Sequence[JudgedAnswer], verdicts: Iterable[Verdict]) -> list[MetricValue]:
    """The share of each error among a responder's answers in which some human names an error.

    An answer has an error if more than half of the humans who name any error in it name this one. An answer
    may have several errors.

    Returns:
        One value per responder and error, in percent, the most frequent error of a responder first.
    """
    named = _named_errors(verdicts)
    by_responder: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
    for answer in answers:
        # A verdict without a variant applies to the answer under every variant.
        by_human = {**named.get((answer.key, ""), {}), **named.get((answer.key, answer.variant), {})}
        if by_human:
            for responder in answer.responders:
                by_responder[responder].append((answer.cluster, _agreed_errors(by_human)))
    values = []
    for responder, found in by_responder.items():
        counts = Counter(error for _, errors in found for error in sorted(errors))
        for error, _ in counts.most_common():
            shares = [(cluster, float(error in errors)) for cluster, errors in found]
            values.append(_share(error, responder, shares))
    return values


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
        answers=[_rated(answers[int(one.item)], by_answer[one.item], one) for one in found.items],
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


def _named_errors(verdicts: Iterable[Verdict]) -> Mapping[tuple[str, str], Mapping[str, set[str]]]:
    """The errors that each human names, by answer key and variant."""
    named: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for verdict in verdicts:
        if verdict.labels:
            named[verdict.targets[0], verdict.variant][verdict.judge].update(verdict.labels)
    return named


def _agreed_errors(by_human: Mapping[str, set[str]]) -> frozenset[str]:
    named = frozenset[str]().union(*by_human.values())
    return frozenset(error for error in named if majority(error in errors for errors in by_human.values()))


def _share(name: str, responder: str, values: Sequence[tuple[str, float]]) -> MetricValue:
    share = clustered_mean(name, values, reason="there is no answer")
    return replace(share, subset=f"{RESPONDER}={responder}")
