"""Metrics of groups whose probes ask the same thing: accuracy and consistency (MM-R3 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, groupby

from msgspec import Struct
from msgspec.structs import replace

from sightline.metric_types import PERCENT, Metric, Term
from sightline.metrics.difference import difference_range
from sightline.scoring.containment import normalised
from sightline.scoring.similarity import CONTRADICTION, SIMILAR
from sightline.types import (
    UNCHANGED,
    Group,
    Outcome,
    Verdict,
)

NO_REFERENCE = "no answers with references to score them against"
NO_EMBEDDER = "no similarities: embedder=none"
NO_PAIR = "no two answers of a group to compare: a group of one variant, or Sampling without --repeats"
NO_SCORED_PAIR = "no two answers of a group to compare that both have references"
NO_FAILURE = "no failure case: every answer is right, or none has a reference"
NO_FAILING_PAIR = (
    "no failure case with two answers to compare: every answer is right, or none has a reference"
)

Terms = Callable[[Group], Iterable[Term]]


PairPositions = tuple[int, int]
"""The positions of the two answers of a pair in their group."""


class AnswerPair(Struct, frozen=True):
    """Two answers of a group and the verdict on their similarity."""

    positions: PairPositions
    verdict: Verdict

    @property
    def consistent(self) -> bool:
        """Whether the similarity is above the threshold."""
        return self.verdict.verdict == "right"

    @property
    def contradicts(self) -> bool:
        """Whether the answers contradict each other; known for consistent pairs."""
        return self.verdict.scores.get(CONTRADICTION) == 1.0

    @property
    def similarity(self) -> float:
        """The cosine similarity, -1 to 1."""
        return self.verdict.value or 0.0


def pairs(group: Group) -> list[AnswerPair]:
    """The pairs of a group with a similarity.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Returns:
        The pairs in the order of the outcomes.
    """
    verdicts = {verdict.targets: verdict for verdict in group.judgements if verdict.question == SIMILAR}
    found: list[AnswerPair] = []
    for first, second in combinations(range(len(group)), 2):
        verdict = verdicts.get((group.outcomes[first].key, group.outcomes[second].key))
        if verdict is not None:
            found.append(AnswerPair((first, second), verdict))
    return found


def is_empty(outcome: Outcome) -> bool:
    """Whether a response has no text, or none after post-processing.

    Args:
        outcome: The outcome.

    Returns:
        True if it is empty.
    """
    return outcome.status == "empty" or outcome.extracted == ""


def without_empty_answers(group: Group) -> Group:
    """The group without its empty answers (the asterisk of Table 5).

    Args:
        group: The outcomes of a group.

    Returns:
        The group and its partners without empty answers.
    """
    partners = {name: tuple(filter(_has_text, outcomes)) for name, outcomes in group.partners.items()}
    return replace(group, outcomes=tuple(filter(_has_text, group.outcomes)), partners=partners)


def acc(group: Group) -> Iterator[Term]:
    """1 for a right answer, of 1 scored (3.3).

    Args:
        group: The outcomes of a group.

    Yields:
        One term per scored answer, under its own labels.
    """
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1, outcome.labels)


def s_gt(group: Group) -> Iterator[Term]:
    """The similarity of an answer to its nearest reference, of 1 answered (3.3).

    Args:
        group: The outcomes of a group.

    Yields:
        One term per answer with `s_gt` among its scores.
    """
    for outcome in group:
        if "s_gt" in outcome.scores:
            yield Term(outcome.scores["s_gt"] / 100, 1, outcome.labels)


def con(group: Group) -> Iterator[Term]:
    """The consistent pairs, of all pairs (3.3).

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _over_pairs(group, [(pair.positions, pair.consistent) for pair in pairs(group)])


def s_c(group: Group) -> Iterator[Term]:
    """The mean similarity of all pairs (3.3).

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _over_pairs(group, [(pair.positions, pair.similarity) for pair in pairs(group)])


def agree(group: Group) -> Iterator[Term]:
    """1 for a pair of equal answers after normalisation, of 1 pair without empty answers.

    Args:
        group: The outcomes of a group.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    texts = [_text(outcome) for outcome in group]
    yield from _over_pairs(group, [((i, j), texts[i] == texts[j]) for i, j in _both(texts)])


