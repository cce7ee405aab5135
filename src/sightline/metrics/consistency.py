"""The metrics of groups whose probes ask the same thing: accuracy and consistency (MM-R3 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import combinations, groupby

from msgspec import Struct
from msgspec.structs import replace

from sightline.scoring.scorer import flag
from sightline.scoring.similarity import (
    CONFUSED,
    CONTRADICTION,
    MOST_UNKNOWN_ANSWERS,
    SIMILAR,
    UNKNOWN,
    chosen_text,
    unknown_words,
)
from sightline.scoring.text import normalised
from sightline.types import (
    Better,
    Group,
    Labels,
    Metric,
    MetricValue,
    Outcome,
    Term,
    Verdict,
    difference_range,
)

# -- The terms of the metrics of accuracy and consistency (MM-R3 3.3); `consistency_metrics` declares them

UNCHANGED = "unchanged"
"""The setting that sends each input repeatedly and unchanged (MM-R3 4.2: Sampling)."""

Terms = Callable[[Group], Iterable[Term]]


def acc(group: Group) -> list[Term]:
    """1 for a right answer, of 1 scored (3.3)."""
    return of_answers([(outcome.right, outcome.labels) for outcome in group if outcome.scored])


def s_gt(group: Group) -> list[Term]:
    """The similarity of an answer to its nearest reference, of 1 answered (3.3)."""
    return of_answers(
        [(outcome.scores["s_gt"] / 100, outcome.labels) for outcome in group if "s_gt" in outcome.scores]
    )


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
    decided = same_options(group)
    if not _are_all(decided, group):
        texts = normalised_answers(group)
        decided = {(i, j): texts[i] == texts[j] for i, j in pairs_with_text(texts)} | decided
    return mean_over_pairs(group, sorted(decided.items()))


def same_meaning(group: Group) -> list[Term]:
    """1 for a pair that a judge calls the same in meaning, of 1 decided.

    Equal answers need no judge, nor do answers to questions with options.
    """
    decided = same_options(group)
    if _are_all(decided, group):
        return mean_over_pairs(group, sorted(decided.items()))
    texts = normalised_answers(group)
    given = {
        frozenset(verdict.targets): verdict.verdict == "right"
        for verdict in group.judgements
        if verdict.question == "same_meaning" and verdict.verdict in ("right", "wrong")
    }
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
    """The pairs without a similarity, of all pairs: an answer failed. Yields at most one term."""
    yield from _left_out(group, pairs(group))


def pairs_left_out_or_empty(group: Group) -> Iterator[Term]:
    """The pairs that are not compared, of all pairs: an answer failed or is empty."""
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
        yield from of_answers([(_fails(group), outcome.labels) for outcome in group], overall=False)


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
        if UNCHANGED not in group.partners:
            return
        here = _mean(terms(group))
        unchanged = groupby(group.partners[UNCHANGED], key=lambda outcome: outcome.variant)
        there = [_mean(terms(_of(group, tuple(draws)))) for _, draws in unchanged]
        defined = [value for value in there if value is not None]
        if here is not None and defined and len(defined) == len(there):
            yield Term(here - sum(defined) / len(defined), 1, {})

    return difference


def refused(group: Group) -> list[Term]:
    """The share of answers that decline to answer (A.9.3)."""
    declined = [(flag(outcome.scores, "refused"), outcome) for outcome in group if outcome.answered]
    return of_answers([(value, outcome.labels) for value, outcome in declined if value is not None])


def empty(group: Group) -> list[Term]:
    """The share of answers without text, or without any after post-processing."""
    return of_answers([(is_empty(outcome), outcome.labels) for outcome in group if outcome.answered])


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


COMPLETE = {name: f"{name}_complete" for name in ("con", "s_c", "agree")}
"""A metric over all pairs that are there -> the same metric over complete groups."""

BY_RESPONSE = "_by_response"
PAIR_METRICS = frozenset(
    [
        *COMPLETE,
        *COMPLETE.values(),
        "same_meaning",
        "contrary_consistent",
        "consistent_right",
        "consistent_wrong",
        "consistent_mixed",
        "inconsistent",
        "con_failures",
        "s_c_failures",
    ]
)
"""The metrics that average over pairs of answers.

