"""The records of a judge report."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sightline.metric_types import MetricValue
from sightline.metrics.judge_statistics import JudgeDifference


class JudgeResult(Struct, frozen=True):
    """A judge or a text metric against the majority of the human annotators, over a subset.

    A text metric gives numbers and no verdicts: its agreement, kappa and alpha have no value.

    Attributes:
        judge: The name of the judge or of the text metric.
        subset: 'all', 'responder=NAME' or 'LABEL=VALUE'.
        roc_auc: Over all answers that the judge read.
        spearman: Over all answers that the judge read.
        agreement: Over the answers that the judge decided.
        kappa: Cohen's kappa over the answers that the judge decided.
        alpha: Krippendorff's alpha over the answers that the judge decided.
        answers: The number of answers that the judge read.
        decided: The number of answers that the judge decided; None for a text metric.
        curve: The points of its ROC curve over all answers (`roc_curve`); empty over other subsets.
    """

    judge: str
    subset: str
    roc_auc: MetricValue
    spearman: MetricValue
    agreement: MetricValue
    kappa: MetricValue
    alpha: MetricValue
    answers: int
    decided: int | None
    curve: tuple[tuple[float, float], ...] = ()


class RaterAccuracy(Struct, frozen=True):
    """How often a rater gives the true label, by the model of Dawid and Skene.

    Attributes:
        rater: The name.
        accuracy: The expected share of right labels among the rater's own.
        right: The probability that the rater accepts a right answer, in percent.
        wrong: The probability that the rater refuses a wrong answer, in percent.
    """

    rater: str
    accuracy: MetricValue
    right: float
    wrong: float


class RatedAnswer(Struct, frozen=True):
    """An answer whose label is uncertain.

    Attributes:
        sample: The sample; the key of the answer if no file names it.
        variant: The name of the probe.
        responders: The models that gave the answer.
        right: The number of raters who accept it.
        raters: The number of raters who decided.
        probability: The probability that it is right, in percent.
        loss: The probability that the label that counts is wrong, in percent.
    """

    sample: str
    variant: str
    responders: tuple[str, ...]
    right: int
    raters: int
    probability: float
    loss: float


class RatingQuality(Struct, frozen=True):
    """The quality of the ratings, by the model of Dawid and Skene.

    Attributes:
        raters: The raters, in the order of their first ratings.
        answers: The rated answers; those to adjudicate first come first.
    """

    raters: list[RaterAccuracy]
    answers: list[RatedAnswer]


class AnnotatorAgreement(Struct, frozen=True):
    """The agreement of the human annotators.

    Attributes:
        raters: The number of annotators.
        answers: The number of answers that at least one of them decided.
        tied: The number of answers without a majority.
        alpha: Krippendorff's alpha of all of them.
        pairs: Cohen's kappa of every two; empty if there are many annotators.
        quality: The accuracy of each annotator, or the reason why it cannot be estimated.
    """

    raters: int
    answers: int
    tied: int
    alpha: MetricValue
    pairs: list[MetricValue]
    quality: RatingQuality | str


class JudgeReport(Struct, frozen=True):
    """A judge report.

    Attributes:
        rows: Every judge over every subset.
        humans: The agreement of the human annotators.
        repeats: `self_agreement` and `self_alpha` of each judge that was asked repeatedly.
        best: The judge with the highest ROC-AUC among those that read the most answers.
        contrasts: Every other judge with its ROC-AUC minus that of `best`.
        tested: The number of pairs of judges whose difference is tested: the family of Holm's correction.
        accepted: The share of each responder's answers that humans accept.
        errors: The share of each error type by responder.
        versions: The identities of the models behind the text metrics.
        benchmarks: The benchmarks of the answers.
        notes: Notes for the reader.
    """

    rows: list[JudgeResult]
    humans: AnnotatorAgreement
    repeats: list[MetricValue]
    best: str | None
    contrasts: list[tuple[str, JudgeDifference]]
    tested: int
    accepted: list[MetricValue]
    errors: list[MetricValue]
    versions: Mapping[str, str]
    benchmarks: tuple[str, ...]
    notes: list[str]
