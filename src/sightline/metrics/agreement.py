"""Agreement of judges: two judges with each other, several human raters with their majority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metric_types import PERCENT, MetricDefinition, MetricValue
from sightline.metrics.association import AGREEMENT
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import clustered_mean
from sightline.scoring.majority import majority
from sightline.types import Verdict, VerdictName

Clusters = Mapping[tuple[str, ...], str]
"""The targets of a verdict -> their cluster.

Targets that are absent form a cluster of their own."""

JudgedItem = tuple[tuple[str, ...], str, str]
"""The targets, the question and the variant of a verdict."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    "agreement": MetricDefinition(
        meaning="answers on which two judges agree, right or not right",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    "human_consistency": MetricDefinition(
        meaning="ratings that agree with the majority of the human annotators",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
}
"""The metrics of this file by name. Every benchmark gets them, so `source` names no paper."""

UNDECIDED = 0.5
"""The level of an undecided verdict, between not right (0) and right (1)."""

_LEVELS: Mapping[VerdictName, float] = {
    "right": 1.0,
    "wrong": 0.0,
    "miss": 0.0,
    "refused": 0.0,
    "undecided": UNDECIDED,
}
_Decisions = dict[JudgedItem, bool]


class HumanConsistency(Struct, frozen=True):
    """The agreement of human annotators with their majority.

    Attributes:
        value: The mean over the ratings of the items that all raters decided: n = items x raters.
        raters: The names of the raters.
        fifth: The rater who decides ties; None if there is none.
        items: The number of items that enter the mean.
        ties: The number of these items that `fifth` decided.
        unresolved: The number of further items that are left out: tied, without a verdict of `fifth`.
    """

    value: MetricValue
    raters: tuple[str, ...]
    fifth: str | None
    items: int
    ties: int
    unresolved: int


def levels(verdicts: Iterable[Verdict]) -> dict[JudgedItem, float]:
    """The verdicts of one judge as numbers.

    Args:
        verdicts: The verdicts of the judge; of several on one item, the first decided one counts.

    Returns:
        1 for right, 0 for not right, UNDECIDED, by item; without the items whose judgement failed.
    """
    by_item: dict[JudgedItem, float] = {}
    for verdict in verdicts:
        level = _LEVELS.get(verdict.verdict)
        item = (verdict.targets, verdict.question, verdict.variant)
        if level is not None and by_item.get(item, UNDECIDED) == UNDECIDED:
            by_item[item] = level
    return by_item


def agreement(
    first: Iterable[Verdict],
    second: Iterable[Verdict],
    *,
    clusters: Clusters | None = None,
) -> MetricValue:
    """The share of items on which two judges agree, right or not right (CODIS 5.3, Table 7).

    A miss and a refusal are decided and not right.

    Args:
        first: The verdicts of one judge.
        second: The verdicts of the other judge.
        clusters: The cluster of the targets; None makes each item its own cluster.

    Returns:
        The share of the items that both decided, 0-100.
    """
    first, second = list(first), list(second)
    one, other = _decisions(first), _decisions(second)
    both = [item for item in one if item in other]
    value = statistic_value(
        AGREEMENT,
        np.array([one[item] for item in both], dtype=np.float64),
        np.array([other[item] for item in both], dtype=np.float64),
        [(clusters or {}).get(targets, targets) for targets, _, _ in both],
    )
    names = dict.fromkeys(verdict.judge for verdict in (*first, *second))
    return replace(value, judge=", ".join(names) or None)


def human_consistency(
    verdicts: Iterable[Verdict],
    *,
    fifth: str | None = None,
    clusters: Clusters | None = None,
) -> HumanConsistency:
    """The mean agreement of human raters with their majority (CODIS Appendix A, Table 8).

    Only items that all raters decided count, like the 100 queries per model of the paper. Items of which
    each rater decided a part do not count.

    Args:
        verdicts: The verdicts of all raters.
        fifth: The rater who decides ties and never enters the mean; None detects the judge who rated
            tied items only.
        clusters: The cluster of the targets; None makes each item its own cluster.

    Returns:
        The agreement, 0-100, with the counts of items and ties.

    Raises:
        UserError: `fifth` is None and several judges rated tied items only.
    """
    by_judge: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_judge.setdefault(verdict.judge, []).append(verdict)
    votes = {judge: _decisions(own) for judge, own in by_judge.items()}
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
        reason="no item was decided by all raters",
    )
    value = replace(value, judge=", ".join(votes) or None)
    return HumanConsistency(value, tuple(votes), fifth, items, ties, unresolved)


def _decisions(verdicts: Iterable[Verdict]) -> _Decisions:
    """Right or not, for the decided items."""
    return {item: level == 1 for item, level in levels(verdicts).items() if level != UNDECIDED}


def _decided_by_all(votes: Iterable[_Decisions]) -> list[JudgedItem]:
    first, *others = list(votes) or [{}]
    return [item for item in first if all(item in other for other in others)]


def _tie_breaker(votes: Mapping[str, _Decisions]) -> str | None:
    """The judge who rated only items on which the others tie; None if there is none."""
    candidates = []
    for judge, own in votes.items():
        others = [other for name, other in votes.items() if name != judge]
        ratings = [[other[item] for other in others if item in other] for item in own]
        if own and all(some and majority(some) is None for some in ratings):
            candidates.append(judge)
    if len(candidates) > 1:
        raise UserError(
            "several judges appear on tied answers only",
            found=", ".join(candidates),
            expected="the fifth rater, who decides ties, to be named",
        )
    return candidates[0] if candidates else None
