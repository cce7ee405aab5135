"""The numbers of a project for its owner: progress, annotators, agreement, what is to be settled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Literal

from msgspec import Struct

from sightline.annotation.assignment import REPORTS, choose
from sightline.annotation.decisions import Decision, decide, settlers, wanted
from sightline.annotation.eligibility import able_raters, could_judge, may_not_work
from sightline.annotation.gold import GoldResult, gold_result, has_failed, is_gold
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR
from sightline.annotation.types import Annotator, Item
from sightline.metric_types import MetricValue

Standing = Literal[
    "active", "finished", "paused", "revoked", "expired", "check", "not qualified", "not started"
]


class AnnotatorRow(Struct, frozen=True):
    """An annotator in the overview.

    Attributes:
        annotator: The annotator.
        done: The items that the annotator judged, without training and tests.
        skipped, broken: The items that were skipped, or reported as broken.
        gold: The results of the gold items.
        seconds: The median time per item; None without judgements.
        agreement: The share of the annotator's votes that equal a vote of another annotator on the item, of
            all such pairs, 0-100; None without shared items.
        standing: What the annotator does; `check` if the rule for gold items applies.
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


class AgreementPoint(Struct, frozen=True):
    """The agreement after a number of items with two votes or more."""

    items: int
    value: MetricValue


class Overview(Struct, frozen=True):
    """A project as its owner sees it.

    Attributes:
        items: The number of items, without training, tests and gold items.
        judgements: The votes that were cast, without those that settle ties.
        wanted: The votes that the project needs.
        decisions: Item -> decision.
        shared: The number of items with two votes or more.
        alpha: Krippendorff's alpha of the votes, nominal.
        growth: Alpha as it grew.
        annotators: The annotators.
        seconds: The median time per judgement; None without any.
        broken: The items that were reported as broken.
        obtainable: The missing votes that somebody can still give.
        stuck: The items with missing votes that nobody can give now: item -> the numbers of the annotators
            who can work, and skipped it or reported it as broken.
    """

    items: int
    judgements: int
    wanted: int
    decisions: Mapping[int, Decision]
    shared: int
    alpha: MetricValue
    growth: Sequence[AgreementPoint]
    annotators: Sequence[AnnotatorRow]
    seconds: float | None
    broken: Sequence[int]
    obtainable: int
    stuck: Mapping[int, Sequence[int]]

    def with_status(self, status: str) -> list[int]:
        """List the items of a status.

        Args:
            status: `open`, `decided`, `tie` or `settled`.

        Returns:
            Their numbers.
        """
        return [number for number, decision in self.decisions.items() if decision.status == status]


def overview(state: State, annotators: Sequence[Annotator], now: float, growth: int = 10) -> Overview:
    """Compute the overview of a project.

    Args:
        state: The state.
        annotators: The annotators.
        now: Seconds since 1970.
        growth: The most points of the growth of the agreement; 0 for none.

    Returns:
        The overview.
    """
    settling = settlers(annotators)
    work = [item for item in state.items.values() if _is_work(state, item)]
    decisions = {
        item.number: decide(state.project, item, state.of_item(item.number), settling) for item in work
    }
    shared = sorted(
        (number for number, decision in decisions.items() if len(decision.votes) > 1),
        key=lambda number: max(entry.number for entry in state.of_item(number).values()),
    )
    seconds = [
        entry.seconds
        for item in work
        for entry in state.of_item(item.number).values()
        if entry.action == "judge" and entry.seconds
    ]
    judged = {
        item.number: sum(
            entry.action == "judge" and by not in settling for by, entry in state.of_item(item.number).items()
        )
        for item in work
    }
    able = able_raters(state, annotators, now)
    missing = {
        item.number: wanted(state.project, item) - judged[item.number]
        for item in work
        if state.reported[item.number] < REPORTS
    }
    free = {
        number: sum(could_judge(state, state.items[number], one) for one in able)
        for number, votes in missing.items()
        if votes > 0
    }
    return Overview(
        items=len(work),
        judgements=sum(judged.values()),
        wanted=sum(max(wanted(state.project, item), judged[item.number]) for item in work),
        decisions=decisions,
        shared=len(shared),
        alpha=_alpha(state, decisions, shared),
        growth=[
            AgreementPoint(count, _alpha(state, decisions, shared[:count]))
            for count in _steps(len(shared), growth)
        ],
        annotators=[_row(state, annotators, one, now, decisions) for one in annotators],
        seconds=median(seconds) if seconds else None,
        broken=[
            item.number
            for item in work
            if any(entry.action == "broken" for entry in state.of_item(item.number).values())
        ],
        obtainable=sum(min(missing[number], raters) for number, raters in free.items()),
        stuck={
            number: _passed_on(state, able, number)
            for number, raters in free.items()
            if raters < missing[number]
        },
    )


