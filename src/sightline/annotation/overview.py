"""The numbers of a project for its owner: progress, annotators, their agreement, what is to be settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.assignment import (
    REPORTS,
    able_raters,
    choose,
    could_judge,
    may_not_work,
    result_of_test,
    sharing_raters,
)
from sightline.annotation.decisions import (
    AnswerToCompare,
    Decision,
    GoldResult,
    Label,
    answers_to_compare,
    decisions_of,
    gold_result,
    has_failed,
    judged_by_raters,
    label_votes,
    settlers,
    votes_of,
    wanted,
)
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR, CROWD
from sightline.annotation.types import Annotator, Entry
from sightline.types import MetricValue


class Overview(Struct, frozen=True):
    """A project as its owner sees it; `seconds` is the median time per judgement, None without any."""

    items: int
    judgements: int
    wanted: int
    decisions: Mapping[int, Decision]
    votes: Mapping[int, Votes]
    shared: int
    alpha: MetricValue
    growth: Sequence[AgreementPoint]
    annotators: Sequence[AnnotatorRow]
    seconds: float | None
    broken: Sequence[int]
    obtainable: int
    stuck: Mapping[int, Sequence[int]]
    to_compare: Sequence[AnswerToCompare] = ()
    remarks: Sequence[Entry] = ()

    def with_status(self, status: str) -> list[int]:
        return [number for number, decision in self.decisions.items() if decision.status == status]


def overview(state: State, annotators: Sequence[Annotator], now: float, growth: int = 10) -> Overview:
    """Compute the overview at `now` (seconds since 1970); its growth has at most `growth` points."""
    decisions = decisions_of(state, annotators)
    votes = independent_votes(state, annotators, decisions)
    agreement = agreement_of(state, votes, growth)
    judged = judged_by_raters(state, settlers(annotators))
    needed = {number: wanted(state.project, state.items[number]) for number in decisions}
    missing = {
        number: votes - judged[number]
        for number, votes in needed.items()
        if votes > judged[number] and state.reported[number] < REPORTS
    }
    able, sharing = able_raters(state, annotators, now), sharing_raters(state.project, annotators, now)
    more_come = any(one.role == CROWD and not one.revoked and one.expires > now for one in annotators)
    free = {
        number: missing[number]
        if more_come
        else sum(could_judge(state, state.items[number], one, sharing) for one in able)
        for number in missing
    }
    return Overview(
        items=len(decisions),
        judgements=sum(judged[number] for number in decisions),
        wanted=sum(max(votes, judged[number]) for number, votes in needed.items()),
        decisions=decisions,
        votes=votes,
        shared=agreement.shared,
        alpha=agreement.alpha,
        growth=agreement.growth,
        annotators=[
            annotator_row(state, annotators, one, now, votes) for one in annotators if one.role != CROWD
        ],
        seconds=_median_time(state, decisions),
        broken=[number for number in decisions if state.reported[number]],
        obtainable=sum(min(missing[number], raters) for number, raters in free.items()),
        stuck={
            number: _passed_on(state, able, number)
            for number, raters in free.items()
            if raters < missing[number]
        },
        to_compare=[one for one in answers_to_compare(state, annotators) if one.accepted is None],
        remarks=state.remarks,
    )


def stuck_sentence(seen: Overview) -> str:
    """Say which items have missing votes that nobody can give, and what the owner can do."""
    if not seen.stuck:
        return ""
    numbers = ", ".join(map(str, list(seen.stuck)[:20])) + (", ..." if len(seen.stuck) > 20 else "")
    items = "1 item lacks" if len(seen.stuck) == 1 else f"{len(seen.stuck):,} items lack"
    passed = {number for some in seen.stuck.values() for number in some}
    names = [row.annotator.name for row in seen.annotators if row.annotator.number in passed]
    ask = f", or ask who skipped or reported them: {', '.join(names)}" if names else ""
    return f"{items} judgements that nobody can give now: {numbers}. Invite somebody{ask}."


def _median_time(state: State, items: Iterable[int]) -> float | None:
    seconds = [
        entry.seconds
        for number in items
        for entry in state.of_item(number).values()
        if entry.action == "judge" and entry.seconds
    ]
    return median(seconds) if seconds else None


def _passed_on(state: State, able: Sequence[Annotator], item: int) -> list[int]:
    """Who can work, and skipped an item or reported it as broken."""
    entries = state.of_item(item)
    return [one.number for one in able if one.number in entries and entries[one.number].action != "judge"]


# -- What the owner sees of each annotator: work done, gold items, time, agreement with others, state

Standing = Literal[
    "active",
    "no item left",
    "paused",
    "revoked",
    "expired",
    "check",
    "not qualified",
    "waiting",
    "not started",
]
"""`waiting`: the owner has not decided about answers of the test."""


class AnnotatorRow(Struct, frozen=True):
    """An annotator in the overview.

    Attributes:
        seconds: The median time per item; None without judgements.
        agreement: The share of the annotator's votes that equal a vote of another annotator on the item, of
            all such pairs, 0-100; None without shared items.
    """

    annotator: Annotator
    done: int
    skipped: int
    broken: int
    gold: GoldResult
    seconds: float | None
    agreement: float | None
    standing: Standing
    last: float


def annotator_row(
    state: State,
    annotators: Sequence[Annotator],
    annotator: Annotator,
    now: float,
    votes: Mapping[int, Votes],
) -> AnnotatorRow:
    entries = [entry for number, entry in state.of_annotator(annotator.number).items() if number in votes]
    actions = Counter(entry.action for entry in entries)
    seconds = [entry.seconds for entry in entries if entry.action == "judge" and entry.seconds]
    return AnnotatorRow(
        annotator=annotator,
        done=actions["judge"],
        skipped=actions["skip"],
        broken=actions["broken"],
        gold=gold_result(state, annotator.number),
        seconds=median(seconds) if seconds else None,
        agreement=_agreement(annotator.number, votes),
        standing=_standing(state, annotators, annotator, now),
        last=max((entry.time for entry in state.of_annotator(annotator.number).values()), default=0.0),
    )


def _agreement(number: int, votes: Mapping[int, Votes]) -> float | None:
    pairs = [
        of_item[one] == of_item[two]
        for of_item in votes.values()
        for one, two in combinations(of_item, 2)
        if number in (one, two)
    ]
    return 100 * sum(pairs) / len(pairs) if pairs else None


def _standing(state: State, annotators: Sequence[Annotator], annotator: Annotator, now: float) -> Standing:
    match may_not_work(state, annotator):
        case "revoked":
            return "revoked"
        case "paused" | "gold":
            return "paused"
    if has_failed(state, annotator):
        return "check"
    seen = state.of_annotator(annotator.number)
    item = choose(state, annotators, annotator, (), now)
    if item is None and annotator.role != ADJUDICATOR:
        tests = {result_of_test(state, annotator, phase.name) for phase in state.project.task.phases}
        return "not qualified" if "failed" in tests else "waiting" if "waiting" in tests else "no item left"
    if annotator.expires <= now:
        return "expired"
    return "active" if seen or item is None else "not started"


# -- The agreement of every two annotators: share and Cohen's kappa, for any number of labels


class PairAgreement(Struct, frozen=True):
    """How two annotators agree; kappa is None if chance alone makes both agree on everything."""

    first: int
    second: int
    items: int
    share: float
    kappa: float | None


def pairwise(votes: Iterable[Mapping[int, str]]) -> list[PairAgreement]:
    """Compare every two annotators.

    >>> [pair] = pairwise([{1: "yes", 2: "yes"}, {1: "no", 2: "no"}, {1: "no", 2: "yes"}, {1: "no", 2: "no"}])
    >>> pair.share, pair.kappa
    (75.0, 0.5)
    """
    shared: dict[tuple[int, int], list[tuple[str, str]]] = defaultdict(list)
    for of_item in votes:
        for first, second in combinations(sorted(of_item), 2):
            shared[first, second].append((of_item[first], of_item[second]))
    return [_pair_agreement(*pair, given) for pair, given in sorted(shared.items())]


def mean_kappa(pairs: Iterable[PairAgreement]) -> float | None:
    """Average the kappas of the pairs that have one; None if none has."""
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(kappas) / len(kappas) if kappas else None


def _pair_agreement(first: int, second: int, given: list[tuple[str, str]]) -> PairAgreement:
    n = len(given)
    observed = sum(one == other for one, other in given) / n
    ones, others = Counter(one for one, _ in given), Counter(other for _, other in given)
    by_chance = sum(ones[label] * others[label] for label in ones) / n**2
    kappa = (observed - by_chance) / (1 - by_chance) if by_chance < 1 else None
    return PairAgreement(first, second, n, 100 * observed, kappa)


# -- The agreement of the votes of a project: alpha, how it grew, and the agreement on each label

Votes = Mapping[int, str]
"""Annotator -> vote."""


class AgreementPoint(Struct, frozen=True):
    """The agreement after a number of items with two votes or more."""

    items: int
    value: MetricValue


class Agreement(Struct, frozen=True):
    """The number of items with two votes or more, Krippendorff's alpha (nominal) of them, and its growth."""

    shared: int
    alpha: MetricValue
    growth: Sequence[AgreementPoint]


