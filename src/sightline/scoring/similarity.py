"""Similarity of answers to their references and to each other (MM-R3 3.3); equal options of a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sightline.scoring.listed_options import chosen_option
from sightline.scoring.scorer import VectorScorer
from sightline.types import Group, Outcome, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sightline.scoring.scorer import Vectors

THRESHOLD = 0.7
"""Two answers are consistent if their cosine similarity is above this (MM-R3 3.3)."""

PRECISION = 2e-6
"""Similarities that differ by less are equal: vectors are in single precision."""

SIMILAR = "similar"
"""The question of the verdict on a pair: right is consistent, `value` is the cosine, -1 to 1.

`value` is None if the answers were compared by the options that they choose."""

CONTRADICTION = "contradiction"
"""The score of the verdict on a consistent pair whose answers contradict each other."""


def similarity(embedder: str, prepared: Callable[[str], str]) -> VectorScorer:
    """A scorer that gives every answer `s_gt` and every pair of answers its similarity.

    An empty answer has similarity 0 to everything. `s_gt` is 100 times the cosine to the nearest reference,
    which may be below 0. Failed answers have no similarity, nor have their pairs. Answers to questions with
    options are compared by the options that they choose (`same_option`): here they have no `s_gt`, and a
    similarity, that of the chosen option, only to answers to questions without options.
    """

    def post_processed(group: Group) -> list[str]:
        return [prepared(text) if text else "" for text in _compared_texts(group)]

    def texts(group: Group) -> list[str]:
        return [text for text in post_processed(group) if text] + _references(group)

    def read(group: Group, vectors: Vectors) -> Group:
        answers, references = post_processed(group), _references(group)
        rows = _rows(answers)
        close = cosines(vectors[: len(rows)] @ vectors.T if rows else vectors)
        column = {reference: len(rows) + nth for nth, reference in enumerate(references)}

        def cosine(first: int, second: int) -> float | None:
            outcomes = group.outcomes[first], group.outcomes[second]
            if not all(outcome.answered for outcome in outcomes):
                return None
            if first in rows and second in rows:
                return float(close[rows[first], rows[second]])
            return 0.0

        def s_gt(number: int, outcome: Outcome) -> Mapping[str, float]:
            nearest = [column[name] for name in outcome.references if name in column]
            if not nearest or not outcome.answered or outcome.options:
                return {}
            if number not in rows:
                return {"s_gt": 0.0}
            return {"s_gt": 100 * max(float(close[rows[number], reference]) for reference in nearest)}

        outcomes = tuple(
            replace(outcome, scores={**outcome.scores, **s_gt(number, outcome)})
            for number, outcome in enumerate(group)
        )
        pairs = tuple(_pairs(group, embedder, cosine))
        return replace(group, outcomes=outcomes, judgements=(*group.judgements, *pairs))

    return VectorScorer("similarity", SIMILAR, texts, read)


def cosines(products: Vectors) -> NDArray[np.float64]:
    """Cosine similarities from the dot products of unit vectors in single precision.

    Args:
        products: The products, of any shape.

    Returns:
        -1 to 1; exactly 1 for equal vectors and -1 for opposite ones, whatever rounding made of them.
    """
    found = products.astype("float64")
    found[found > 1 - PRECISION] = 1
    found[found < PRECISION - 1] = -1
    return found


def _compared_texts(group: Group) -> list[str]:
    """The text of each answer that has a similarity: the response, or the chosen option; '' for others."""
    if all(outcome.options for outcome in group):
        return [""] * len(group)
    return [
        (chosen_option(outcome) or "") if outcome.options and outcome.answered else outcome.response
        for outcome in group
    ]


def _rows(answers: Sequence[str]) -> dict[int, int]:
    """The row of the vector of each answer that is not empty."""
    return {number: row for row, number in enumerate(n for n, text in enumerate(answers) if text)}


def _references(group: Group) -> list[str]:
    free = (outcome for outcome in group if not outcome.options)
    return list(dict.fromkeys(name for outcome in free for name in outcome.references if name.strip()))


def _pairs(group: Group, embedder: str, cosine: Callable[[int, int], float | None]) -> Iterator[Verdict]:
    for first, second in combinations(range(len(group)), 2):
        outcomes = group.outcomes[first], group.outcomes[second]
        value = cosine(first, second)
        if value is not None and not all(outcome.options for outcome in outcomes):
            yield pair_verdict(*outcomes, value, embedder)


def same_option(group: Group) -> Iterator[Verdict]:
    """Compare the answers to questions with options by the options that they choose.

    Options are compared by their texts, so that their order does not matter.

    Yields:
        A verdict for each two answers whose questions have options: right if both choose the same option. An
        answer that chooses none differs from every other answer. Failed answers are not compared.
    """
    chosen = [(outcome, chosen_option(outcome)) for outcome in group if outcome.options and outcome.answered]
    for (first, option), (second, other) in combinations(chosen, 2):
        yield Verdict(
            targets=(first.key, second.key),
            question=SIMILAR,
            scorer="same_option",
            judge="rules",
            kind="rules",
            verdict="right" if option is not None and option == other else "wrong",
        )


def pair_verdict(first: Outcome, second: Outcome, value: float, embedder: str) -> Verdict:
    """The verdict on the similarity of two answers."""
    consistent, differ = value > THRESHOLD, first.response != second.response
    contradictory = consistent and differ and _contradict(first.response, second.response)
    return Verdict(
        targets=(first.key, second.key),
        question=SIMILAR,
        scorer="similarity",
        judge=embedder,
        kind="model",
        verdict="right" if consistent else "wrong",
        value=value,
        scores={CONTRADICTION: 1.0} if contradictory else {},
    )


def _contradict(first: str, second: str) -> bool:
    # Most evaluations need only the names in this module, and start 5 % slower with the rules imported.
    from sightline.scoring.contradiction import contradiction

    return contradiction(first, second) is not None
