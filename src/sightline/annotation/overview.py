"""The numbers of a project for its owner: progress, annotators, their agreement, what is to be settled."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Literal

from msgspec import Struct

from sightline.annotation.agreement import AgreementPoint, Votes, agreement_of, independent_votes
from sightline.annotation.assignment import (
    REPORTS,
    able_raters,
    choose,
    could_judge,
    may_not_work,
    sharing_raters,
)
from sightline.annotation.decisions import (
    Decision,
    GoldResult,
    decisions_of,
    gold_result,
    has_failed,
    judged_by_raters,
    settlers,
    wanted,
)
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR
from sightline.annotation.types import Annotator
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
    free = {
        number: sum(could_judge(state, state.items[number], one, sharing) for one in able)
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
        annotators=[annotator_row(state, annotators, one, now, votes) for one in annotators],
        seconds=_median_time(state, decisions),
        broken=[number for number in decisions if state.reported[number]],
        obtainable=sum(min(missing[number], raters) for number, raters in free.items()),
        stuck={
            number: _passed_on(state, able, number)
            for number, raters in free.items()
            if raters < missing[number]
        },
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
    "active", "finished", "paused", "revoked", "expired", "check", "not qualified", "not started"
]


class AnnotatorRow(Struct, frozen=True):
    """An annotator in the overview.

    Attributes:
        seconds: The median time per item; None without judgements.
        agreement: The share of the annotator's votes that equal a vote of another annotator on the item, of
            all such pairs, 0-100; None without shared items.
        last: When the annotator was last active, in seconds since 1970; 0 if never.
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
        standing=_standing(state, annotators, annotator, now, has_begun=bool(entries)),
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


def _standing(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, now: float, *, has_begun: bool
) -> Standing:
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
        return "not qualified" if seen and not has_begun else "finished"
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
