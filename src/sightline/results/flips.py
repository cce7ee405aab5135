"""Changed answers: what became right or wrong from one run to another, and which responses are identical."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Literal

from msgspec import Struct

from sightline.results.pairing import GroupPair, probe_pairs
from sightline.types import GroupKey, Outcome, VerdictName

Change = Literal["both_right", "gained", "lost", "both_wrong", "unscored"]
"""From not right to right is gained, from right to not right lost; without a reference, nothing is scored."""


class AnswerChange(Struct, frozen=True):
    """The answers of two runs to one probe.

    Attributes:
        pair: The number of the pair of runs, from 0.
        identical: Whether both responses have the same text; None if one run has no answer.
    """

    pair: int
    group: GroupKey
    variants: tuple[str, str]
    verdicts: tuple[VerdictName, VerdictName]
    change: Change
    identical: bool | None
    responses: tuple[str, str]

    @property
    def undecided(self) -> bool:
        """Whether the verdict of a run is undecided."""
        return "undecided" in self.verdicts

    @property
    def unanswered(self) -> bool:
        """Whether a run has no answer."""
        return self.identical is None


class ChangeCounts(Struct, frozen=True):
    """The numbers of changes among answers or groups.

    The first four add up to `scored`, and `gained` minus `lost` is the change in right ones: an undecided
    verdict and a missing answer are not right. `undecided` and `unanswered` count how many of all involve
    such a verdict, or lack an answer, in one run at least.
    """

    unit: Literal["answers", "groups"]
    scored: int
    both_right: int
    gained: int
    lost: int
    both_wrong: int
    undecided: int
    unanswered: int
    identical: int
    compared: int


class GroupChange(Struct, frozen=True):
    """What became of a group, which is right if all its answers are."""

    answers: tuple[AnswerChange, ...]

    @property
    def change(self) -> Change:
        """The change of the whole group."""
        changes = [answer.change for answer in self.answers]
        if "unscored" in changes:
            return "unscored"
        before = all(change in ("both_right", "lost") for change in changes)
        after = all(change in ("both_right", "gained") for change in changes)
        return change_of(before, after)

    @property
    def identical(self) -> bool | None:
        """Whether all responses are identical; None if an answer is missing."""
        found = [answer.identical for answer in self.answers]
        return None if None in found else all(found)

    @property
    def undecided(self) -> bool:
        """Whether any verdict is undecided."""
        return any(answer.undecided for answer in self.answers)

    @property
    def unanswered(self) -> bool:
        """Whether any answer is missing."""
        return self.identical is None


LISTS: Mapping[str, Callable[[AnswerChange | GroupChange], bool]] = {
    "gained": lambda one: one.change == "gained",
    "lost": lambda one: one.change == "lost",
    "both_right": lambda one: one.change == "both_right",
    "both_wrong": lambda one: one.change == "both_wrong",
    "undecided": lambda one: one.undecided,
    "unanswered": lambda one: one.unanswered,
    "identical": lambda one: one.identical is True,
    "different": lambda one: one.identical is False,
}
"""Name -> whether an answer, or a group, is behind the count of this name."""


def answer_changes(number: int, pairs: Iterable[GroupPair]) -> Iterator[AnswerChange]:
    """Compare the answers of two runs probe by probe."""
    for pair in pairs:
        for outcomes in probe_pairs(pair):
            yield _answer_change(number, pair.other.key, *outcomes)


def group_changes(answers: Iterable[AnswerChange]) -> Iterator[GroupChange]:
    for _, members in groupby(answers, key=lambda one: (one.pair, one.group)):
        yield GroupChange(tuple(members))


class ChangeCounter:
    """Counts changes that are added one by one."""

    def __init__(self, unit: Literal["answers", "groups"]) -> None:
        self._unit: Literal["answers", "groups"] = unit
        self._kinds: Counter[Change] = Counter()
        self._undecided = self._unanswered = self._identical = 0

    def add(self, change: AnswerChange | GroupChange) -> None:
        self._kinds[change.change] += 1
        identical = change.identical
        self._undecided += change.undecided
        self._unanswered += identical is None
        self._identical += identical is True

    def counts(self) -> ChangeCounts:
        kinds = self._kinds
        return ChangeCounts(
            unit=self._unit,
            scored=kinds.total() - kinds["unscored"],
            both_right=kinds["both_right"],
            gained=kinds["gained"],
            lost=kinds["lost"],
            both_wrong=kinds["both_wrong"],
            undecided=self._undecided,
            unanswered=self._unanswered,
            identical=self._identical,
            compared=kinds.total() - self._unanswered,
        )


def count_changes(answers: Iterable[AnswerChange]) -> list[ChangeCounts]:
    """Count changes, in one pass."""
    of_answers, of_groups, several = ChangeCounter("answers"), ChangeCounter("groups"), False
    for group in group_changes(answers):
        of_groups.add(group)
        several = several or len(group.answers) > 1
        for answer in group.answers:
            of_answers.add(answer)
    return [of_answers.counts(), *([of_groups.counts()] if several else [])]


def change_of(before: bool, after: bool) -> Change:
    """Name a change."""
    if before:
        return "both_right" if after else "lost"
    return "gained" if after else "both_wrong"


def _answer_change(number: int, group: GroupKey, base: Outcome, other: Outcome) -> AnswerChange:
    answered = base.answered and other.answered
    return AnswerChange(
        pair=number,
        group=group,
        variants=(base.variant, other.variant),
        verdicts=(base.verdict, other.verdict),
        change=change_of(base.right, other.right) if base.scored and other.scored else "unscored",
        identical=base.response == other.response if answered else None,
        responses=(base.response, other.response),
    )