def same_meaning(group: Group) -> Iterator[Term]:
    """1 for a pair that a judge calls the same in meaning, of 1 decided; equal answers need no judge.

    Args:
        group: The outcomes of a group.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    texts = [_text(outcome) for outcome in group]
    given = {
        frozenset(verdict.targets): verdict.verdict == "right"
        for verdict in group.judgements
        if verdict.question == "same_meaning" and verdict.verdict in ("right", "wrong")
    }
    decided = []
    for first, second in _both(texts):
        keys = frozenset((group.outcomes[first].key, group.outcomes[second].key))
        same = True if texts[first] == texts[second] else given.get(keys)
        if same is not None:
            decided.append(((first, second), same))
    yield from _over_pairs(group, decided)


def contrary_consistent(group: Group) -> Iterator[Term]:
    """1 for a consistent pair that contradicts itself (yes and no), of 1 consistent pair.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    consistent_pairs = (pair for pair in pairs(group) if pair.consistent)
    yield from _over_pairs(group, [(pair.positions, pair.contradicts) for pair in consistent_pairs])


def pairs_left_out(group: Group) -> Iterator[Term]:
    """The pairs without a similarity, of all pairs: an answer failed.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        At most one term.
    """
    yield from _left_out(group, pairs(group))


def pairs_left_out_or_empty(group: Group) -> Iterator[Term]:
    """The pairs that are not compared, of all pairs: an answer failed or is empty.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        At most one term.
    """
    yield from _left_out(group, pairs(without_empty_answers(group)))


def consistent_right(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of right answers, of 1 scored pair (A.5).

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 2)


def consistent_wrong(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of wrong answers, of 1 scored pair (A.5).

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 0)


def consistent_mixed(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of a right and a wrong answer, of 1 scored pair.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 1)


def inconsistent(group: Group) -> Iterator[Term]:
    """1 for a pair that is not consistent, of 1 scored pair.

    Args:
        group: The outcomes of a group, with the verdicts on their similarity.

    Yields:
        Overall, the pairs; under a label, the mean of each answer over its pairs.
    """
    yield from _by_verdict(group, lambda consistent, right: not consistent)


def failures(group: Group) -> Iterator[Term]:
    """1 for a group in which not every answer is right, of 1 scored (A.5).

    Args:
        group: The outcomes of a group.

    Yields:
        One term overall, and one per answer under its labels.
    """
    if all(outcome.scored for outcome in group):
        yield Term(_fails(group), 1, {})
        yield from (Term(_fails(group), 1, outcome.labels, overall=False) for outcome in group)


def in_failures(terms: Terms) -> Terms:
    """Restrict terms to groups in which not every answer is right (Tables 7 and 10-13, Failure Cases).

    Args:
        terms: The terms of a metric.

    Returns:
        The terms over these groups.
    """

    def restricted(group: Group) -> Iterator[Term]:
        if _fails(group):
            yield from terms(group)

    return restricted


def without_empty(terms: Terms) -> Terms:
    """Restrict terms to the answers that are not empty.

    Args:
        terms: The terms of a metric.

    Returns:
        The terms over these answers.
    """

    def restricted(group: Group) -> Iterator[Term]:
        remaining = without_empty_answers(group)
        if remaining.outcomes:
            yield from terms(remaining)

    return restricted


def minus_sampling(terms: Terms) -> Terms:
    """The mean of a group minus that of the repeated unchanged input (Tables 2-4, in brackets).

    Args:
        terms: The terms of a metric.

    Returns:
        The terms of the difference: one per group that has both means.
    """

    def difference(group: Group) -> Iterator[Term]:
        here = _mean(terms(group))
        unchanged = groupby(group.partners.get(UNCHANGED, ()), key=lambda outcome: outcome.variant)
        there = [_mean(terms(_of(group, tuple(draws)))) for _, draws in unchanged]
        defined = [value for value in there if value is not None]
        if here is not None and defined and len(defined) == len(there):
            yield Term(here - sum(defined) / len(defined), 1, {})

    return difference


def refused(group: Group) -> Iterator[Term]:
    """The share of answers that decline to answer (A.9.3).

    Args:
        group: The outcomes of a group.

    Yields:
        One term per answer.
    """
    for outcome in group:
        if outcome.answered:
            yield Term(outcome.scores.get("refused", 0.0), 1, outcome.labels)