Under a label that varies within a group (a style, a colour), a pair belongs to two values of the label. There
the metric `X_by_response` takes the place of `X`: the mean of each answer over its pairs, averaged over the
answers.
"""

NO_REFERENCE = "no answers with references to compare them with"
NO_FREE_ANSWER = (
    "no free answers to compare with references or with each other; acc and con compare chosen options"
)
NO_EMBEDDER = "no similarities: embedder=none"
NO_PAIR = "no two answers of a group to compare: a group of one variant, or Sampling without --repeats"
NO_SCORED_PAIR = "no two answers of a group to compare that both have references"
NO_FAILURE = "no failure case: every answer is right, or none has a reference"
NO_FAILING_PAIR = (
    "no failure case with two answers to compare: every answer is right, or none has a reference"
)


def consistency_metrics(
    *,
    embedded: bool = True,
    ignore_empty: bool = False,
    sampling: bool = False,
    task_metrics: Sequence[Metric] = (),
) -> list[Metric]:
    """The metrics of consistency, acc first."""
    main = [ACC, S_GT, CON, S_C]
    differences = [_minus_sampling(metric) for metric in main]
    over_complete = [_complete(metric) for metric in (CON, S_C, AGREE)]
    every = [*main, *over_complete, *(differences if sampling else ()), AGREE, *_BESIDE, *task_metrics]
    if ignore_empty:
        every = [replace(metric, terms=without_empty(metric.terms)) for metric in every]
    every = [part for metric in every for part in _by_unit(metric)]
    left_out = pairs_left_out_or_empty if ignore_empty else pairs_left_out
    every += [replace(PAIRS_LEFT_OUT, terms=left_out), EMPTY]
    if embedded:
        return every
    return [replace(metric, absent=NO_EMBEDDER) if _is_similarity(metric) else metric for metric in every]


def _is_similarity(metric: Metric) -> bool:
    return metric.judged == SIMILAR or metric.name.startswith("s_gt")


def _by_unit(metric: Metric) -> list[Metric]:
    """A metric of pairs, and the one by response for labels that vary within a group; other metrics alone."""
    if metric.name not in PAIR_METRICS:
        return [metric]
    return [
        replace(metric, terms=over_pairs(metric.terms), labels="shared"),
        replace(
            metric,
            name=f"{metric.name}{BY_RESPONSE}",
            terms=by_response(metric.terms),
            meaning=f"{metric.name} of each answer with the others of its group, averaged over answers",
            source="beyond the paper; Tables 10-13 of MM-R3 use one pair per answer",
            labels="varying",
        ),
    ]


def _complete(metric: Metric) -> Metric:
    return replace(
        metric,
        name=COMPLETE[metric.name],
        terms=complete(metric.terms),
        meaning=f"{metric.name} over the groups whose answers all exist",
        source="beyond the paper",
        absent="no group whose answers all exist, with two answers to compare",
    )


def _in_failures(metric: Metric, better: Better, absent: str) -> Metric:
    return replace(
        metric,
        name=f"{metric.name}_failures",
        terms=in_failures(metric.terms),
        meaning=f"{metric.name} over the groups in which at least one answer is not right",
        better=better,
        source=_FAILURE,
        absent=absent,
    )


def _minus_sampling(metric: Metric) -> Metric:
    return replace(
        metric,
        name=f"{metric.name}_minus_sampling",
        terms=minus_sampling(metric.terms),
        meaning=f"{metric.name} minus {metric.name} of the unchanged input, sent repeatedly (Sampling)",
        range=difference_range(metric.range),
        source="MM-R3 4.2, Tables 2-4",
        unit="points",
        needs=UNCHANGED,
        how_to_run="--set unchanged=on --repeats 4",
        reads="answers",
    )


_MAIN = "MM-R3 3.3, Tables 2-5"
_FAILURE = "MM-R3 A.5 and A.8, Tables 7 and 10-13"
_COSINE = (-100.0, 100.0)

ACC = Metric(
    name="acc",
    terms=acc,
    meaning="answers that are right",
    better="higher",
    source=_MAIN,
    absent=NO_REFERENCE,
    reads="verdicts",
)
S_GT = Metric(
    name="s_gt",
    terms=s_gt,
    meaning="mean cosine similarity of an answer to its nearest reference, x 100",
    better="higher",
    range=_COSINE,
    graded=True,
    source=_MAIN,
    judged=None,
    absent=NO_FREE_ANSWER,
)
CON = Metric(
    name="con",
    terms=con,
    meaning="pairs of answers of a group with a cosine similarity above 0.7, or with the same option",
    better="higher",
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_PAIR,
    reads="verdicts",
)
S_C = Metric(
    name="s_c",
    terms=s_c,
    meaning="mean cosine similarity of the pairs of answers in a group, x 100",
    better="higher",
    range=_COSINE,
    graded=True,
    source=_MAIN,
    judged=SIMILAR,
    absent=NO_FREE_ANSWER,
)
AGREE = Metric(
    name="agree",
    terms=agree,
    meaning="pairs of answers that are equal after normalisation, or choose the same option",
    better="higher",
    source="beyond the paper",
    judged=None,
    absent=NO_PAIR,
)
FAILURES = Metric(
    name="failures",
    terms=failures,
    meaning="groups in which at least one answer is not right",
    better="lower",
    source=_FAILURE,
    absent=NO_REFERENCE,
    per_group=True,
    reads="verdicts",
)
PAIRS_LEFT_OUT = Metric(
    name="pairs_left_out",
    terms=pairs_left_out,
    meaning="pairs that are not compared: an answer failed, or is left out as empty",
    better="lower",
    source="beyond the paper",
    judged=SIMILAR,
    absent=NO_PAIR,
    counts_failures=True,
    reads="verdicts",
)
EMPTY = Metric(
    name="empty",
    terms=empty,
    meaning="answers without text, or without any after post-processing",
    better="lower",
    source="beyond the paper",
    judged=None,
    absent="no answers",
    reads="verdicts",
)

_BESIDE = (
    Metric(
        name="same_meaning",
        terms=same_meaning,
        meaning="decided pairs of answers that are equal, or that a judge calls the same in meaning",
        better="higher",
        source="beyond the paper",
        judged="same_meaning",
        absent="no judge decided whether answers mean the same (--judge MODEL)",
    ),
    Metric(
        name="contrary_consistent",
        terms=contrary_consistent,
        meaning="consistent pairs that contradict each other, such as yes and no",
        better="lower",
        source="beyond the paper",
        judged=SIMILAR,
        absent="no pair above the threshold",
        reads="verdicts",
    ),
    Metric(
        name="consistent_right",
        terms=consistent_right,
        meaning="pairs that are consistent and of which both answers are right",
        better="higher",
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
        reads="verdicts",
    ),
    Metric(
        name="consistent_wrong",
        terms=consistent_wrong,
        meaning="pairs that are consistent and of which both answers are wrong",
        better="lower",
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
        reads="verdicts",
    ),
    Metric(
        name="consistent_mixed",
        terms=consistent_mixed,
        meaning="pairs that are consistent and of which one answer is right, one wrong",
        better="neither",
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
        reads="verdicts",
    ),
    Metric(
        name="inconsistent",
        terms=inconsistent,
        meaning="pairs that are not consistent",
        better="lower",
        source="beyond the paper",
        judged=SIMILAR,
        absent=NO_SCORED_PAIR,
        reads="verdicts",
    ),
    FAILURES,
    _in_failures(S_GT, "higher", NO_FAILURE),
    _in_failures(CON, "neither", NO_FAILING_PAIR),
    _in_failures(S_C, "neither", NO_FAILING_PAIR),
    Metric(
        name="refused",
        terms=refused,
        meaning="answers that decline to answer",
        better="lower",
        source="beyond the paper; MM-R3 A.9.3",
        judged=None,
        absent="no answers",
        reads="verdicts",
    ),
)


# -- Answers in words that the embedder does not know, such as Chinese ones


def _unknown(group: Group) -> Iterator[Term]:
    if not all(outcome.options for outcome in group):
        for outcome in group:
            if outcome.answered and not is_empty(outcome):
                yield Term(UNKNOWN in outcome.scores, 1, outcome.labels)


UNKNOWN_WORDS = Metric(
    name=UNKNOWN,
    terms=_unknown,
    meaning="answers of which the embedder does not know more than a quarter of the tokens",
    better="lower",
    source="beyond the paper",
    judged=None,
    absent="no answers that are compared by similarity",
)


def null_where_unknown(
    values: Iterable[MetricValue], unknown: Sequence[MetricValue], metrics: Iterable[Metric]
) -> list[MetricValue]:
    """Take the values of similarity away where the embedder does not know too many answers.

    It reads all unknown words as one: 是 and 否 (yes and no) have similarity 1.

    Args:
        unknown: The values of UNKNOWN_WORDS; those over all samples count for subsets without one.
        metrics: The metrics of the values.
    """
    reasons = {one.subset: unknown_words(one) for one in unknown if (one.value or 0) > MOST_UNKNOWN_ANSWERS}
    known = {one.subset for one in unknown} - reasons.keys()
    decided = {one.name for one in metrics if _is_similarity(one) and not one.counts_failures} | {CONFUSED}

    def without(value: MetricValue) -> MetricValue:
        reason = None if value.subset in known else reasons.get(value.subset, reasons.get("all"))
        if value.metric not in decided or value.value is None or reason is None:
            return value
        return MetricValue(value.metric, value.subset, None, 0, 0, unit=value.unit, reason=reason)

    return [without(value) for value in values]


# -- The pairs of answers in a group, and the mean of a quantity over them

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


def _are_all(compared: Sized, group: Group) -> bool:
    return len(compared) == len(group) * (len(group) - 1) // 2


def is_empty(outcome: Outcome) -> bool:
    """Whether a response has no text, or none after post-processing."""
    return outcome.status == "empty" or outcome.extracted == ""


def without_empty_answers(group: Group) -> Group:
    """The group without its empty answers (the asterisk of Table 5)."""
    return group.once("without empty answers", _without_empty_answers)


def _without_empty_answers(group: Group) -> Group:
    partners = {name: tuple(filter(_has_text, outcomes)) for name, outcomes in group.partners.items()}
    return replace(group, outcomes=tuple(filter(_has_text, group.outcomes)), partners=partners)


def of_answers(values: Sequence[tuple[float, Labels]], *, overall: bool = True) -> list[Term]:
    """A term for the value of each answer, under its labels; one for all where the labels are the same."""
    if not values:
        return []
    labels = values[0][1]
    if all(own is labels or own == labels for _, own in values):
        return [Term(sum(value for value, _ in values), len(values), labels, overall)]
    return [Term(value, 1, own, overall) for value, own in values]


def mean_over_pairs(group: Group, by_pair: Sequence[tuple[PairPositions, float]]) -> list[Term]:
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
    by_answer = of_answers(
        [
            (total / count, outcome.labels)
            for outcome, total, count in zip(group.outcomes, sums, counts, strict=True)
            if count and outcome.labels
        ],
        overall=False,
    )
    return [Term(every, len(by_pair), NO_LABELS), *by_answer]


def pairs_with_text(texts: Sequence[str]) -> Iterator[PairPositions]:
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
        return chosen_text(outcome) or ""
    return normalised(outcome.response if outcome.extracted is None else outcome.extracted)
