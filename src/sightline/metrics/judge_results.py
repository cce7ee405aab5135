"""What a judge report holds, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from sightline.metrics.judge_statistics import JudgeDifference
from sightline.types import MetricValue


class JudgeResult(Struct, frozen=True):
    """A judge or a metric against people's majority, over a subset ('all', 'responder=...', 'category=...').

    `roc_auc` and `spearman` are over all answers that it has read, `agreement`, `kappa` and `alpha` over
    those that it `decided`; a metric gives numbers and decides nothing (None).
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


class AnnotatorAgreement(Struct, frozen=True):
    """The people: how many, the answers that they rated, and those that they split over evenly.

    `alpha` is Krippendorff's over all of them, `pairs` Cohen's kappa of every two, where they are few.
    """

    raters: int
    answers: int
    tied: int
    alpha: MetricValue
    pairs: list[MetricValue]


class JudgeReport(Struct, frozen=True):
    """A judge report. `best` has the highest ROC-AUC of those that read the most answers, `contrasts` hold
    every other judge against it. `accepted` and `errors` are what people say of each responder's answers."""

    rows: list[JudgeResult]
    humans: AnnotatorAgreement
    best: str | None
    contrasts: list[tuple[str, JudgeDifference]]
    accepted: list[MetricValue]
    errors: list[MetricValue]
    versions: Mapping[str, str]
    benchmarks: tuple[str, ...]
    notes: list[str]
