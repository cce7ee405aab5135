"""Metrics of groups whose probes ask the same in different lights: accuracy and consistency (MM-R3 3.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, groupby

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.mmr3.mask_words import names_colour, names_lines, names_shape
from sightline.metrics.difference import difference_range
from sightline.scoring.containment import normalised
from sightline.scoring.contradiction import contradiction
from sightline.scoring.multiple_choice import is_refusal
from sightline.scoring.similarity import SIMILAR
from sightline.types import PERCENT, UNCHANGED, Group, Metric, Outcome, Term, Verdict

NO_REFERENCE = "no answers with references to score them against"
NO_EMBEDDER = "no similarities: embedder=none"
NO_PAIR = "no two answers of a group to compare: a group of one variant, or Sampling without --repeats"
NO_SCORED_PAIR = "no two answers of a group to compare that both have references"
NO_FAILURE = "no failure case: every answer is right, or none has a reference"
NO_FAILING_PAIR = (
    "no failure case with two answers to compare: every answer is right, or none has a reference"
)

Terms = Callable[[Group], Iterable[Term]]


Places = tuple[int, int]
"""Where the two answers of a pair stand in their group."""


class AnswerPair(Struct, frozen=True):
    """Two answers of a group, and the verdict on their similarity."""

    places: Places
    verdict: Verdict

    @property
    def consistent(self) -> bool:
        """Whether their similarity is above the threshold."""
        return self.verdict.verdict == "right"

    @property
    def similarity(self) -> float:
        """Their cosine, -1 to 1."""
        return self.verdict.value or 0.0


def pairs(group: Group) -> list[AnswerPair]:
    """The pairs of a group whose similarity is known."""
    verdicts = {verdict.targets: verdict for verdict in group.judgements if verdict.question == SIMILAR}
    found = []
    for first, second in combinations(range(len(group)), 2):
        verdict = verdicts.get((group.outcomes[first].key, group.outcomes[second].key))
        if verdict is not None:
            found.append(AnswerPair((first, second), verdict))
    return found


def is_empty(outcome: Outcome) -> bool:
    """Whether the model said nothing, or nothing is left of it after post-processing."""
    return outcome.status == "empty" or outcome.extracted == ""


def said(group: Group) -> Group:
    """The group without the answers that say nothing (Table 5's asterisk)."""
    partners = {name: tuple(filter(_says, outcomes)) for name, outcomes in group.partners.items()}
    return replace(group, outcomes=tuple(filter(_says, group.outcomes)), partners=partners)


def acc(group: Group) -> Iterator[Term]:
    """1 for a right answer of 1 scored (3.3)."""
    for outcome in group:
        if outcome.scored:
            yield Term(outcome.right, 1, outcome.labels)


def s_gt(group: Group) -> Iterator[Term]:
    """The similarity of an answer to its nearest reference, of 1 answered (3.3)."""
    for outcome in group:
        if "s_gt" in outcome.scores:
            yield Term(outcome.scores["s_gt"] / 100, 1, outcome.labels)


def con(group: Group) -> Iterator[Term]:
    """The consistent pairs of all pairs (3.3); under a label, the share of a response's partners."""
    yield from _over_pairs(group, [(pair.places, pair.consistent) for pair in pairs(group)])


def s_c(group: Group) -> Iterator[Term]:
    """The mean similarity of all pairs (3.3); under a label, a response's mean over its partners."""
    yield from _over_pairs(group, [(pair.places, pair.similarity) for pair in pairs(group)])


def agree(group: Group) -> Iterator[Term]:
    """1 for a pair whose normalised answers are equal, of 1 that says anything."""
    texts = [_text(outcome) for outcome in group]
    yield from _over_pairs(group, [(places, texts[places[0]] == texts[places[1]]) for places in _both(texts)])


def same_meaning(group: Group) -> Iterator[Term]:
    """1 for a pair that a judge calls the same in meaning, of 1 decided; equal answers need no judge."""
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
    """1 for a pair above the threshold that says contradictory things (yes and no), of 1 above it."""
    yield from _over_pairs(
        group, [(pair.places, _contradict(group, pair)) for pair in pairs(group) if pair.consistent]
    )


def pairs_left_out(group: Group) -> Iterator[Term]:
    """The pairs without a similarity, of all: an answer of them failed."""
    yield from _left_out(group, pairs(group))


def pairs_left_out_or_empty(group: Group) -> Iterator[Term]:
    """The pairs that are not compared, of all: an answer of them failed, or says nothing."""
    yield from _left_out(group, pairs(said(group)))


def consistent_right(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of right answers, of 1 pair whose answers are scored (A.5)."""
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 2)


def consistent_wrong(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of wrong answers, of 1 pair whose answers are scored (A.5)."""
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 0)


def consistent_mixed(group: Group) -> Iterator[Term]:
    """1 for a consistent pair of a right and a wrong answer, of 1 pair whose answers are scored."""
    yield from _by_verdict(group, lambda consistent, right: consistent and right == 1)


def inconsistent(group: Group) -> Iterator[Term]:
    """1 for a pair that is not consistent, of 1 pair whose answers are scored."""
    yield from _by_verdict(group, lambda consistent, right: not consistent)


def failures(group: Group) -> Iterator[Term]:
    """1 for a group in which not every answer is right, of 1 scored (A.5); under a label, of its answers."""
    if all(outcome.scored for outcome in group):
        yield Term(_fails(group), 1, {})
        yield from (Term(_fails(group), 1, outcome.labels, overall=False) for outcome in group)


def in_failures(terms: Terms) -> Terms:
    """The same over the groups in which not every answer is right (Tables 7 and 10-13, Failure Cases)."""

    def restricted(group: Group) -> Iterator[Term]:
        if _fails(group):
            yield from terms(group)

    return restricted


def without_empty(terms: Terms) -> Terms:
    """The same over the answers that say anything."""

    def restricted(group: Group) -> Iterator[Term]:
        left = said(group)
        if left.outcomes:
            yield from terms(left)

    return restricted


def minus_sampling(terms: Terms) -> Terms:
    """A group's mean less that of the unchanged input asked again and again (Tables 2-4, in brackets)."""

    def difference(group: Group) -> Iterator[Term]:
        here = _mean(terms(group))
        unchanged = groupby(group.partners.get(UNCHANGED, ()), key=lambda outcome: outcome.variant)
        there = [_mean(terms(_of(group, tuple(draws)))) for _, draws in unchanged]
        known = [value for value in there if value is not None]
        if here is not None and known and len(known) == len(there):
            yield Term(here - sum(known) / len(known), 1, {})

    return difference


def of_mask(holds: Callable[[str, str], bool], label: str) -> Terms:
    """The share of answers that name what the label says of their mask (4.3.1)."""

    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            value = outcome.labels.get(label)
            if isinstance(value, str) and outcome.answered:
                yield Term(holds(outcome.response, value), 1, outcome.labels)

    return terms


def refused(group: Group) -> Iterator[Term]:
    """The share of answers that decline (A.9.3)."""
    for outcome in group:
        if outcome.answered:
            yield Term(is_refusal(outcome.response), 1, outcome.labels)


def empty(group: Group) -> Iterator[Term]:
    """The share of answers that say nothing, or of which nothing is left after post-processing."""
    for outcome in group:
        if outcome.answered:
            yield Term(is_empty(outcome), 1, outcome.labels)


def consistency_metrics(
    *, embedded: bool = True, ignore_empty: bool = False, sampling: bool = False, masks: bool = False
) -> list[Metric]:
    """The metrics of consistency, acc first.

    Without similarities (not `embedded`) the metrics that rest on them are null. `ignore_empty` leaves
    answers that say nothing out of all but the count of them; `sampling` adds the differences to the
    unchanged input, `masks` what answers say of the mask itself.
    """
    main = [ACC, S_GT, CON, S_C]
    differences = [_minus_sampling(metric) for metric in main]
    every = [*main, *(differences if sampling else ()), *_BESIDE, *(_MASKS if masks else ())]
    if ignore_empty:
        every = [replace(metric, terms=without_empty(metric.terms)) for metric in every]
    left_out = pairs_left_out_or_empty if ignore_empty else pairs_left_out
    every += [replace(PAIRS_LEFT_OUT, terms=left_out), EMPTY]
    if embedded:
        return every
    return [replace(metric, absent=NO_EMBEDDER) if _is_similarity(metric) else metric for metric in every]


def _is_similarity(metric: Metric) -> bool:
    return metric.judged == SIMILAR or metric.name.startswith("s_gt")


def _over_pairs(group: Group, known: Sequence[tuple[Places, float]]) -> Iterator[Term]:
    """The mean over pairs; under the labels of each answer, its mean over the pairs that it is in."""
    if not known:
        return
    yield Term(sum(amount for _, amount in known), len(known), {})
    sums, counts = [0.0] * len(group), [0] * len(group)
    for places, amount in known:
        for place in places:
            sums[place] += amount
            counts[place] += 1
    for outcome, total, count in zip(group, sums, counts, strict=True):
        if count and outcome.labels:
            yield Term(total / count, 1, outcome.labels, overall=False)


def _contradict(group: Group, pair: AnswerPair) -> bool:
    first, second = (group.outcomes[place].response for place in pair.places)
    return first != second and contradiction(first, second) is not None


def _both(texts: Sequence[str]) -> Iterator[Places]:
    """The pairs of answers that both say anything."""
    return ((i, j) for i, j in combinations(range(len(texts)), 2) if texts[i] and texts[j])


def _left_out(group: Group, compared: Sequence[AnswerPair]) -> Iterator[Term]:
    every = len(group) * (len(group) - 1) // 2
    if every:
        yield Term(every - len(compared), every, {})


def _says(outcome: Outcome) -> bool:
    return not is_empty(outcome)


def _by_verdict(group: Group, holds: Callable[[bool, int], bool]) -> Iterator[Term]:
    found = []
    for pair in pairs(group):
        first, second = (group.outcomes[place] for place in pair.places)
        if first.scored and second.scored:
            found.append((pair.places, holds(pair.consistent, first.right + second.right)))
    yield from _over_pairs(group, found)


def _of(group: Group, outcomes: tuple[Outcome, ...]) -> Group:
    return Group(group.id, group.draw, group.cluster, outcomes, group.judgements)


def _fails(group: Group) -> bool:
    return any(outcome.scored and not outcome.right for outcome in group)


def _mean(terms: Iterable[Term]) -> float | None:
    counted = [term for term in terms if term.overall]
    count = sum(term.count for term in counted)
    return sum(term.sum for term in counted) / count if count else None


def _text(outcome: Outcome) -> str:
    """The answer as it was read, or as it was given where only people judged it."""
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

_MASKS = tuple(
    Metric(
        name=name,
        terms=of_mask(holds, label),
        meaning=f"answers that name the {label} of the mask",
        better="lower",
        range=PERCENT,
        source="MM-R3 4.3.1 and A.9.3",
        judged=None,
        absent=f"no label '{label}'",
    )
    for name, holds, label in (
        ("names_colour", names_colour, "colour"),
        ("names_shape", names_shape, "shape"),
        ("names_lines", names_lines, "lines"),
    )
)
