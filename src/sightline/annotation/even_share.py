"""Items for one annotator each are split evenly among those who can work."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from sightline.annotation.eligibility import able_raters, could_judge
from sightline.annotation.state import State
from sightline.annotation.types import Annotator, Item


class EvenShare:
    """The even share of an annotator, and what is kept for others who have not reached theirs.

    The share is what those who cannot work any more have left, divided by the number of those who can. A
    skipped item counts for nobody's share.
    """

    def __init__(
        self, state: State, annotators: Sequence[Annotator], annotator: Annotator, now: float
    ) -> None:
        """Count what has been judged.

        Args:
            now: Seconds since 1970.
        """
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
