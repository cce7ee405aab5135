"""The terms of the metrics of accuracy and consistency (MM-R3 3.3); `consistency_metrics` declares them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from sightline.metric_types import Term
from sightline.metrics.answer_pairs import (
    NO_LABELS,
    AnswerPair,
    PairPositions,
    is_empty,
    mean_over_pairs,
    normalised_answers,
    pairs,
    pairs_with_text,
    same_options,
    without_empty_answers,
)
from sightline.scoring.flags import flag
from sightline.types import Group, Outcome

UNCHANGED = "unchanged"
"""The setting that sends each input repeatedly and unchanged (MM-R3 4.2: Sampling)."""

Terms = Callable[[Group], Iterable[Term]]


def acc(group: Group) -> Iterator[Term]:
    """1 for a right answer, of 1 scored (3.3)."""
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1, outcome.labels)


def s_gt(group: Group) -> Iterator[Term]:
    """The similarity of an answer to its nearest reference, of 1 answered (3.3)."""
    for outcome in group:
        if "s_gt" in outcome.scores:
            yield Term(outcome.scores["s_gt"] / 100, 1, outcome.labels)


def con(group: Group) -> list[Term]:
    """The consistent pairs, of all pairs (3.3)."""
    return mean_over_pairs(group, [(pair.positions, pair.consistent) for pair in pairs(group)])


def s_c(group: Group) -> list[Term]:
    """The mean similarity of all pairs (3.3)."""
    similarities = [(p.positions, p.similarity) for p in pairs(group) if p.similarity is not None]
    return mean_over_pairs(group, similarities)


def agree(group: Group) -> list[Term]:
    """1 for a pair of equal answers after normalisation, of 1 pair without empty answers.

    Of two questions with options, the chosen options are compared; an answer without one equals no other.
    """
    texts = normalised_answers(group)
    equal = {(i, j): texts[i] == texts[j] for i, j in pairs_with_text(texts)}
    return mean_over_pairs(group, sorted((equal | same_options(group)).items()))


def same_meaning(group: Group) -> list[Term]:
    """1 for a pair that a judge calls the same in meaning, of 1 decided.

    Equal answers need no judge, nor do answers to questions with options.
    """
    texts = normalised_answers(group)
    given = {
        frozenset(verdict.targets): verdict.verdict == "right"
        for verdict in group.judgements
        if verdict.question == "same_meaning" and verdict.verdict in ("right", "wrong")
    }
    decided = same_options(group)
    for first, second in pairs_with_text(texts):
        keys = frozenset((group.outcomes[first].key, group.outcomes[second].key))
        same = True if texts[first] == texts[second] else given.get(keys)
        if same is not None:
            decided.setdefault((first, second), same)
    return mean_over_pairs(group, sorted(decided.items()))


def contrary_consistent(group: Group) -> list[Term]:
    """1 for a consistent pair that contradicts itself (yes and no), of 1 consistent pair."""
    consistent_pairs = (pair for pair in pairs(group) if pair.consistent and pair.similarity is not None)
    return mean_over_pairs(group, [(pair.positions, pair.contradicts) for pair in consistent_pairs])


def pairs_left_out(group: Group) -> Iterator[Term]:
    """The pairs without a similarity, of all pairs: an answer failed.

    Yields:
        At most one term.
    """
    yield from _left_out(group, pairs(group))


def pairs_left_out_or_empty(group: Group) -> Iterator[Term]:
    """The pairs that are not compared, of all pairs: an answer failed or is empty.

    Yields:
        At most one term.
    """
    yield from _left_out(group, pairs(without_empty_answers(group)))


def consistent_right(group: Group) -> list[Term]:
    """1 for a consistent pair of right answers, of 1 scored pair (A.5)."""
    return _by_verdict(group, lambda consistent, right: consistent and right == 2)


def consistent_wrong(group: Group) -> list[Term]:
    """1 for a consistent pair of wrong answers, of 1 scored pair (A.5)."""
    return _by_verdict(group, lambda consistent, right: consistent and right == 0)


def consistent_mixed(group: Group) -> list[Term]:
    """1 for a consistent pair of a right and a wrong answer, of 1 scored pair."""
    return _by_verdict(group, lambda consistent, right: consistent and right == 1)


def inconsistent(group: Group) -> list[Term]:
    """1 for a pair that is not consistent, of 1 scored pair."""
    return _by_verdict(group, lambda consistent, right: not consistent)


def failures(group: Group) -> Iterator[Term]:
    """1 for a group in which not every answer is right, of 1 scored (A.5)."""
    if all(outcome.scored for outcome in group):
        yield Term(_fails(group), 1, NO_LABELS)
        yield from (Term(_fails(group), 1, outcome.labels, overall=False) for outcome in group)


def in_failures(terms: Terms) -> Terms:
    """Restrict terms to groups in which not every answer is right (Tables 7 and 10-13, Failure Cases)."""

    def restricted(group: Group) -> Sequence[Term]:
        return _shared(group, terms) if group.once("fails", _fails) else ()

    return restricted


def complete(terms: Terms) -> Terms:
    """Restrict terms to groups without a failed answer.

    Without it, failures of hard variants take their pairs out of the mean, which may raise it.
    """

    def restricted(group: Group) -> Sequence[Term]:
        return _shared(group, terms) if group.complete else ()

    return restricted


def without_empty(terms: Terms) -> Terms:
    """Restrict terms to the answers that are not empty."""

    def restricted(group: Group) -> Sequence[Term]:
        remaining = without_empty_answers(group)
        return _shared(remaining, terms) if remaining.outcomes else ()

    return restricted


def over_pairs(terms: Terms) -> Terms:
    """The terms of a pair metric over pairs, overall and under the labels that a group shares."""

    def restricted(group: Group) -> list[Term]:
        return [Term(term.sum, term.count) for term in _shared(group, terms) if term.overall]

    return restricted


def by_response(terms: Terms) -> Terms:
    """The terms of a pair metric by response: each is the mean of the response over its pairs."""

    def restricted(group: Group) -> list[Term]:
        return [term for term in _shared(group, terms) if not term.overall]

    return restricted


def minus_sampling(terms: Terms) -> Terms:
    """The mean of a group minus that of the repeated unchanged input (Tables 2-4, in brackets)."""

    def difference(group: Group) -> Iterator[Term]:
        here = _mean(terms(group))
        unchanged = groupby(group.partners.get(UNCHANGED, ()), key=lambda outcome: outcome.variant)
        there = [_mean(terms(_of(group, tuple(draws)))) for _, draws in unchanged]
        defined = [value for value in there if value is not None]
        if here is not None and defined and len(defined) == len(there):
            yield Term(here - sum(defined) / len(defined), 1, {})

    return difference


def refused(group: Group) -> Iterator[Term]:
    """The share of answers that decline to answer (A.9.3)."""
    for outcome in group:
        declines = flag(outcome.scores, "refused")
        if outcome.answered and declines is not None:
            yield Term(declines, 1, outcome.labels)


def empty(group: Group) -> Iterator[Term]:
    """The share of answers without text, or without any after post-processing."""
    for outcome in group:
        if outcome.answered:
            yield Term(is_empty(outcome), 1, outcome.labels)


def _shared(group: Group, terms: Terms) -> Sequence[Term]:
    """The terms of a metric over a group; several metrics are made of them."""
    return group.once(terms, lambda group: tuple(terms(group)))


def _left_out(group: Group, compared: Sequence[AnswerPair]) -> Iterator[Term]:
    every = len(group) * (len(group) - 1) // 2
    if every:
        yield Term(every - len(compared), every, NO_LABELS)


def _by_verdict(group: Group, holds: Callable[[bool, int], bool]) -> list[Term]:
    by_pair = [
        (positions, holds(consistent, right))
        for positions, consistent, right in group.once("scored pairs", _scored_pairs)
    ]
    return mean_over_pairs(group, by_pair)


def _scored_pairs(group: Group) -> list[tuple[PairPositions, bool, int]]:
    """The pairs whose answers both count: whether they are consistent, and how many of them are right."""
    right = [outcome.right if outcome.scored else None for outcome in group]
    return [
        (pair.positions, pair.consistent, one + other)
        for pair in pairs(group)
        if (one := right[pair.positions[0]]) is not None and (other := right[pair.positions[1]]) is not None
    ]


def _of(group: Group, outcomes: tuple[Outcome, ...]) -> Group:
    return Group(group.id, group.draw, group.cluster, outcomes, group.judgements)


def _fails(group: Group) -> bool:
    return any(outcome.scored and not outcome.right for outcome in group)


def _mean(terms: Iterable[Term]) -> float | None:
    counted = [term for term in terms if term.overall]
    count = sum(term.count for term in counted)
    return sum(term.sum for term in counted) / count if count else None
