"""Agreement of judges: two judges, the repeats of one judge, several human raters with their majority."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.metrics.statistics import Floats, mean_by_cluster
from sightline.types import PERCENT, JudgeKind, MetricDefinition, MetricValue, Verdict, VerdictName

NOT_REPEATED = "no answer was judged by two repeats"

UNDECIDED = 0.5
"""The level of an undecided verdict, between not right (0) and right (1)."""

CORRECT = "correct"
"""The question on which judges are compared with each other."""

_Numbers = NDArray[np.int32]
_NONE, _NO, _YES = -1, 0, 1
_Votes = NDArray[np.int8]
"""The decision of a rater on each item: _YES (right), _NO (not right) or _NONE."""


def levels(verdicts: Iterable[Verdict]) -> dict[int, float]:
    coder = VerdictCoder()
    coder.add(verdicts, None)
    codes = coder.codes()
    by_item: dict[int, float] = {}
    for rater in codes.codes:
        read = codes.readings(rater)
        by_item.update(zip(codes.ids[read.items].tolist(), _levels(read.codes).tolist(), strict=True))
    return by_item


def agreement(codes: VerdictCodes, first: Rater, second: Rater) -> MetricValue:
    """The share of items on which two judges agree: right, or not right (as misses and refusals are)."""
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
    given = [(read.codes == code).sum(axis=1) for code in (WRONG, UNDECIDED_CODE, RIGHT)]
    counts = np.stack(given, axis=1).astype(np.float64)
    repeated = counts.sum(axis=1) > 1
    if not repeated.any():
        return []
    counts, clusters = counts[repeated], codes.clusters[read.items[repeated]]
    ratings = counts.sum(axis=1)
    same = (counts.max(axis=1) == ratings).astype(np.float64)
    share = mean_by_cluster("self_agreement", clusters, same, reason=NOT_REPEATED)
    from sightline.metrics.association import NOMINAL_ALPHA, statistic_value  # few runs repeat a judge

    alpha = statistic_value(NOMINAL_ALPHA, counts, ratings, clusters)
    return [replace(share, judge=judge.name), replace(alpha, metric="self_alpha", judge=judge.name)]


def human_consistency(codes: VerdictCodes, humans: Sequence[Rater]) -> MetricValue:
    """The mean agreement of human raters with their majority (CODIS Appendix A, Table 8).

    Only items that all raters decided count, like the 100 queries per model of the paper. Items of which
    each rater decided a part do not count.

    The judge who rated tied items only decides ties and never enters the mean.

    Raises:
        UserError: Several judges rated tied items only.
    """
    fifth = _tie_breaker(codes, humans)
    raters = [human for human in humans if human.name != fifth]
    casting = [human for human in humans if human.name == fifth]
    right, wrong = _counts(codes, raters)
    winners = _winners(right, wrong)
    for human in casting:
        winners = np.where(right == wrong, _votes(codes, human), winners)
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
    return replace(value, judge=", ".join(rater.name for rater in raters) or None)


def _share_of_agreement(codes: VerdictCodes, items: Items, first: _Votes, second: _Votes) -> MetricValue:
    one, other = first[items].astype(np.float64), second[items].astype(np.float64)
    from sightline.metrics.association import AGREEMENT, statistic_value  # few runs have two judges

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
            expected="one fifth rater, who decides ties",
        )
    return candidates[0] if candidates else None


# -- The definitions of the metrics of agreement, which every result has

WITH_HUMANS = "agreement_with_humans"
"""The name of the agreement of a judge model with humans."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    "agreement": MetricDefinition(
        meaning="answers on which two judges agree, right or not right, of those that both decided",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    WITH_HUMANS: MetricDefinition(
        meaning="answers on which a judge model agrees with the majority of the humans, of all that both"
        " evaluated; an undecided verdict of the model counts as not right",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    "self_agreement": MetricDefinition(
        meaning="answers, or pairs of answers, on which all repeats of a judge give the same verdict: right,"
        " not right or undecided",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    "self_alpha": MetricDefinition(
        meaning="agreement of the repeats of a judge corrected for chance: Krippendorff's alpha over right,"
        " not right and undecided",
        better="higher",
        range=(-1.0, 1.0),
        unit="number",
        source="Sightline, for every benchmark",
    ),
    "human_consistency": MetricDefinition(
        meaning="ratings that agree with the majority of the human annotators",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
}
"""The metrics by name. Every benchmark gets them, so `source` names no paper."""


# -- Verdicts as codes: what the agreement of judges is computed from, one byte a judge, draw and item

FAILED, UNDECIDED_CODE, WRONG, RIGHT = 1, 2, 3, 4
"""The codes of verdicts; 0 is none. Codes from WRONG on are decided, codes from UNDECIDED on are read."""

_CODES: Mapping[VerdictName, int] = {
    "right": RIGHT,
    "wrong": WRONG,
    "miss": WRONG,
    "refused": WRONG,
    "undecided": UNDECIDED_CODE,
}
_MODULUS = 1 << 64

Codes = NDArray[np.uint8]
Items = NDArray[np.intp]


class Rater(NamedTuple):
    """One who gives verdicts: a judge by rules, a judge model or a human."""

    name: str
    kind: JudgeKind


class Readings(NamedTuple):
    """What one rater says of the items that it read.

    Attributes:
        items: The items, in the order of their first verdicts, shape (n,).
        codes: UNDECIDED, WRONG or RIGHT of each draw; less where there is none. Shape (n, draws).
    """

    rater: Rater
    items: Items
    codes: Codes


class VerdictCodes(Struct, frozen=True):
    """The verdicts of all raters on m items.

    An item is what one verdict is about: the targets, the question and the variant.

    Attributes:
        ids: The `item_id` of each item, shape (m,).
        clusters: The number of the cluster of each item, shape (m,).
        questions: The number of the question of each item, in the order of `raters`; shape (m,).
        rows: The item of each row, shape (rows,): an item appears again if groups share answers.
    """

    ids: NDArray[np.uint64]
    clusters: Items
    raters: Mapping[str, Sequence[Rater]]
    questions: NDArray[np.uint32]
    rows: Items
    codes: Mapping[Rater, Sequence[Codes]]

    def readings(self, rater: Rater, question: str | None = None) -> Readings:
        """What a rater says of the items of a question, or of all."""
        columns = self.codes[rater]
        used = np.zeros(len(self.rows), dtype=np.bool_)
        for column in columns:
            used[: len(column)] |= column >= UNDECIDED_CODE
        if question is not None:
            asked = [number for number, name in enumerate(self.raters) if name == question]
            used &= np.isin(self.questions, asked)[self.rows]
        items, first = np.unique(self.rows[used], return_index=True)
        items = items[np.argsort(first)]
        merged = [self._merged(column)[items] for column in columns]
        return Readings(rater, items, np.stack(merged, axis=1))

    def _merged(self, column: Codes) -> Codes:
        """The code of each item, from those of its rows."""
        rows = self.rows[: len(column)]
        codes = np.zeros(len(self.ids), dtype=np.uint8)
        np.maximum.at(codes, rows, np.minimum(column, UNDECIDED_CODE))
        decided = np.flatnonzero(column >= WRONG)[::-1]
        codes[rows[decided]] = column[decided]  # the last assignment stays: the first decided row
        return codes


class VerdictCoder:
    """Collects the codes of verdicts, group by group.

    It keeps 20 bytes per item and one byte per item, rater and draw. Items and clusters are told apart by
    checksums of 64 bits.
    """

    def __init__(self) -> None:
        self._targets, self._kinds, self._clusters = array("Q"), array("I"), array("Q")
        self._numbers: dict[tuple[str, str], int] = {}
        self._raters: dict[str, dict[Rater, None]] = {}
        self._codes: dict[Rater, dict[int, bytearray]] = {}

    def add(self, verdicts: Iterable[Verdict], cluster: str | None) -> None:
        """Add the verdicts of a group. `cluster`: its cluster; None makes the targets of each verdict a
        cluster of their own.
        """
        own = None if cluster is None else _checksum("cluster", cluster)
        rows: dict[tuple[tuple[str, ...], str, str], int] = {}
        for verdict in verdicts:
            item = verdict.targets, verdict.question, verdict.variant
            row = rows.get(item)
            if row is None:
                row = rows[item] = len(self._targets)
                targets = _checksum(*verdict.targets)
                self._targets.append(targets)
                self._kinds.append(self._numbers.setdefault(item[1:], len(self._numbers)))
                self._clusters.append(targets if own is None else own)
            rater = Rater(verdict.judge, verdict.kind)
            self._raters.setdefault(verdict.question, {}).setdefault(rater)
            column = self._codes.setdefault(rater, {}).setdefault(verdict.draw, bytearray())
            if len(column) <= row:
                column.extend(bytes(row + 1 - len(column)))
            if column[row] < WRONG:
                column[row] = max(column[row], _CODES.get(verdict.verdict, FAILED))

    def codes(self) -> VerdictCodes:
        """The codes of all verdicts so far. Nothing can be added while they are in use."""
        targets = np.frombuffer(self._targets, dtype=np.uint64)
        kinds = np.frombuffer(self._kinds, dtype=np.uint32)
        names = np.array([_checksum(*kind) for kind in self._numbers] or [0], dtype=np.uint64)
        ids, first, rows = np.unique(targets + names[kinds], return_index=True, return_inverse=True)
        order = {question: number for number, question in enumerate(self._raters)}
        questions = np.array([order[question] for question, _ in self._numbers] or [0], dtype=np.uint32)
        return VerdictCodes(
            ids=ids,
            clusters=self._cluster_numbers(targets)[first],
            raters={question: list(raters) for question, raters in self._raters.items()},
            questions=questions[kinds[first]],
            rows=rows,
            codes={
                rater: [np.frombuffer(column, dtype=np.uint8) for column in draws.values()]
                for rater, draws in self._codes.items()
            },
        )

    def _cluster_numbers(self, targets: NDArray[np.uint64]) -> Items:
        """The number of the cluster of each row: of equal targets, the last one counts for all."""
        clusters = np.frombuffer(self._clusters, dtype=np.uint64)[::-1]
        _, last, same = np.unique(targets[::-1], return_index=True, return_inverse=True)
        _, numbers = np.unique(clusters[last][same][::-1], return_inverse=True)
        return numbers


def item_id(targets: Sequence[str], question: str, variant: str) -> int:
    """The number by which `VerdictCodes.ids` names an item."""
    return (_checksum(*targets) + _checksum(question, variant)) % _MODULUS


def _checksum(*texts: str) -> int:
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")


# -- The majority of votes: the one rule by which several opinions become one

Vote = TypeVar("Vote")

MAJORITY_OF = "majority of "
"""What the name of a majority begins with; the names of its voters follow, with commas."""


def majority(votes: Iterable[Vote], *, absolute: bool = False) -> Vote | None:
    """The vote that more voters share than any other; None for a tie, or without votes.

    >>> majority(["right", "right", "wrong"])
    'right'
    >>> majority([True, False]) is None
    True
    >>> majority(["a", "a", "b", "c"], absolute=True) is None
    True
    """
    counts = Counter(votes)
    (first, count), (_, next_count) = [*counts.most_common(2), (None, 0), (None, 0)][:2]
    least = counts.total() // 2 if absolute else next_count
    return first if count > least else None
