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
        decided: The number of answers that the judge decided; None for a text metric.
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
    """The quality of the ratings, by the model of Dawid and Skene."""

    raters: list[RaterAccuracy]
    answers: list[RatedAnswer]


class AnnotatorAgreement(Struct, frozen=True):
    """The agreement of the human annotators."""

    raters: int
    answers: int
    tied: int
    alpha: MetricValue
    pairs: list[MetricValue]
    quality: RatingQuality | str


class JudgeReport(Struct, frozen=True):
    """A judge report."""

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
