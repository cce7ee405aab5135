"""What the owner sees of each annotator: work done, gold items, time, agreement with others, state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import median
from typing import Literal

from msgspec import Struct

from sightline.annotation.agreement import Votes
from sightline.annotation.assignment import choose
from sightline.annotation.eligibility import may_not_work
from sightline.annotation.gold import GoldResult, gold_result, has_failed
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR
from sightline.annotation.types import Annotator

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
    """Sum up an annotator.

    Args:
        now: Seconds since 1970.
    """
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
