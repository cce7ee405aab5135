"""Agreement of judges: two judges, the repeats of one judge, several human raters with their majority."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.metric_types import MetricValue
from sightline.metrics import verdict_codes
from sightline.metrics.agreement_definitions import WITH_HUMANS
from sightline.metrics.association import AGREEMENT, NOMINAL_ALPHA
from sightline.metrics.judge_statistics import statistic_value
from sightline.metrics.metric_values import mean_by_cluster
from sightline.metrics.statistics import Floats
from sightline.metrics.verdict_codes import RIGHT, WRONG, Codes, Rater, VerdictCoder, VerdictCodes
from sightline.types import Verdict

NOT_REPEATED = "no answer was judged by two repeats"

UNDECIDED = 0.5
"""The level of an undecided verdict, between not right (0) and right (1)."""

CORRECT = "correct"
"""The question on which judges are compared with each other."""

_Numbers = NDArray[np.int32]
_NONE, _NO, _YES = -1, 0, 1
_Votes = NDArray[np.int8]
"""The decision of a rater on each item: _YES (right), _NO (not right) or _NONE."""


class HumanConsistency(Struct, frozen=True):
    """The agreement of human annotators with their majority.

    Attributes:
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


def levels(verdicts: Iterable[Verdict]) -> dict[int, float]:
    """The verdicts of one judge as numbers."""
    coder = VerdictCoder()
    coder.add(verdicts, None)
    codes = coder.codes()
    by_item: dict[int, float] = {}
    for rater in codes.codes:
        read = codes.readings(rater)
        by_item.update(zip(codes.ids[read.items].tolist(), _levels(read.codes).tolist(), strict=True))
    return by_item


def agreement(codes: VerdictCodes, first: Rater, second: Rater) -> MetricValue:
    """The share of items on which two judges agree, right or not right.

    A miss and a refusal are decided and not right.
    """
    one, other = codes.readings(first, CORRECT), _votes(codes, second)
    votes = _votes(codes, first)
    both = one.items[(votes[one.items] != _NONE) & (other[one.items] != _NONE)]
    value = _share_of_agreement(codes, both, votes, other)
    return replace(value, judge=", ".join(dict.fromkeys((first.name, second.name))))


def agreement_with_humans(codes: VerdictCodes, humans: Sequence[Rater], model: Rater) -> MetricValue:
    """The agreement of humans and a judge model over all answers (CODIS 5.3, the formula of Table 7).

    The formula knows right and not right only: an answer that the model leaves undecided is not right. The
    majority of the humans decides; answers without a majority are left out, as are failed judgements.
    """
    right, wrong = _counts(codes, humans)
    truth = _winners(right, wrong)
    read = codes.readings(model, CORRECT)
    says = np.full(len(codes.ids), _NONE, dtype=np.int8)
    says[read.items] = _levels(read.codes) == 1
    value = _share_of_agreement(codes, read.items[truth[read.items] != _NONE], truth, says)
    names = dict.fromkeys([*(human.name for human in humans), model.name])
    return replace(value, metric=WITH_HUMANS, judge=", ".join(names))


def self_agreement(codes: VerdictCodes, judge: Rater) -> list[MetricValue]:
    """How far the repeats of one judge agree, over all its questions.

    Returns:
        `self_agreement`, the share of items on which all repeats give the same verdict, 0-100, and
        `self_alpha`, Krippendorff's alpha. Both cover the items with at least two repeats; a failed repeat
        is left out. Empty if there is no such item.
    """
    read = codes.readings(judge)
    given = [(read.codes == code).sum(axis=1) for code in (WRONG, verdict_codes.UNDECIDED, RIGHT)]
    counts = np.stack(given, axis=1).astype(np.float64)
    repeated = counts.sum(axis=1) > 1
    if not repeated.any():
        return []
    counts, clusters = counts[repeated], codes.clusters[read.items[repeated]]
    ratings = counts.sum(axis=1)
    same = (counts.max(axis=1) == ratings).astype(np.float64)
    share = mean_by_cluster("self_agreement", clusters, same, reason=NOT_REPEATED)
    alpha = statistic_value(NOMINAL_ALPHA, counts, ratings, clusters)
    return [replace(share, judge=judge.name), replace(alpha, metric="self_alpha", judge=judge.name)]