def independent_votes(
    state: State, annotators: Iterable[Annotator], items: Iterable[int]
) -> dict[int, Votes]:
    """Collect the votes that raters cast without those of others in view."""
    settling, task = settlers(annotators), state.project.task
    return {
        number: {
            by: vote for by, vote in votes_of(task, state.independent(number)).items() if by not in settling
        }
        for number in items
    }


def agreement_of(state: State, votes: Mapping[int, Votes], points: int) -> Agreement:
    """Compute the agreement, with at most `points` points of its growth; 0 for none."""
    shared = sorted(
        (number for number, of_item in votes.items() if len(of_item) > 1),
        key=lambda number: max(entry.number for entry in state.of_item(number).values()),
    )
    growth = [
        AgreementPoint(count, _alpha(state, votes, shared[:count])) for count in _steps(len(shared), points)
    ]
    alpha = _alpha(state, votes, shared)
    if alpha.value is None:
        alpha = replace(alpha, reason=_why_no_alpha(state, votes, shared))
    return Agreement(len(shared), alpha, growth)


def _why_no_alpha(state: State, votes: Mapping[int, Votes], shared: Sequence[int]) -> str | None:
    if not state.project.task.decides:
        return "free texts are not compared"
    if not shared:
        return "no item has two judgements"
    if len({vote for number in shared for vote in votes[number].values()}) == 1:
        return "all judgements are equal"
    return None