def stuck_sentence(seen: Overview) -> str:
    """Say which items have missing votes that nobody can give, and what the owner can do.

    Args:
        seen: The overview.

    Returns:
        The sentences; '' if somebody can give each missing vote.
    """
    if not seen.stuck:
        return ""
    numbers = ", ".join(map(str, list(seen.stuck)[:20])) + (", ..." if len(seen.stuck) > 20 else "")
    items = "1 item lacks" if len(seen.stuck) == 1 else f"{len(seen.stuck):,} items lack"
    passed = {number for some in seen.stuck.values() for number in some}
    names = [row.annotator.name for row in seen.annotators if row.annotator.number in passed]
    ask = f", or ask who skipped or reported them: {', '.join(names)}" if names else ""
    return f"{items} judgements that nobody can give now: {numbers}. Invite somebody{ask}."


def _passed_on(state: State, able: Sequence[Annotator], item: int) -> list[int]:
    """Who can work, and skipped an item or reported it as broken."""
    entries = state.of_item(item)
    return [one.number for one in able if one.number in entries and entries[one.number].action != "judge"]


def _is_work(state: State, item: Item) -> bool:
    return state.project.task.phase(item.phase).kind == "work" and not is_gold(state, item)


def _alpha(state: State, decisions: Mapping[int, Decision], items: Sequence[int]) -> MetricValue:
    import numpy as np

    from sightline.metrics.association import NOMINAL_ALPHA
    from sightline.metrics.judge_statistics import statistic_value

    labels = sorted({vote for number in items for vote in decisions[number].votes.values()})
    counts = np.array(
        [[list(decisions[number].votes.values()).count(label) for label in labels] for number in items],
        dtype=np.float64,
    ).reshape(len(items), len(labels))
    clusters = [state.items[number].cluster or str(number) for number in items]
    with np.errstate(divide="ignore", invalid="ignore"):  # One cluster has no interval.
        return statistic_value(NOMINAL_ALPHA, counts, counts.sum(axis=1), clusters)


def _steps(shared: int, points: int) -> list[int]:
    if not points or shared < 2:
        return []
    return sorted({max(2, round(shared * step / points)) for step in range(1, points + 1)})


def _row(
    state: State,
    annotators: Sequence[Annotator],
    annotator: Annotator,
    now: float,
    decisions: Mapping[int, Decision],
) -> AnnotatorRow:
    entries = [entry for number, entry in state.of_annotator(annotator.number).items() if number in decisions]
    actions = Counter(entry.action for entry in entries)
    seconds = [entry.seconds for entry in entries if entry.action == "judge" and entry.seconds]
    return AnnotatorRow(
        annotator=annotator,
        done=actions["judge"],
        skipped=actions["skip"],
        broken=actions["broken"],
        gold=gold_result(state, annotator.number),
        seconds=median(seconds) if seconds else None,
        agreement=_agreement(annotator.number, decisions),
        standing=_standing(state, annotators, annotator, now, has_begun=bool(entries)),
        last=max((entry.time for entry in state.of_annotator(annotator.number).values()), default=0.0),
    )


def _agreement(number: int, decisions: Mapping[int, Decision]) -> float | None:
    pairs = [
        decision.votes[one] == decision.votes[two]
        for decision in decisions.values()
        for one, two in combinations(decision.votes, 2)
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
