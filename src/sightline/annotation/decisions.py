"""What the judgements of an item decide: majority, a number of votes, an adjudicator."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

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
    """How many annotators judge an item.

    Args:
        project: The project.
        item: The item.

    Returns:
        The number.
    """
    return item.annotators or project.annotators


def settlers(annotators: Iterable[Annotator]) -> frozenset[int]:
    """Find who settles items, and does not vote.

    Args:
        annotators: The annotators of the project.

    Returns:
        The numbers of the adjudicators, and that of the owner.
    """
    return frozenset({OWNER, *(one.number for one in annotators if one.role == ADJUDICATOR)})


def vote(task: Task, values: Values) -> str | None:
    """Read an annotator's vote from the values of the deciding fields.

    Args:
        task: The task.
        values: The values.

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
    """Decide about an item.

    Args:
        project: The project.
        item: The item.
        entries: The entries that count of the item, by annotator.
        settling: The numbers of the annotators who settle items.

    Returns:
        The decision. A value that the missing votes cannot change is there before the last vote.
    """
    task = project.task
    votes = {
        number: cast
        for number, entry in entries.items()
        if entry.action == "judge" and number not in settling and (cast := vote(task, entry.values))
    }
    settled = [
        (entry.number, cast)
        for number, entry in entries.items()
        if entry.action == "judge" and number in settling and (cast := vote(task, entry.values))
    ]
    if settled:
        return Decision("settled", max(settled)[1], votes)
    of = wanted(project, item)
    judged = sum(entry.action == "judge" and number not in settling for number, entry in entries.items())
    value = _accepted(task, list(votes.values()), of) if task.needed else _majority(list(votes.values()), of)
    if judged < of:
        return Decision("open", value, votes)
    return Decision("decided" if value is not None or not votes else "tie", value, votes)


def _majority(votes: Sequence[str], of: int) -> str | None:
    """The most frequent vote, as soon as the missing votes cannot change it."""
    if len(votes) >= of:
        return majority(votes)
    value = majority(votes)
    return value if value is not None and 2 * votes.count(value) > of else None


def _accepted(task: Task, votes: Sequence[str], of: int) -> str | None:
    """`yes` with the votes that acceptance needs, `no` when they cannot be reached any more."""
    in_favour = sum(_in_favour(task, value) for value in votes)
    if in_favour >= task.needed:
        return YES
    return NO if len(votes) - in_favour > of - task.needed else None


def _in_favour(task: Task, value: str) -> bool:
    if len(task.decides) == 1:
        return _is_yes(task, task.decides[0], {task.decides[0]: value})
    return value == YES


def _is_yes(task: Task, name: str, values: Values) -> bool:
    return any(
        option.tone == "yes" and option.value == values.get(name) for option in task.field(name).options
    )
