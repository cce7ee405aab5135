"""Changed answers: what became right or wrong from one run to another, and which responses are identical."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.types import BETWEEN_PARTS, Group, GroupKey, Outcome, VerdictName

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
        return "undecided" in self.verdicts

    @property
    def unanswered(self) -> bool:
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
        return any(answer.undecided for answer in self.answers)

    @property
    def unanswered(self) -> bool:
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
    of_answers, of_groups, several = ChangeCounter("answers"), ChangeCounter("groups"), False
    for group in group_changes(answers):
        of_groups.add(group)
        several = several or len(group.answers) > 1
        for answer in group.answers:
            of_answers.add(answer)
    return [of_answers.counts(), *([of_groups.counts()] if several else [])]


def change_of(before: bool, after: bool) -> Change:
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


# -- The changed answers of a comparison, read from the groups of both runs when they are asked for


class ComparedAnswers:
    """What became of each answer; each iteration is a new pass."""

    def __init__(self, pairs: Sequence[GroupPairs]) -> None:
        self.pairs = pairs

    def __iter__(self) -> Iterator[AnswerChange]:
        return chain.from_iterable(answer_changes(*numbered) for numbered in enumerate(self.pairs))


# -- Which groups and probes of two runs belong together

IMAGE_DIGEST = re.compile("[0-9a-f]{64}")
"""A cluster that is the digest of an image."""


class GroupPair(NamedTuple):
    """The same group in two runs, reduced to the probes that both hold."""

    base: Group
    other: Group


class GroupPairs:
    """The pairs of groups of two runs. Each is read when it is asked for."""

    def __init__(
        self,
        base: Mapping[GroupKey, Group],
        other: Mapping[GroupKey, Group],
        keys: Sequence[tuple[GroupKey, GroupKey]],
    ) -> None:
        self._base, self._other = base, other
        self._keys = keys

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[GroupPair]:
        for base, other in self._keys:
            yield _shared_probes(self._base[base], self._other[other])


class MissingCounts(Struct, frozen=True):
    """What one run misses of the other: `samples`, and `probes` of the samples that both hold."""

    samples: int = 0
    probes: int = 0


class Pairing(Struct, frozen=True):
    """The groups that two runs share.

    `missing` is what the base run misses, then what the other run misses. `different` names the samples whose
    data differ between the runs. `unchecked` counts those of which a run holds no digest.
    """

    pairs: GroupPairs
    missing: tuple[MissingCounts, MissingCounts]
    different: tuple[str, ...] = ()
    unchecked: int = 0


def pair_groups(
    base: Mapping[GroupKey, Group], other: Mapping[GroupKey, Group], *, whatever_data: bool = False
) -> Pairing:
    """Pair the groups of two runs, in the order of the second; with `whatever_data`, of other data too."""
    there, here = _by_sample(base), _by_sample(other)
    keys: list[tuple[GroupKey, GroupKey]] = []
    different: list[str] = []
    unpaired, unchecked = [0, 0], 0
    for sample in here:
        if sample not in there:
            continue
        earlier = {key: base[key] for key in there[sample]}
        later = {key: other[key] for key in here[sample]}
        first = earlier[there[sample][0]], later[here[sample][0]]
        if _data_differ(*first):
            different.append(sample)
            if not whatever_data:
                continue
        unchecked += not all(map(_digest, first))
        of_sample = list(_pairs_of_sample(there[sample], here[sample]))
        keys += of_sample
        found = [_shared_probes(earlier[before], later[after]) for before, after in of_sample]
        for side, groups in enumerate((earlier, later)):
            unpaired[side] += sum(map(len, groups.values())) - sum(len(pair[side]) for pair in found)
    return Pairing(
        pairs=GroupPairs(base, other, keys),
        missing=(
            MissingCounts(len(here.keys() - there.keys()), unpaired[1]),
            MissingCounts(len(there.keys() - here.keys()), unpaired[0]),
        ),
        different=tuple(different),
        unchecked=unchecked,
    )


def probe_pairs(pair: GroupPair) -> Iterator[tuple[Outcome, Outcome]]:
    """The answers to the same probe in two runs.

    Yields:
        The answers of the base and of the other run, by variant and draw; two groups of one probe each
        with different variants give one pair, larger ones none.
    """
    yield from paired_answers(pair.base.outcomes, pair.other.outcomes)


def paired_answers(base: Sequence[Outcome], other: Sequence[Outcome]) -> Iterator[tuple[Outcome, Outcome]]:
    """The answers to the same probe, as `probe_pairs` finds them, in the order of the other run."""
    earlier = {_probe(outcome): outcome for outcome in base}
    matched = [(earlier[_probe(outcome)], outcome) for outcome in other if _probe(outcome) in earlier]
    if not matched and len(base) == len(other) == 1:
        matched = [(base[0], other[0])]
    yield from matched


def _by_sample(keys: Iterable[GroupKey]) -> dict[str, list[GroupKey]]:
    by_sample: defaultdict[str, list[GroupKey]] = defaultdict(list)
    for key in keys:
        by_sample[key[0]].append(key)
    return dict(by_sample)


def _pairs_of_sample(
    base: Sequence[GroupKey], other: Sequence[GroupKey]
) -> Iterator[tuple[GroupKey, GroupKey]]:
    equal = {*base} & {*other}
    rest = [[key for key in keys if key not in equal] for keys in (base, other)]
    for key in other:
        same_draw = [[one for one in side if one[1] == key[1]] for side in rest]
        if key in equal:
            yield key, key
        elif [len(side) for side in same_draw] == [1, 1]:
            yield same_draw[0][0], key


def _shared_probes(base: Group, other: Group) -> GroupPair:
    shared = {_probe(outcome) for outcome in base} & {_probe(outcome) for outcome in other}
    if not shared:
        return GroupPair(base, other)
    kept = (
        replace(group, outcomes=tuple(outcome for outcome in group if _probe(outcome) in shared))
        for group in (base, other)
    )
    return GroupPair(*kept)


def _data_differ(base: Group, other: Group) -> bool:
    """Whether the sample differs: by its digest, or by its cluster, if both runs could read it.

    Clusters that are digests of images say nothing if the digests of the sample hold all its images: the
    first image of a group depends on the order of its lines.
    """
    digests = _digest(base), _digest(other)
    clusters = {base.cluster, other.cluster}
    readable = not any(cluster.startswith("file ") for cluster in clusters)
    first_images = hold_images(*digests) and all(map(IMAGE_DIGEST.fullmatch, clusters))
    return not may_be_equal(*digests) or (readable and len(clusters) > 1 and not first_images)


def _digest(group: Group) -> str:
    return group.outcomes[0].sample_digest


def _probe(outcome: Outcome) -> tuple[str, int]:
    return outcome.variant, outcome.draw


# -- Whether two digests may be of the same sample


def may_be_equal(first: str, second: str) -> bool:
    """Whether two samples have equal texts and images, as far as both digests say.

    >>> may_be_equal("a-1", "a"), may_be_equal("a-1", "a-2"), may_be_equal("", "a-2")
    (True, False, True)
    """
    parts = zip(first.split(BETWEEN_PARTS), second.split(BETWEEN_PARTS), strict=False)
    return all(one == other or not (one and other) for one, other in parts)


def hold_images(first: str, second: str) -> bool:
    """Whether two samples have images that both digests hold, so that no other sign of them is needed."""
    return BETWEEN_PARTS in first and BETWEEN_PARTS in second
