"""Why groups break: the variants of one run against each other, and what its answers are."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from operator import ne, sub
from typing import Any, NamedTuple

from msgspec.structs import replace

from sightline.metrics.consistency import normalised_answers
from sightline.metrics.flips import GroupPair, probe_pairs
from sightline.types import Group, GroupKey, Metric, Outcome, Term, each_value

VARIANT = "variant"
"""The label that a probe has beside those of its data: the name of its variant."""

PAIR = "pair"
"""The label of two variants of a group: their names, with a NUL character between them."""

FEWEST = 3
"""The answers of a group of which one can differ alone."""


def by_variant(group: Group) -> Group:
    """The group whose answers have their variant as a label, too."""
    outcomes = tuple(replace(one, labels={**one.labels, VARIANT: one.variant}) for one in group)
    return replace(group, outcomes=outcomes)


def _scored(group: Group) -> Sequence[Outcome]:
    """The answers of a group that can be compared; none if one has no reference."""
    comparable = len(group) > 1 and not group.pooled and all(outcome.scored for outcome in group)
    return group.outcomes if comparable else ()


def _right(group: Group) -> Iterator[Term]:
    for outcome in _scored(group):
        yield Term(outcome.right, 1, {VARIANT: outcome.variant})


def _alone(group: Group, right: bool) -> Iterator[Term]:
    """1 for the only answer of its group that is right, or that is not, of 1 answer."""
    outcomes = _scored(group)
    if len(outcomes) >= FEWEST:
        alone = sum(outcome.right == right for outcome in outcomes) == 1
        for outcome in outcomes:
            yield Term(alone and outcome.right == right, 1, {VARIANT: outcome.variant})


def _pairs(group: Group, value: Callable[[bool, bool], float]) -> Iterator[Term]:
    """What two answers of a group, each right or not, amount to, of 1 pair."""
    for first, second in combinations(_scored(group), 2):
        amount = value(first.right, second.right)
        yield Term(amount, 1, {PAIR: f"{first.variant}\0{second.variant}"})


def _groups(group: Group, holds: Callable[[Sequence[bool]], bool]) -> Iterator[Term]:
    """1 for a group of whose answers, right or not, this holds, of 1 group."""
    if outcomes := _scored(group):
        yield Term(holds([outcome.right for outcome in outcomes]), 1)


def _other_answer(group: Group) -> Iterator[Term]:
    """1 for a group with more than one answer, of 1 with all answers and one set of references."""
    comparable = len(group) > 1 and not group.pooled and group.complete
    if comparable and len({outcome.references for outcome in group}) == 1:
        yield Term(len(set(normalised_answers(group))) > 1, 1)


def plain_metric(name: str, terms: Callable[[Group], Iterator[Term]], **more: Any) -> Metric:
    """A metric of tables that say themselves what their values mean."""
    fixed = {"meaning": "", "better": "neither", "source": "beyond the paper", "judged": None, **more}
    return Metric(name=name, terms=terms, **fixed)


OF_GROUPS = (
    plain_metric("all right", partial(_groups, holds=all)),
    plain_metric("some right", partial(_groups, holds=lambda right: any(right) and not all(right))),
    plain_metric("none right", partial(_groups, holds=lambda right: not any(right))),
    plain_metric("answers differ", _other_answer),
)
"""The metrics of whole groups: the worst case, groups that flip, and groups with more than one answer."""

OF_VARIANTS = (
    plain_metric("right", _right),
    plain_metric("alone_wrong", partial(_alone, right=False)),
    plain_metric("alone_right", partial(_alone, right=True)),
)
"""The metrics of each variant: subsets of the label VARIANT."""

OF_PAIRS = (
    plain_metric("both_right", partial(_pairs, value=lambda first, second: first and second)),
    plain_metric("only_first", partial(_pairs, value=lambda first, second: first and not second)),
    plain_metric("only_second", partial(_pairs, value=lambda first, second: second and not first)),
    plain_metric("both_wrong", partial(_pairs, value=lambda first, second: not (first or second))),
    plain_metric("differ", partial(_pairs, value=ne)),
    plain_metric("drop", partial(_pairs, value=sub), unit="points", range=(-100.0, 100.0)),
)
"""The metrics of two variants: subsets of the label PAIR."""


def order_metrics(base: Mapping[GroupKey, Group], clean: str) -> list[Metric]:
    """The lead of a run over another one under `clean` and under each other variant, by VARIANT.

    They read groups of the run; `base` holds those of the other run by their keys. A lead is 1 if only this
    run is right, -1 if only the other one is, else 0.
    """

    def terms(group: Group, value: Callable[[int, int], float]) -> Iterator[Term]:
        leads = {
            here.variant: here.right - there.right
            for there, here in probe_pairs(GroupPair(base[group.key], group))
            if here.scored and there.scored
        }
        first = leads.pop(clean, None)
        if first is not None:
            for variant, second in leads.items():
                yield Term(value(first, second), 1, {VARIANT: variant})

    def lead(name: str, value: Callable[[int, int], float], largest: float = 100.0) -> Metric:
        return plain_metric(name, partial(terms, value=value), unit="points", range=(-largest, largest))

    return [
        lead("under_clean", lambda first, second: first),
        lead("under_variant", lambda first, second: second),
        lead("change", lambda first, second: second - first, 200.0),
        plain_metric("reversed", partial(terms, value=lambda first, second: first * second < 0)),
    ]


NO_OPTION = "(no option)"
"""An answer with text that chooses none of the options."""


class AnswerCount(NamedTuple):
    """A normalised answer under one value of a label: how often it was given, and how often it is right."""

    value: str
    answer: str
    n: int
    of: int
    right: int


def frequent_answers(groups: Iterable[Group], most: int, label: str | None = None) -> list[AnswerCount]:
    """The most frequent answers, at most `most` for each value of a label; `NO_OPTION` or '' for none.

    Answers count as exact comparison reads them: the extracted part, without case, articles and punctuation;
    of a question with options, the chosen option.
    """
    given: defaultdict[str, Counter[str]] = defaultdict(Counter)
    right: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        for outcome, text in zip(group, normalised_answers(group), strict=True):
            if outcome.answered:
                text = text or (NO_OPTION if outcome.options and outcome.response.strip() else "")
                for value in each_value(outcome.labels.get(label, ())) if label else ("",):
                    given[value][text] += 1
                    right[value][text] += outcome.right
    return [
        AnswerCount(value, text, n, given[value].total(), right[value][text])
        for value in sorted(given)
        for text, n in sorted(given[value].items(), key=lambda one: (-one[1], one[0]))[:most]
    ]


def most_frequent(group: Group) -> Sequence[Outcome]:
    """The outcomes with the most frequent answer, of equally frequent ones the first; [] without any."""
    answered = [(o, text) for o, text in zip(group, normalised_answers(group), strict=True) if o.answered]
    votes = Counter(text for _, text in answered).most_common(1)
    return [outcome for outcome, text in answered if text == votes[0][0]]


def majority_vote(group: Group) -> Group:
    """The group whose answers are all its most frequent one, of equally frequent ones the first.

    It needs no training. A group of one answer, or whose answers have different references, stays as it is.
    """
    one_key = len({outcome.references for outcome in group}) == 1
    if not one_key or sum(outcome.answered for outcome in group) < 2:
        return group
    voted = most_frequent(group)[0]
    taken = {name: getattr(voted, name) for name in _OF_ANSWER}
    outcomes = tuple(replace(outcome, **taken) for outcome in group)
    return replace(group, outcomes=outcomes, judgements=(), partners={})


_OF_ANSWER = (
    "key",
    "response",
    "status",
    "finish_reason",
    "verdict",
    "extracted",
    "judge",
    "scores",
    "error",
)
"""The fields of an outcome that come from its answer."""