def human_consistency(
    codes: VerdictCodes, humans: Sequence[Rater], *, fifth: str | None = None
) -> HumanConsistency:
    """The mean agreement of human raters with their majority (CODIS Appendix A, Table 8).

    Only items that all raters decided count, like the 100 queries per model of the paper. Items of which
    each rater decided a part do not count.

    Args:
        fifth: The name of the rater who decides ties and never enters the mean; None detects the judge who
            rated tied items only.

    Raises:
        UserError: `fifth` is None and several judges rated tied items only.
    """
    fifth = fifth or _tie_breaker(codes, humans)
    raters = [human for human in humans if human.name != fifth]
    casting = [human for human in humans if human.name == fifth]
    right, wrong = _counts(codes, raters)
    winners, tied = _winners(right, wrong), right == wrong
    for human in casting:
        winners = np.where(tied, _votes(codes, human), winners)
    first = codes.readings(raters[0], CORRECT).items if raters else np.zeros(0, dtype=np.intp)
    complete = first[(right + wrong)[first] == len(raters)]
    items = complete[winners[complete] != _NONE]
    agreed = np.stack([_votes(codes, rater)[items] == winners[items] for rater in raters] or [items], axis=1)
    value = mean_by_cluster(
        "human_consistency",
        np.repeat(codes.clusters[items], agreed.shape[1]),
        agreed.ravel().astype(np.float64),
        reason="no item was decided by all raters",
    )
    names = tuple(rater.name for rater in raters)
    value = replace(value, judge=", ".join(names) or None)
    ties = int(tied[items].sum())
    return HumanConsistency(value, names, fifth, len(items), ties, len(complete) - len(items))


def _share_of_agreement(
    codes: VerdictCodes, items: verdict_codes.Items, first: _Votes, second: _Votes
) -> MetricValue:
    one, other = first[items].astype(np.float64), second[items].astype(np.float64)
    return statistic_value(AGREEMENT, one, other, codes.clusters[items])


def _levels(codes: Codes) -> Floats:
    """The level of each item, from the codes of its draws: right or not by majority, or UNDECIDED."""
    balance = (codes == RIGHT).sum(axis=1) - (codes == WRONG).sum(axis=1)
    found: Floats = (np.sign(balance) + 1) / 2
    return found


def _votes(codes: VerdictCodes, rater: Rater) -> _Votes:
    """The decisions of a rater on whether answers are correct."""
    votes = np.full(len(codes.ids), _NONE, dtype=np.int8)
    if rater in codes.raters.get(CORRECT, ()):
        read = codes.readings(rater, CORRECT)
        found = _levels(read.codes)
        votes[read.items] = np.where(found == UNDECIDED, _NONE, found)
    return votes


def _counts(codes: VerdictCodes, raters: Iterable[Rater]) -> tuple[_Numbers, _Numbers]:
    """How many raters call each item right, and how many not right."""
    right, wrong = (np.zeros(len(codes.ids), dtype=np.int32) for _ in range(2))
    for rater in raters:
        votes = _votes(codes, rater)
        right += votes == _YES
        wrong += votes == _NO
    return right, wrong


def _winners(right: _Numbers, wrong: _Numbers) -> _Votes:
    """The majority of the raters on each item; _NONE for a tie."""
    return np.where(right == wrong, _NONE, right > wrong).astype(np.int8)


def _tie_breaker(codes: VerdictCodes, humans: Sequence[Rater]) -> str | None:
    """The judge who rated only items on which the others tie; None if there is none."""
    right, wrong = _counts(codes, humans)
    candidates = []
    for human in humans:
        votes = _votes(codes, human)
        own = votes != _NONE
        others_right, others_wrong = right - (votes == _YES), wrong - (votes == _NO)
        tied = (others_right == others_wrong) & (others_right > 0)
        if own.any() and tied[own].all():
            candidates.append(human.name)
    if len(candidates) > 1:
        raise UserError(
            "several judges appear on tied answers only",
            found=", ".join(candidates),
            expected="the fifth rater, who decides ties, to be named",
        )
    return candidates[0] if candidates else None
