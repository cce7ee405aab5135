"""Similarity of answers to their references and to each other, from vectors of their texts (MM-R3 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sightline.scoring.scorer import VectorScorer
from sightline.types import Group, Outcome, Verdict

if TYPE_CHECKING:
    from sightline.scoring.scorer import Vectors

THRESHOLD = 0.7
"""Two answers are consistent where their cosine similarity is above it (3.3)."""

SIMILAR = "similar"
"""The question that a pair's verdict answers: right is consistent, `value` the cosine, -1 to 1."""


def similarity(embedder: str, prepared: Callable[[str], str]) -> VectorScorer:
    """The scorer that gives every answer `s_gt` and every pair of answers its similarity.

    `prepared` makes of a response the text that is compared; one of which nothing is left is empty. An
    empty answer has similarity 0 to everything. s_gt, in percent, is that to the nearest reference,
    unclamped. Answers that failed have neither, nor have their pairs.
    """

    def said(group: Group) -> list[str]:
        return [prepared(outcome.response) if outcome.answered else "" for outcome in group]

    def texts(group: Group) -> list[str]:
        return [text for text in said(group) if text] + _references(group)

    def read(group: Group, vectors: Vectors) -> Group:
        answers, references = said(group), _references(group)
        places = _places(answers)
        close = vectors[: len(places)] @ vectors.T if places else vectors
        column = {reference: len(places) + nth for nth, reference in enumerate(references)}

        def cosine(first: int, second: int) -> float | None:
            outcomes = group.outcomes[first], group.outcomes[second]
            if not all(outcome.answered for outcome in outcomes):
                return None
            if first in places and second in places:
                return float(close[places[first], places[second]])
            return 0.0

        def s_gt(number: int, outcome: Outcome) -> Mapping[str, float]:
            against = [column[name] for name in outcome.references if name in column]
            if not against or not outcome.answered:
                return {}
            if number not in places:
                return {"s_gt": 0.0}
            return {"s_gt": 100 * max(float(close[places[number], place]) for place in against)}

        outcomes = tuple(
            replace(outcome, scores={**outcome.scores, **s_gt(number, outcome)})
            for number, outcome in enumerate(group)
        )
        pairs = tuple(_pairs(group, embedder, cosine))
        return replace(group, outcomes=outcomes, judgements=(*group.judgements, *pairs))

    return VectorScorer("similarity", texts, read)


def _places(answers: Sequence[str]) -> dict[int, int]:
    """Where in the matrix the vector of each answer that is not empty stands."""
    return {number: place for place, number in enumerate(n for n, text in enumerate(answers) if text)}


def _references(group: Group) -> list[str]:
    return list(dict.fromkeys(name for outcome in group for name in outcome.references if name.strip()))


def _pairs(group: Group, embedder: str, cosine: Callable[[int, int], float | None]) -> Iterator[Verdict]:
    for first, second in combinations(range(len(group)), 2):
        value = cosine(first, second)
        if value is not None:
            yield Verdict(
                targets=(group.outcomes[first].key, group.outcomes[second].key),
                question=SIMILAR,
                scorer="similarity",
                judge=embedder,
                kind="model",
                verdict="right" if value > THRESHOLD else "wrong",
                value=value,
            )
