"""How far those who judge agree: two evaluators with each other, several raters with their majority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from sightline.errors import UserError
from sightline.metrics.association import AGREEMENT
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import clustered_mean
from sightline.scoring.majority import majority
from sightline.types import PERCENT, MetricDefinition, MetricValue, Verdict, VerdictName

Clusters = Mapping[tuple[str, ...], str]
"""A verdict's targets -> the cluster that intervals resample; targets that it lacks are their own."""

JudgedItem = tuple[tuple[str, ...], str, str]
"""What is judged: targets, question and variant."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    "agreement": MetricDefinition(
        meaning="answers on which two judges agree, right or not right",
        better="higher",
        range=PERCENT,
        source="CODIS 5.3, Table 7",
    ),
    "human_consistency": MetricDefinition(
        meaning="ratings that agree with the majority of the human annotators",
        better="higher",
        range=PERCENT,
        source="CODIS Appendix A, Table 8",
    ),
}
"""The metrics of this file by name."""

UNDECIDED = 0.5
"""Where a verdict that leaves it open stands: between not right (0) and right (1)."""

_LEVELS: Mapping[VerdictName, float] = {
    "right": 1.0,
    "wrong": 0.0,
    "miss": 0.0,
    "refused": 0.0,
    "undecided": UNDECIDED,
}
_Decisions = dict[JudgedItem, bool]


class HumanConsistency(Struct, frozen=True):
    """How far raters agree with their majority.

    `value` averages over the ratings of the `items` that all `raters` decided: n = items x raters.
    `ties` of these items went to `fifth`; another `unresolved` ones tied without a fifth verdict and are
    left out.
    """

    value: MetricValue
    raters: tuple[str, ...]
    fifth: str | None
    items: int
    ties: int
    unresolved: int


def levels(verdicts: Iterable[Verdict]) -> dict[JudgedItem, float]:
    """What one judge says of each item: 1 right, 0 not, UNDECIDED. Of several verdicts on one item the first
    that decides counts; an item whose judgement failed is not among them."""
    found: dict[JudgedItem, float] = {}
    for verdict in verdicts:
        level = _LEVELS.get(verdict.verdict)
        item = (verdict.targets, verdict.question, verdict.variant)
        if level is not None and found.get(item, UNDECIDED) == UNDECIDED:
            found[item] = level
    return found


def agreement(
    first: Iterable[Verdict],
    second: Iterable[Verdict],
    *,
    clusters: Clusters | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> MetricValue:
    """The share of what both evaluators decided on which they agree, percent (CODIS 5.3, Table 7).

    They agree on right or not right: a miss and a refusal are decided and not right. Where an evaluator
    has several verdicts on the same, the first that decides counts.
    """
    first, second = list(first), list(second)
    one, other = _decisions(first), _decisions(second)
    both = [item for item in one if item in other]
    return statistic_value(
        AGREEMENT,
        np.array([one[item] for item in both], dtype=np.float64),
        np.array([other[item] for item in both], dtype=np.float64),
        [(clusters or {}).get(targets, targets) for targets, _, _ in both],
        judge=", ".join(dict.fromkeys(verdict.judge for verdict in (*first, *second))) or None,
        seed=seed,
        resamples=resamples,
    )


def human_consistency(
    verdicts: Iterable[Verdict],
    *,
    fifth: str | None = None,
    clusters: Clusters | None = None,
    seed: int = 0,
    resamples: int = 2000,
) -> HumanConsistency:
    """The raters' mean agreement with their majority, percent (CODIS Appendix A, Table 8).

    Over what all raters decided, as the paper's 100 queries a model; what is split among them does not
    enter. A tie goes to `fifth`, who never enters the mean; if None, the judge who appears on ties only.
    Raises UserError where that could be several.
    """
    given: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        given.setdefault(verdict.judge, []).append(verdict)
    votes = {judge: _decisions(own) for judge, own in given.items()}
    fifth = fifth or _tie_breaker(votes)
    casting = votes.pop(fifth, {}) if fifth else {}
    agreed: list[tuple[str | tuple[str, ...], float]] = []
    items = ties = unresolved = 0
    for item in _decided_by_all(votes.values()):
        ratings = [own[item] for own in votes.values()]
        winner = majority(ratings)
        if winner is None and item not in casting:
            unresolved += 1
            continue
        items += 1
        ties += winner is None
        truth = casting[item] if winner is None else winner
        cluster = (clusters or {}).get(item[0], item[0])
        agreed += [(cluster, float(rating == truth)) for rating in ratings]
    value = clustered_mean(
        "human_consistency",
        agreed,
        shares=True,
        reason="nothing was decided by all raters",
        judge=", ".join(votes) or None,
        seed=seed,
        resamples=resamples,
    )
    return HumanConsistency(value, tuple(votes), fifth, items, ties, unresolved)


def _decisions(verdicts: Iterable[Verdict]) -> _Decisions:
    """Right or not, for what was decided."""
    return {item: level == 1 for item, level in levels(verdicts).items() if level != UNDECIDED}


def _decided_by_all(votes: Iterable[_Decisions]) -> list[JudgedItem]:
    first, *others = list(votes) or [{}]
    return [item for item in first if all(item in other for other in others)]


def _tie_breaker(votes: Mapping[str, _Decisions]) -> str | None:
    """The judge on whose every item the others tie; None if there is none."""
    found = []
    for judge, own in votes.items():
        others = [other for name, other in votes.items() if name != judge]
        ratings = [[other[item] for other in others if item in other] for item in own]
        if own and all(some and majority(some) is None for some in ratings):
            found.append(judge)
    if len(found) > 1:
        raise UserError(
            "several judges appear on tied answers only",
            found=", ".join(found),
            expected="the fifth rater, who decides ties, to be named",
        )
    return found[0] if found else None
