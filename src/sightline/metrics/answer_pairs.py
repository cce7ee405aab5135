"""The pairs of answers in a group, and the mean of a quantity over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct
from msgspec.structs import replace

from sightline.metric_types import Term
from sightline.scoring.containment import normalised
from sightline.scoring.listed_options import chosen_option
from sightline.scoring.similarity import CONTRADICTION, SIMILAR
from sightline.types import Group, Labels, Outcome, Verdict

NO_LABELS: Labels = {}
"""The labels of a term that counts overall only."""

PairPositions = tuple[int, int]
"""The positions of the two answers of a pair in their group."""


class AnswerPair(Struct, frozen=True):
    """Two answers of a group and the verdict on their similarity."""

    positions: PairPositions
    verdict: Verdict

    @property
    def consistent(self) -> bool:
        """Whether the similarity is above the threshold, or both answers choose the same option."""
        return self.verdict.verdict == "right"

    @property
    def contradicts(self) -> bool:
        """Whether the answers contradict each other; known for consistent pairs."""
        return self.verdict.scores.get(CONTRADICTION) == 1.0

    @property
    def similarity(self) -> float | None:
        """The cosine similarity, -1 to 1; None if the answers were compared by their options."""
        return self.verdict.value


def pairs(group: Group) -> Sequence[AnswerPair]:
    """The pairs of a group with a similarity."""
    return group.once("pairs", _pairs)


def _pairs(group: Group) -> list[AnswerPair]:
    verdicts = {verdict.targets: verdict for verdict in group.judgements if verdict.question == SIMILAR}
    found: list[AnswerPair] = []
    for first, second in combinations(range(len(group)), 2):
        verdict = verdicts.get((group.outcomes[first].key, group.outcomes[second].key))
        if verdict is not None:
            found.append(AnswerPair((first, second), verdict))
    return found


def same_options(group: Group) -> dict[PairPositions, bool]:
    """The pairs of answers that were compared by the options that they choose."""
    return {pair.positions: pair.consistent for pair in pairs(group) if pair.similarity is None}


def is_empty(outcome: Outcome) -> bool:
    """Whether a response has no text, or none after post-processing."""
    return outcome.status == "empty" or outcome.extracted == ""


def without_empty_answers(group: Group) -> Group:
    """The group without its empty answers (the asterisk of Table 5)."""
    return group.once("without empty answers", _without_empty_answers)


def _without_empty_answers(group: Group) -> Group:
    partners = {name: tuple(filter(_has_text, outcomes)) for name, outcomes in group.partners.items()}
    return replace(group, outcomes=tuple(filter(_has_text, group.outcomes)), partners=partners)


def mean_over_pairs(group: Group, by_pair: Sequence[tuple[PairPositions, float]]) -> list[Term]:
    """The mean of a quantity over pairs."""
    if not by_pair:
        return []
    sums, counts = [0.0] * len(group), [0] * len(group)
    every: float = 0
    for (first, second), amount in by_pair:
        every += amount
        sums[first] += amount
        sums[second] += amount
        counts[first] += 1
        counts[second] += 1
    by_answer = [
        Term(total / count, 1, outcome.labels, False)
        for outcome, total, count in zip(group.outcomes, sums, counts, strict=True)
        if count and outcome.labels
    ]
    return [Term(every, len(by_pair), NO_LABELS), *by_answer]


def pairs_with_text(texts: Sequence[str]) -> Iterator[PairPositions]:
    """The pairs without empty answers."""
    return ((i, j) for i, j in combinations(range(len(texts)), 2) if texts[i] and texts[j])


def _has_text(outcome: Outcome) -> bool:
    return not is_empty(outcome)


def normalised_answers(group: Group) -> Sequence[str]:
    """The answers of a group for exact comparison: as they were read, or as given if only humans judged them.

    Returns:
        The normalised texts; of an answer to a question with options, that of the option, '' if it chooses
        none.
    """
    return group.once("normalised answers", _normalised_answers)


def _normalised_answers(group: Group) -> list[str]:
    return [_normalised_answer(outcome) for outcome in group]


def _normalised_answer(outcome: Outcome) -> str:
    if outcome.options:
        return chosen_option(outcome) or ""
    return normalised(outcome.response if outcome.extracted is None else outcome.extracted)
