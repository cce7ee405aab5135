"""The majority of votes: the one rule by which several opinions become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

Vote = TypeVar("Vote")

MAJORITY_OF = "majority of "
"""What the name of a majority begins with; the names of its voters follow, with commas."""


def majority(votes: Iterable[Vote], *, absolute: bool = False) -> Vote | None:
    """The most frequent vote.

    Returns:
        The vote that more voters share than any other; None for a tie, or without votes.

    >>> majority(["right", "right", "wrong"])
    'right'
    >>> majority([True, False]) is None
    True
    >>> majority(["a", "a", "b", "c"], absolute=True) is None
    True
    """
    counts = Counter(votes)
    (first, count), (_, next_count) = [*counts.most_common(2), (None, 0), (None, 0)][:2]
    least = counts.total() // 2 if absolute else next_count
    return first if count > least else None
