"""The majority of votes: the one rule by which several opinions become one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

Vote = TypeVar("Vote")


def majority(votes: Iterable[Vote]) -> Vote | None:
    """The most frequent vote.

    Args:
        votes: The votes of those who decided; abstentions are left out by the caller.

    Returns:
        The vote that more voters share than any other; None for a tie, or without votes.

    >>> majority(["right", "right", "wrong"])
    'right'
    >>> majority([True, False]) is None
    True
    """
    (first, count), (_, next_count) = [*Counter(votes).most_common(2), (None, 0), (None, 0)][:2]
    return None if count == next_count else first
