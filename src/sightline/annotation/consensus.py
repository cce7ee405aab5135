"""The consensus step: annotators who differ on an item see what the others said, and judge it again.

II-Bench, section 3.2 and appendix B.4: reviewers reach a consensus, and inconsistencies are resolved by that
of the annotation team.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.annotation.decisions import decide, in_favour, settlers
from sightline.annotation.state import State
from sightline.annotation.types import Annotator, Entry, Item


def to_reconsider(state: State, annotators: Sequence[Annotator], annotator: Annotator) -> Iterator[Item]:
    """List the items that an annotator judges once more, with the judgements of the others in view."""
    if state.project.task.ties != "consensus":
        return
    settling = settlers(annotators)
    if annotator.number in settling:
        return
    for number, entry in state.of_annotator(annotator.number).items():
        if entry.action == "judge" and not entry.reconsidered and _is_contested(state, number, settling):
            yield state.items[number]


def is_reconsidered(state: State, annotators: Sequence[Annotator], annotator: Annotator, item: int) -> bool:
    """Whether a judgement of an annotator on an item is, or would be, one with the others in view."""
    own = state.of_annotator(annotator.number).get(item)
    if own is None or own.action != "judge":
        return False
    return own.reconsidered or any(one.number == item for one in to_reconsider(state, annotators, annotator))


def others_said(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, item: int
) -> list[Entry]:
    """List what the other raters said about an item, for who reconsiders it.

    Returns:
        Their judgements; none if the annotator does not reconsider the item.
    """
    if not is_reconsidered(state, annotators, annotator, item):
        return []
    apart = {annotator.number, *settlers(annotators)}
    entries = state.of_item(item).items()
    return [entry for by, entry in entries if by not in apart and entry.action == "judge"]


def _is_contested(state: State, number: int, settling: frozenset[int]) -> bool:
    task, item = state.project.task, state.items[number]
    if item.expected:
        return False
    decision = decide(state.project, item, state.of_item(number), settling)
    rejected = task.needed > 0 and decision.status == "decided" and not in_favour(task, decision.value or "")
    return decision.status == "tie" or (
        rejected and any(in_favour(task, value) for value in decision.votes.values())
    )
