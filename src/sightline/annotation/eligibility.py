"""Who can work in a project, and on which items."""

from __future__ import annotations

from collections.abc import Container, Iterable

from sightline.annotation.gold import has_failed, is_qualified
from sightline.annotation.state import State
from sightline.annotation.task import RATER
from sightline.annotation.types import Annotator, Item, Project


def may_not_work(state: State, annotator: Annotator) -> str:
    """Say why an annotator gets nothing at all."""
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


def fails_test(state: State, annotator: Annotator, phase: str) -> bool:
    """Whether an annotator has done a qualification test and not passed it."""
    mine = _of_phase(state, annotator, phase)
    is_done = bool(mine) and is_test_over(state, annotator, phase)
    return is_done and not is_qualified(state, annotator.number, phase, len(mine))


def able_raters(state: State, annotators: Iterable[Annotator], now: float) -> list[Annotator]:
    """List the raters who can still get items of the work.

    Args:
        now: Seconds since 1970.
    """
    return [
        one
        for one in annotators
        if one.role == RATER
        and one.expires > now
        and not may_not_work(state, one)
        and not any(fails_test(state, one, phase.name) for phase in state.project.task.phases)
    ]


def is_for(item: Item, annotator: Annotator) -> bool:
    """Whether an annotator may judge an item: not their own work, and of their strata."""
    if item.authors:
        name = annotator.name.casefold()
        if any(author.casefold() == name for author in item.authors):
            return False
    return not annotator.strata or item.stratum in annotator.strata


def sharing_raters(project: Project, annotators: Iterable[Annotator], now: float) -> frozenset[int]:
    """Find who judges the shared queries: the same raters all of them (CODIS, appendix A).

    Args:
        now: Seconds since 1970.
    """
    raters = [one for one in annotators if one.role == RATER and not one.revoked and one.expires > now]
    return frozenset(one.number for one in raters[: project.annotators])


def is_shared_with(item: Item, annotator: Annotator, sharing: Container[int]) -> bool:
    """Whether an item goes to an annotator if it is a shared query."""
    return item.annotators <= 1 or annotator.role != RATER or annotator.number in sharing


def could_judge(state: State, item: Item, annotator: Annotator, sharing: Container[int]) -> bool:
    """Whether an annotator may judge an item, and has neither judged, skipped nor reported it."""
    is_open = annotator.number not in state.of_item(item.number)
    return is_open and is_for(item, annotator) and is_shared_with(item, annotator, sharing)


def _of_phase(state: State, annotator: Annotator, phase: str) -> list[Item]:
    return [item for item in state.items.values() if item.phase == phase and is_for(item, annotator)]