def empty(group: Group) -> Iterator[Term]:
    """The share of answers without text, or without any after post-processing.

    Args:
        group: The outcomes of a group.

    Yields:
        One term per answer.
    """
    for outcome in group:
        if outcome.answered:
            yield Term(is_empty(outcome), 1, outcome.labels)


def consistency_metrics(
    *,
    embedded: bool = True,
    ignore_empty: bool = False,
    sampling: bool = False,
    task_metrics: Sequence[Metric] = (),
) -> list[Metric]:
    """The metrics of consistency, acc first.

    Args:
        embedded: Whether similarities exist; without them, the metrics that use them are null.
        ignore_empty: Whether empty answers are left out of all metrics except their count.
        sampling: Whether to add the differences to the repeated unchanged input.
        task_metrics: Further metrics of the task, before the counts of answers and pairs left out.

    Returns:
        The metrics in the order of reports.
    """
    main = [ACC, S_GT, CON, S_C]
    differences = [_minus_sampling(metric) for metric in main]
    every = [*main, *(differences if sampling else ()), *_BESIDE, *task_metrics]
    if ignore_empty:
        every = [replace(metric, terms=without_empty(metric.terms)) for metric in every]
    left_out = pairs_left_out_or_empty if ignore_empty else pairs_left_out
    every += [replace(PAIRS_LEFT_OUT, terms=left_out), EMPTY]
    if embedded:
        return every
    return [replace(metric, absent=NO_EMBEDDER) if _is_similarity(metric) else metric for metric in every]


def _is_similarity(metric: Metric) -> bool:
    return metric.judged == SIMILAR or metric.name.startswith("s_gt")


def _over_pairs(group: Group, by_pair: Sequence[tuple[PairPositions, float]]) -> Iterator[Term]:
    """The mean over pairs; under the labels of each answer, its mean over the pairs that hold it."""
    if not by_pair:
        return
    yield Term(sum(amount for _, amount in by_pair), len(by_pair), {})
    sums, counts = [0.0] * len(group), [0] * len(group)
    for positions, amount in by_pair:
        for position in positions:
            sums[position] += amount
            counts[position] += 1
    for outcome, total, count in zip(group, sums, counts, strict=True):
        if count and outcome.labels:
            yield Term(total / count, 1, outcome.labels, overall=False)


def _both(texts: Sequence[str]) -> Iterator[PairPositions]:
    """The positions of the pairs without empty answers."""
    return ((i, j) for i, j in combinations(range(len(texts)), 2) if texts[i] and texts[j])


def _left_out(group: Group, compared: Sequence[AnswerPair]) -> Iterator[Term]:
    every = len(group) * (len(group) - 1) // 2
    if every:
        yield Term(every - len(compared), every, {})


def _has_text(outcome: Outcome) -> bool:
    return not is_empty(outcome)


def _by_verdict(group: Group, holds: Callable[[bool, int], bool]) -> Iterator[Term]:
    by_pair = []
    for pair in pairs(group):
        first, second = (group.outcomes[position] for position in pair.positions)
        if first.scored and second.scored:
            by_pair.append((pair.positions, holds(pair.consistent, first.right + second.right)))
    yield from _over_pairs(group, by_pair)


def _of(group: Group, outcomes: tuple[Outcome, ...]) -> Group:
    return Group(group.id, group.draw, group.cluster, outcomes, group.judgements)


def _fails(group: Group) -> bool:
    return any(outcome.scored and not outcome.right for outcome in group)


def _mean(terms: Iterable[Term]) -> float | None:
    counted = [term for term in terms if term.overall]
    count = sum(term.count for term in counted)
    return sum(term.sum for term in counted) / count if count else None


def _text(outcome: Outcome) -> str:
    """The answer as it was read, or as it was given if only humans judged it."""
    return normalised(outcome.response if outcome.extracted is None else outcome.extracted)


def _minus_sampling(metric: Metric) -> Metric:
    """The metric as a difference to the unchanged input (MM-R3 4.2, Tables 2-4, in brackets)."""
    return replace(
        metric,
        name=f"{metric.name}_minus_sampling",
        terms=minus_sampling(metric.terms),
        meaning=f"{metric.name} minus that of the unchanged input, asked again and again",
        range=difference_range(metric.range),
        source="MM-R3 4.2, Tables 2-4",
        unit="points",
        needs=UNCHANGED,
    )


