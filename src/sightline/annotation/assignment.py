"""Who can work on which items, and which one comes next: pure functions of state, leases and time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from math import ceil
from random import Random
from typing import Literal

from sightline.annotation.decisions import (
    decide,
    gold_is_due,
    gold_result,
    has_failed,
    is_gold,
    judged_by_raters,
    settlers,
    to_reconsider,
    wanted,
)
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR, RATER
from sightline.annotation.types import Annotator, Item, Lease, Project

REPORTS = 2
"""An item that this many annotators report as broken is given to nobody else."""


def choose(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, leases: Iterable[Lease], now: float
) -> Item | None:
    """Choose the next item of an annotator.

    The item in hand comes first. Otherwise, in the first phase that the annotator has not ended: the items
    that the most annotators have judged, in the order of the project (questions to answer come in an order of
    the annotator's own); but no two items of a group in a row, if that is possible; and gold items at random
    places. Items to judge again, with the others' judgements in view, come at the end.

    Returns:
        The item; None if there is none for this annotator now.
    """
    if may_not_work(state, annotator):
        return None
    live = [lease for lease in leases if lease.until > now]
    done = state.of_annotator(annotator.number)
    in_hand = [lease for lease in live if lease.annotator == annotator.number and lease.item not in done]
    if in_hand:
        # The latest: after an undo, the item that was undone.
        return state.items[max(in_hand, key=lambda lease: lease.until).item]
    if annotator.role == ADJUDICATOR:
        return _to_settle(state, annotators, annotator, live)
    if _has_done_most(state, annotator):
        return next(to_reconsider(state, annotators, annotator), None)
    phases = [phase.name for phase in state.project.task.phases] or [""]
    for phase in phases:
        items = [item for item in state.items.values() if item.phase == phase]
        if found := _in_phase(state, annotators, annotator, live, items, now):
            return found
        if result_of_test(state, annotator, phase) in ("failed", "waiting"):
            return None
    return next(to_reconsider(state, annotators, annotator), None)


def is_free(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, leases: Iterable[Lease], item: Item
) -> bool:
    taken = _taken(state, settlers(annotators), leases, annotator)[item.number]
    return bool(item.expected) or annotator.role == ADJUDICATOR or taken < wanted(state.project, item)


def items_left(state: State, annotators: Sequence[Annotator], annotator: Annotator, now: float) -> int:
    """Estimate how many items an annotator still gets, for the page; `now` is in seconds since 1970."""
    done, settling = state.of_annotator(annotator.number), settlers(annotators)
    left = [item for item in state.items.values() if item.number not in done and is_for(item, annotator)]
    if annotator.role == ADJUDICATOR:
        return sum(
            decide(state.project, item, state.of_item(item.number), settling).status == "tie"
            for item in left
            if not item.expected
        )
    known = [item for item in left if item.expected]
    gold = sum(is_gold(state, item) for item in known)
    sharing = sharing_raters(state.project, annotators, now)
    open_items = [
        item
        for item in _open_items(state, left, _taken(state, settling, (), annotator))
        if is_shared_with(item, annotator, sharing)
    ]
    share = EvenShare(state, annotators, annotator, now)
    singles = [item for item in open_items if item.annotators == 1]
    free = sum(not share.keeps(item) for item in singles)
    own_singles = min(share.missing or free, len(singles))
    others = len(open_items) - len(singles) + own_singles
    others += sum(1 for _ in to_reconsider(state, annotators, annotator))
    work = others + min(gold, round(others / max(state.project.task.gold.every - 1, 1)))
    if annotator.most:
        work = min(work, max(0, annotator.most - _judged_work(state, annotator)))
    return len(known) - gold + work


def _in_phase(
    state: State,
    annotators: Sequence[Annotator],
    annotator: Annotator,
    leases: Sequence[Lease],
    items: Sequence[Item],
    now: float,
) -> Item | None:
    done = state.of_annotator(annotator.number)
    if own_order := state.project.task.produces == "answers" and state.project.task.mixed:
        items = _in_own_order(state, annotator, items)
    left = [item for item in items if item.number not in done and is_for(item, annotator)]
    known = [item for item in left if item.expected]
    if known and not is_gold(state, known[0]):
        # Training and qualification: everybody does every item.
        return known[0]
    taken = _taken(state, settlers(annotators), leases, annotator)
    share = EvenShare(state, annotators, annotator, now)
    sharing = sharing_raters(state.project, annotators, now)
    open_items = [
        item
        for item in _open_items(state, left, taken)
        if is_shared_with(item, annotator, sharing) and not share.keeps(item)
    ]
    if not open_items:
        return None
    if known and gold_is_due(state, annotator.number, len(_work_done(state, annotator))):
        return known[0]
    last = state.last_item(annotator.number)
    candidates = _apart(open_items, last.group if last else "")
    if own_order:
        return candidates[0]
    return min(candidates, key=lambda item: (-taken[item.number], item.number))


def _in_own_order(state: State, annotator: Annotator, items: Sequence[Item]) -> Sequence[Item]:
    """Put items in the order of an annotator whose answers are a row of their own."""
    return Random(f"order {state.project.seed} {annotator.number}").sample(items, len(items))


def _apart(items: Sequence[Item], last_group: str) -> Sequence[Item]:
    """The items after which no two of a group need to follow each other, as far as that is possible."""
    members: Mapping[str, list[Item]] = defaultdict(list)
    for item in items:
        if item.group:
            members[item.group].append(item)
    for group, of_group in members.items():
        if len(of_group) > len(items) // 2 and group != last_group:
            return of_group
    return [item for item in items if not item.group or item.group != last_group] or items


def _taken(
    state: State, settling: frozenset[int], leases: Iterable[Lease], annotator: Annotator
) -> Counter[int]:
    """Item -> the raters who have judged it or have it in hand; a skipped item is free again."""
    taken = judged_by_raters(state, settling)
    for lease in leases:
        other = lease.annotator != annotator.number and lease.annotator not in settling
        if other and lease.annotator not in state.of_item(lease.item):
            taken[lease.item] += 1
    return taken


def _to_settle(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, leases: Iterable[Lease]
) -> Item | None:
    """The first item without a decision that nobody settles already."""
    settling = settlers(annotators)
    done = state.of_annotator(annotator.number)
    in_hand = {lease.item for lease in leases if lease.annotator in settling}
    for number, item in state.items.items():
        if number in done or number in in_hand or item.expected or not is_for(item, annotator):
            continue
        if decide(state.project, item, state.of_item(number), settling).status == "tie":
            return item
    return None


def _open_items(state: State, items: Iterable[Item], taken: Mapping[int, int]) -> list[Item]:
    """The items without known values that need more raters, and that are not reported as broken."""
    return [
        item
        for item in items
        if not item.expected
        and taken[item.number] < wanted(state.project, item)
        and state.reported[item.number] < REPORTS
    ]


def _work_done(state: State, annotator: Annotator) -> list[int]:
    phase = state.project.task.phase
    return [
        number
        for number in state.of_annotator(annotator.number)
        if phase(state.items[number].phase).kind == "work"
    ]


def _judged_work(state: State, annotator: Annotator) -> int:
    entries = state.of_annotator(annotator.number)
    return sum(entries[number].action == "judge" for number in _work_done(state, annotator))


def _has_done_most(state: State, annotator: Annotator) -> bool:
    return 0 < annotator.most <= _judged_work(state, annotator)


# -- Who can work in a project, and on which items


def may_not_work(state: State, annotator: Annotator) -> str:
    if annotator.revoked:
        return "revoked"
    if annotator.paused:
        return "paused"
    return "gold" if state.project.task.gold.action == "pause" and has_failed(state, annotator) else ""


def is_test_over(state: State, annotator: Annotator, phase: str) -> bool:
    """Whether an annotator has done all items of a qualification test: its answers stay from then on."""
    if state.project.task.phase(phase).kind != "qualification":
        return False
    done = state.of_annotator(annotator.number)
    return all(item.number in done for item in _of_phase(state, annotator, phase))


TestResult = Literal["passed", "failed", "waiting", "open"]
"""`waiting`: it depends on answers about which the owner has not decided. `open`: items are left."""


def result_of_test(state: State, annotator: Annotator, phase: str) -> TestResult:
    """The result of an annotator's test; a phase that is no test is `passed`."""
    mine = _of_phase(state, annotator, phase)
    if not mine or state.project.task.phase(phase).kind != "qualification":
        return "passed"
    if not is_test_over(state, annotator, phase):
        return "open"
    found, needed = gold_result(state, annotator.number, phase), passing(state, annotator, phase)
    if found.right >= needed:
        return "passed"
    return "waiting" if found.right + found.waiting >= needed else "failed"


def passing(state: State, annotator: Annotator, phase: str) -> int:
    """How many items of a test must be as expected."""
    share = state.project.task.gold.qualify * len(_of_phase(state, annotator, phase))
    return ceil(round(share, 9))  # 0.7 * 10 is more than 7 in floating point.


def able_raters(state: State, annotators: Iterable[Annotator], now: float) -> list[Annotator]:
    """List the raters who can still get items of the work; `now` is in seconds since 1970."""
    return [
        one
        for one in annotators
        if one.role == RATER
        and one.expires > now
        and not may_not_work(state, one)
        and not _has_done_most(state, one)
        and not any(result_of_test(state, one, phase.name) == "failed" for phase in state.project.task.phases)
    ]


def is_for(item: Item, annotator: Annotator) -> bool:
    """Whether an annotator may judge an item: not their own work, and of their strata."""
    if item.authors:
        name = annotator.name.casefold()
        if any(author.casefold() == name for author in item.authors):
            return False
    return not annotator.strata or item.stratum in annotator.strata


def sharing_raters(project: Project, annotators: Iterable[Annotator], now: float) -> frozenset[int]:
    """Find who judges the shared queries at `now`: the same raters all of them (CODIS, appendix A)."""
    raters = [one for one in annotators if one.role == RATER and not one.revoked and one.expires > now]
    return frozenset(one.number for one in raters[: project.annotators])


def is_shared_with(item: Item, annotator: Annotator, sharing: Container[int]) -> bool:
    return item.annotators <= 1 or annotator.role != RATER or annotator.number in sharing


def could_judge(state: State, item: Item, annotator: Annotator, sharing: Container[int]) -> bool:
    """Whether an annotator may judge an item, and has neither judged, skipped nor reported it."""
    is_open = annotator.number not in state.of_item(item.number)
    return is_open and is_for(item, annotator) and is_shared_with(item, annotator, sharing)


def _of_phase(state: State, annotator: Annotator, phase: str) -> list[Item]:
    return [item for item in state.items.values() if item.phase == phase and is_for(item, annotator)]


# -- Items for one annotator each are split evenly among those who can work


class EvenShare:
    """The even share of an annotator, and what is kept for others who have not reached theirs.

    The share is what those who cannot work any more have left, divided by the number of those who can. A
    skipped item counts for nobody's share.
    """

    def __init__(
        self, state: State, annotators: Sequence[Annotator], annotator: Annotator, now: float
    ) -> None:
        self._state = state
        singles = {number for number, item in state.items.items() if item.annotators == 1}
        singles -= {number for number in singles if state.items[number].expected}
        able = able_raters(state, annotators, now) if singles else []
        judged = {one.number: _judged(state, one, singles) for one in (annotator, *able)}
        by_able = sum(judged[one.number] for one in able)
        left = len(singles) - sum(state.judged[number] for number in singles) + by_able
        share = ceil(left / max(len(able), 1))
        self.missing = max(share - judged[annotator.number], 0)
        self._below = [one for one in able if one.number != annotator.number and judged[one.number] < share]

    def keeps(self, item: Item) -> bool:
        """Whether an item is kept for somebody else: nobody keeps what nobody else may judge."""
        return (
            item.annotators == 1
            and not self.missing
            and any(could_judge(self._state, item, one, ()) for one in self._below)
        )


def _judged(state: State, annotator: Annotator, items: set[int]) -> int:
    entries = state.of_annotator(annotator.number).items()
    return sum(entry.action == "judge" and number in items for number, entry in entries)
