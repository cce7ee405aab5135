"""Items whose values are known: gold items among the others, training, and qualification tests."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import Struct

from sightline.annotation.state import State
from sightline.annotation.types import Annotator, Item, Values


class GoldResult(Struct, frozen=True):
    """How many gold items an annotator judged, and how many of them as expected."""

    judged: int
    right: int

    @property
    def failures(self) -> int:
        """The gold items that were judged otherwise."""
        return self.judged - self.right


def is_gold(state: State, item: Item) -> bool:
    """Whether an item is a gold item: its values are known, and its phase is work."""
    return bool(item.expected) and state.project.task.phase(item.phase).kind == "work"


def is_expected(expected: Values, values: Values) -> bool:
    """Whether values are those that are known."""
    return all(_alternatives(values.get(name, "")) & _alternatives(known) for name, known in expected.items())


def gold_result(state: State, annotator: int, phase: str | None = None) -> GoldResult:
    """Count the results of an annotator's gold items, or of the items of a qualification test.

    Of a gold item, what the annotator said first counts; a slip can be corrected before the next item.

    Args:
        phase: The phase of the test; None for the gold items.
    """
    entries = state.first_of(annotator) if phase is None else state.of_annotator(annotator)
    results = [
        is_expected(item.expected, entry.values)
        for number, entry in entries.items()
        if entry.action == "judge" and (item := state.items[number]).expected
        if (is_gold(state, item) if phase is None else item.phase == phase)
    ]
    return GoldResult(len(results), sum(results))


def has_failed(state: State, annotator: Annotator) -> bool:
    """Whether the rule for gold items applies to an annotator."""
    failures = gold_result(state, annotator.number).failures - annotator.forgiven
    return failures >= state.project.task.gold.failures


def is_qualified(state: State, annotator: int, phase: str, items: int) -> bool:
    """Whether an annotator passes a qualification test whose items are all done."""
    return gold_result(state, annotator, phase).right >= state.project.task.gold.qualify * items


def gold_is_due(state: State, annotator: int, done: int) -> bool:
    """Whether the next item of an annotator is a gold item.

    One place of every `every` places is drawn at random for each annotator.
    """
    every = state.project.task.gold.every
    block, place = divmod(done, every)
    return Random(f"gold {state.project.seed} {annotator} {block}").randrange(every) == place


def _alternatives(value: str | Sequence[str]) -> set[str]:
    return {text.strip().casefold() for text in ([value] if isinstance(value, str) else value)}
