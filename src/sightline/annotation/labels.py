"""The labels that annotators give an item, such as its domain: what each says, and what has no majority."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sightline.annotation.asked import as_given, is_asked
from sightline.annotation.task import Task
from sightline.annotation.types import Entry, Item
from sightline.scoring.majority import majority

Label = frozenset[str]
"""The values that an annotator gives a label; a set of several values counts as one value."""


def label_votes(task: Task, item: Item, entries: Mapping[int, Entry], name: str) -> dict[int, Label]:
    """Collect what annotators say about a label of an item."""
    field = task.field(name)
    given = {by: as_given(entry.values) for by, entry in entries.items() if entry.action == "judge"}
    return {by: frozenset(own.get(name, ())) for by, own in given.items() if is_asked(field, item, own)}


def open_labels(
    task: Task, item: Item, entries: Mapping[int, Entry], settling: Collection[int]
) -> tuple[str, ...]:
    """List the labels of an item for which no value has more than half of the votes.

    Returns:
        The names of their fields; none before anybody has judged the item.
    """
    raters = {number: entry for number, entry in entries.items() if number not in settling}
    votes = {name: label_votes(task, item, raters, name) for name in task.labels}
    return tuple(name for name, of in votes.items() if of and majority(of.values(), absolute=True) is None)