def alpha_of_votes(votes: Sequence[Sequence[Hashable]], clusters: Sequence[str]) -> MetricValue:
    import numpy as np

    from sightline.metrics.association import NOMINAL_ALPHA, statistic_value

    values = list(dict.fromkeys(vote for of_item in votes for vote in of_item))
    counts = np.array([[of_item.count(value) for value in values] for of_item in votes], dtype=np.float64)
    counts = counts.reshape(len(votes), len(values))
    with np.errstate(divide="ignore", invalid="ignore"):  # One cluster has no interval.
        return statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), clusters)


def _alpha(state: State, votes: Mapping[int, Votes], items: Sequence[int]) -> MetricValue:
    clusters = [state.items[number].cluster or str(number) for number in items]
    return alpha_of_votes([list(votes[number].values()) for number in items], clusters)


def _steps(shared: int, points: int) -> list[int]:
    if not points or shared < 2:
        return []
    return sorted({max(2, round(shared * step / points)) for step in range(1, points + 1)})


# -- How far annotators agree on the labels of items (II-Bench 3.2; the errors of 4.3 and of ConTextual,
#    I)

ALONE = "no item has two annotators"


class LabelAgreement(Struct, frozen=True):
    """The agreement on one label; `share` is that of the pairs of annotators who agree, in percent."""

    name: str
    share: MetricValue
    alpha: MetricValue


def label_agreement(state: State, annotators: Sequence[Annotator]) -> list[LabelAgreement]:
    """Compute how far annotators agree on each label that the task declares."""
    settling, found = settlers(annotators), []
    for name in state.project.task.labels:
        votes: list[tuple[str, list[Label]]] = []
        for number, item in state.items.items():
            independent = {by: entry for by, entry in state.independent(number).items() if by not in settling}
            labels = list(label_votes(state.project.task, item, independent, name).values())
            votes.append((item.cluster or str(number), labels))
        found.append(agreement_on(name, votes))
    return found


def agreement_on(name: str, votes: Sequence[tuple[str, Sequence[Label]]]) -> LabelAgreement:
    from sightline.metrics.statistics import clustered_mean

    several = [(cluster, labels) for cluster, labels in votes if len(labels) > 1]
    pairs = [
        (cluster, float(one == other))
        for cluster, labels in several
        for one, other in combinations(labels, 2)
    ]
    share = clustered_mean("agreement", pairs, reason=ALONE)
    alpha = alpha_of_votes([labels for _, labels in several], [cluster for cluster, _ in several])
    if not several:
        alpha = replace(alpha, reason=ALONE)
    subset = f"label={name}"
    return LabelAgreement(name, replace(share, subset=subset), replace(alpha, subset=subset))
