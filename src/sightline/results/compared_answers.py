"""The changed answers of a comparison, read from the groups of both runs when they are asked for."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import overload

from sightline.results.flips import AnswerChange, answer_changes
from sightline.results.pairing import GroupPairs, probe_pairs


class ComparedAnswers(Sequence[AnswerChange]):
    """What became of each answer."""

    def __init__(self, pairs: Sequence[GroupPairs]) -> None:
        self.pairs = pairs

    def __iter__(self) -> Iterator[AnswerChange]:
        """Read all groups, one at a time."""
        return chain.from_iterable(answer_changes(*numbered) for numbered in enumerate(self.pairs))

    def __len__(self) -> int:
        """The number of answers."""
        return self._ends[-1]

    @overload
    def __getitem__(self, place: int) -> AnswerChange: ...
    @overload
    def __getitem__(self, place: slice) -> list[AnswerChange]: ...
    def __getitem__(self, place: int | slice) -> AnswerChange | list[AnswerChange]:
        """Read the group of an answer, or those of several."""
        if isinstance(place, slice):
            return [self[one] for one in range(len(self))[place]]
        place = range(len(self))[place]
        group = bisect_right(self._ends, place) - 1
        return list(self._changes(group))[place - self._ends[group]]

    def _changes(self, group: int) -> Iterator[AnswerChange]:
        """The changes of a group, counted through all pairs of runs."""
        for number, pairs in enumerate(self.pairs):
            if group < len(pairs):
                return answer_changes(number, [pairs[group]])
            group -= len(pairs)
        raise IndexError(group)

    @cached_property
    def _ends(self) -> list[int]:
        """0, then the number of answers up to each group."""
        groups = chain.from_iterable(self.pairs)
        return [0, *accumulate(sum(1 for _ in probe_pairs(pair)) for pair in groups)]
