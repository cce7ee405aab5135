"""Agreement of judges: two judges, the repeats of one judge, several human raters with their majority."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.metric_types import MetricValue
from sightline.metrics.agreement_definitions import WITH_HUMANS
from sightline.metrics.association import AGREEMENT, NOMINAL_ALPHA
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import clustered_mean
from sightline.scoring.majority import majority
from sightline.types import Verdict, VerdictName

Clusters = Mapping[tuple[str, ...], str]
"""The targets of a verdict -> their cluster.

Targets that are absent form a cluster of their own."""

JudgedItem = tuple[tuple[str, ...], str, str]
"""The targets, the question and the variant of a verdict."""

NOT_REPEATED = "no answer was judged by two repeats"

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
        verdicts: The verdicts of the judge. Those of several draws on one item are repeats, whose majority
            counts; of several verdicts of one draw, the first decided one counts.

    Returns:
        1 for right, 0 for not right, UNDECIDED (also for a tie), by item; without the items whose judgement
        failed.
    """
    return {item: _majority_level(repeats) for item, repeats in _levels_of_repeats(verdicts).items()}


def agreement(
    first: Iterable[Verdict],
    second: Iterable[Verdict],
    *,
    clusters: Clusters | None = None,
) -> MetricValue:
    """The share of items on which two judges agree, right or not right.

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


def agreement_with_humans(
    humans: Iterable[Verdict], model: Iterable[Verdict], *, clusters: Clusters | None = None
) -> MetricValue:
    """The agreement of humans and a judge model over all answers (CODIS 5.3, the formula of Table 7).

    The formula knows right and not right only: an answer that the model leaves undecided is not right. The
    majority of the humans decides; answers without a majority are left out, as are failed judgements.

    Args:
        humans: The verdicts of all humans.
        model: The verdicts of the model.
        clusters: The cluster of the targets; None makes each item its own cluster.

    Returns:
        The share of the answers that humans and the model evaluated, 0-100.
    """
    votes: dict[JudgedItem, list[bool]] = {}
    by_human: dict[str, list[Verdict]] = {}
    for verdict in humans:
        by_human.setdefault(verdict.judge, []).append(verdict)
    for own in by_human.values():
        for item, is_right in _decisions(own).items():
            votes.setdefault(item, []).append(is_right)
    truth = {item: winner for item, own in votes.items() if (winner := majority(own)) is not None}
    model = list(model)
    evaluated = {item: level == 1 for item, level in levels(model).items() if item in truth}
    names = [(clusters or {}).get(targets, targets) for targets, _, _ in evaluated]
    value = statistic_value(
        AGREEMENT,
        np.array([truth[item] for item in evaluated], dtype=np.float64),
        np.array(list(evaluated.values()), dtype=np.float64),
        names,
    )
    names_of_judges = dict.fromkeys([*by_human, *(one.judge for one in model)])
    return replace(value, metric=WITH_HUMANS, judge=", ".join(names_of_judges))


def self_agreement(verdicts: Iterable[Verdict], *, clusters: Clusters | None = None) -> list[MetricValue]:
    """How far the repeats of one judge agree.

    Args:
        verdicts: The verdicts of the judge.
        clusters: The cluster of the targets; None makes each item its own cluster.

    Returns:
        `self_agreement`, the share of items on which all repeats give the same verdict, 0-100, and
        `self_alpha`, Krippendorff's alpha. Both cover the items with at least two repeats; a failed repeat
        is left out. Empty if there is no such item.
    """
    verdicts = list(verdicts)
    repeated = {item: own for item, own in _levels_of_repeats(verdicts).items() if len(own) > 1}
    if not repeated:
        return []
    names = [(clusters or {}).get(targets, targets) for targets, _, _ in repeated]
    counts = np.array([[own.count(level) for level in (0.0, UNDECIDED, 1.0)] for own in repeated.values()])
    same = [float(len(set(own)) == 1) for own in repeated.values()]
    pairs = list(zip(names, same, strict=True))
    share = clustered_mean("self_agreement", pairs, reason=NOT_REPEATED)
    ratings = counts.astype(np.float64)
    alpha = statistic_value(NOMINAL_ALPHA, ratings, ratings.sum(axis=1), names)
    judge = verdicts[0].judge
    return [replace(share, judge=judge), replace(alpha, metric="self_alpha", judge=judge)]


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


def _levels_of_repeats(verdicts: Iterable[Verdict]) -> dict[JudgedItem, list[float]]:
    """The level of each draw, by item; of several verdicts of one draw, the first decided one counts."""
    by_item: dict[JudgedItem, dict[int, float]] = {}
    for verdict in verdicts:
        level = _LEVELS.get(verdict.verdict)
        if level is None:
            continue
        draws = by_item.setdefault((verdict.targets, verdict.question, verdict.variant), {})
        if draws.get(verdict.draw, UNDECIDED) == UNDECIDED:
            draws[verdict.draw] = level
    return {item: list(draws.values()) for item, draws in by_item.items()}


def _majority_level(repeats: Sequence[float]) -> float:
    level = majority(level for level in repeats if level != UNDECIDED)
    return UNDECIDED if level is None else level


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