_MAIN = "MM-R3 3.3, Tables 2-5"
_FAILURE = "MM-R3 A.5 and A.8, Tables 7 and 10-13"
_COSINE = (-100.0, 100.0)

ACC = Metric(
    name="acc",
    terms=acc,
    meaning="answers that are right",
    better="higher",
    range=PERCENT,
    source=_MAIN,
    absent=NO_REFERENCE,
)
S_GT = Metric(
    name="s_gt",
    terms=s_gt,
    meaning="mean cosine similarity of an answer to its nearest reference, x 100",
    better="higher",
    range=_COSINE,
    source=_MAIN,
    judged=None,
    absent=NO_REFERENCE,
)
CON = Metric(
    name="con",
    terms=con,
    meaning="pairs of answers in a group whose cosine similarity is above 0.7",
    better="higher",
    range=PERCENT,
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_PAIR,
)
S_C = Metric(
    name="s_c",
    terms=s_c,
    meaning="mean cosine similarity of the pairs of answers in a group, x 100",
    better="higher",
    range=_COSINE,
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_PAIR,
)
PAIRS_LEFT_OUT = Metric(
    name="pairs_left_out",
    terms=pairs_left_out,
    meaning="pairs that are not compared: an answer failed, or is left out as empty",
    better="lower",
    range=PERCENT,
    source="beyond the paper",
    judged=SIMILAR,
    absent=NO_PAIR,
)
EMPTY = Metric(
    name="empty",
    terms=empty,
    meaning="answers without text, or without any after post-processing",
    better="lower",
    range=PERCENT,
    source="beyond the paper",
    judged=None,
    absent="no answers",
)

_BESIDE = (
    Metric(
        name="agree",
        terms=agree,
        meaning="pairs of answers that are equal after normalisation",
        better="higher",
        range=PERCENT,
        source="beyond the paper",
        judged=None,
        absent=NO_PAIR,
    ),
    Metric(
        name="same_meaning",
        terms=same_meaning,
        meaning="pairs of answers that a judge calls the same in meaning",
        better="higher",
        range=PERCENT,
        source="beyond the paper",
        judged="same_meaning",
        absent="no judge decided whether answers mean the same (--judge MODEL)",
    ),
    Metric(
        name="contrary_consistent",
        terms=contrary_consistent,
        meaning="consistent pairs that contradict each other, such as yes and no",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent="no pair above the threshold",
    ),
    Metric(
        name="consistent_right",
        terms=consistent_right,
        meaning="pairs that are consistent and of which both answers are right",
        better="higher",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="consistent_wrong",
        terms=consistent_wrong,
        meaning="pairs that are consistent and of which both answers are wrong",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="consistent_mixed",
        terms=consistent_mixed,
        meaning="pairs that are consistent and of which one answer is right, one wrong",
        better="neither",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="inconsistent",
        terms=inconsistent,
        meaning="pairs that are not consistent",
        better="lower",
        range=PERCENT,
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
    ),
    Metric(
        name="failures",
        terms=failures,
        meaning="groups in which at least one answer is not right",
        better="lower",
        range=PERCENT,
        source=_FAILURE,
        absent=NO_REFERENCE,
    ),
    Metric(
        name="s_gt_failures",
        terms=in_failures(s_gt),
        meaning="s_gt over the groups in which at least one answer is not right",
        better="higher",
        range=_COSINE,
        source=_FAILURE,
        judged=None,
        absent=NO_FAILURE,
    ),
    Metric(
        name="con_failures",
        terms=in_failures(con),
        meaning="con over the groups in which at least one answer is not right",
        better="neither",
        range=PERCENT,
        source=_FAILURE,
        judged=SIMILAR,
        absent=NO_FAILING_PAIR,
    ),
    Metric(
        name="s_c_failures",
        terms=in_failures(s_c),
        meaning="s_c over the groups in which at least one answer is not right",
        better="neither",
        range=_COSINE,
        source=_FAILURE,
        judged=SIMILAR,
        absent=NO_FAILING_PAIR,
    ),
    Metric(
        name="refused",
        terms=refused,
        meaning="answers that decline to answer",
        better="lower",
        range=PERCENT,
        source="beyond the paper; MM-R3 A.9.3",
        judged=None,
        absent="no answers",
    ),
)
