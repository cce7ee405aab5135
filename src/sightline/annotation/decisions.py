"""What the judgements of an item decide: majority, a number of votes, an adjudicator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

from sightline.annotation.gold import is_gold
from sightline.annotation.labels import open_labels
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR, Task
from sightline.annotation.types import OWNER, Annotator, Entry, Item, Project, Values
from sightline.scoring.majority import majority

YES, NO = "yes", "no"

Status = Literal["open", "decided", "tie", "settled"]
"""`open`: judgements are missing. `tie`: none of all votes decides. `settled`: somebody has decided a tie."""


class Decision(Struct, frozen=True):
    """The decision about an item: its value, and the votes of the raters by annotator.

    The value is None without a decision. An open item has a value if the missing votes cannot change it.
    """

    status: Status
    value: str | None
    votes: Mapping[int, str]


def wanted(project: Project, item: Item) -> int:
    """How many annotators judge an item."""
    return item.annotators or project.annotators


def settlers(annotators: Iterable[Annotator]) -> frozenset[int]:
    """Find who settles items, and does not vote."""
    return frozenset({OWNER, *(one.number for one in annotators if one.role == ADJUDICATOR)})


def judged_by_raters(state: State, settling: Iterable[int]) -> Counter[int]:
    """Count the raters who have judged each item."""
    judged = state.judged.copy()
    for settler in settling:
        entries = state.of_annotator(settler).items()
        judged.subtract(number for number, entry in entries if entry.action == "judge")
    return judged


def vote(task: Task, values: Values) -> str | None:
    """Read an annotator's vote from the values of the deciding fields.

    Returns:
        The value of the one deciding field; of several fields `yes` if all have an option of tone `yes`,
        otherwise `no`; None if the task decides nothing, or the field was not asked.
    """
    if len(task.decides) == 1:
        value = values.get(task.decides[0])
        return value if isinstance(value, str) else None
    if not task.decides or not any(name in values for name in task.decides):
        return None
    return YES if all(_is_yes(task, name, values) for name in task.decides) else NO


def decide(project: Project, item: Item, entries: Mapping[int, Entry], settling: Collection[int]) -> Decision:
    """Decide about an item."""
    task = project.task
    judged = {number: entry for number, entry in entries.items() if entry.action == "judge"}
    raters = {number: entry for number, entry in judged.items() if number not in settling}
    votes = votes_of(task, raters)
    settled = [
        (entry.number, cast)
        for number, entry in judged.items()
        if number in settling and ((cast := vote(task, entry.values)) or not task.decides)
    ]
    if settled:
        return Decision("settled", max(settled)[1], votes)
    of = wanted(project, item)
    value = _accepted(task, list(votes.values()), of) if task.needed else _majority(list(votes.values()), of)
    if len(raters) < of:
        return Decision("open", value, votes)
    if task.decides:
        is_tie = value is None and bool(votes)
    else:
        is_tie = task.ties != "open" and bool(open_labels(task, item, raters, settling))
    return Decision("tie" if is_tie else "decided", value, votes)


def votes_of(task: Task, entries: Mapping[int, Entry]) -> dict[int, str]:
    return {
        number: cast
        for number, entry in entries.items()
        if entry.action == "judge" and (cast := vote(task, entry.values))
    }


def decisions_of(state: State, annotators: Iterable[Annotator]) -> dict[int, Decision]:
    """Decide about all items of the work, without gold items, training and tests."""
    settling = settlers(annotators)
    return {
        number: decide(state.project, item, state.of_item(number), settling)
        for number, item in state.items.items()
        if state.project.task.phase(item.phase).kind == "work" and not is_gold(state, item)
    }


def _majority(votes: Sequence[str], of: int) -> str | None:
    """The most frequent vote, as soon as the missing votes cannot change it."""
    if len(votes) >= of:
        return majority(votes)
    value = majority(votes)
    return value if value is not None and 2 * votes.count(value) > of else None


def _accepted(task: Task, votes: Sequence[str], of: int) -> str | None:
    """`yes` with the votes that acceptance needs, `no` when they cannot be reached any more."""
    accepting = sum(in_favour(task, value) for value in votes)
    if accepting >= task.needed:
        return YES
    return NO if len(votes) - accepting > of - task.needed else None


def ties_of(decisions: Mapping[int, Decision]) -> list[int]:
    """List the items without a decision although all judgements are there."""
    return [number for number, decision in decisions.items() if decision.status == "tie"]


def in_favour(task: Task, value: str) -> bool:
    """Whether a vote accepts an item."""
    if len(task.decides) == 1:
        return _is_yes(task, task.decides[0], {task.decides[0]: value})
    return value == YES


def _is_yes(task: Task, name: str, values: Values) -> bool:
    return any(
        option.tone == "yes" and option.value == values.get(name) for option in task.field(name).options
    )
