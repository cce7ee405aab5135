"""Which groups and probes of two runs belong together.

Two groups are a pair if they have the same sample, the same draw, and pool the draws of the same variant or
of none. Groups that differ in what they pool are a pair if they are the only ones of their sample and draw.
Of a pair, the probes count that both groups hold, by variant and draw. If they share none, because their
settings name the variants differently, the whole groups are compared.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, overload

from msgspec import Struct
from msgspec.structs import replace

from sightline.plan.sample_digest import hold_images, may_be_equal
from sightline.types import Group, GroupKey, Outcome

_IMAGE = re.compile("[0-9a-f]{64}")
"""A cluster that is the digest of an image."""


class GroupPair(NamedTuple):
    """The same group in two runs, reduced to the probes that both hold."""

    base: Group
    other: Group


class GroupPairs(Sequence[GroupPair]):
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
        """The number of pairs."""
        return len(self._keys)

    @overload
    def __getitem__(self, place: int) -> GroupPair: ...
    @overload
    def __getitem__(self, place: slice) -> GroupPairs: ...
    def __getitem__(self, place: int | slice) -> GroupPair | GroupPairs:
        """Read a pair, or choose some."""
        if isinstance(place, slice):
            return GroupPairs(self._base, self._other, self._keys[place])
        base, other = self._keys[place]
        return _shared_probes(self._base[base], self._other[other])


class MissingCounts(Struct, frozen=True):
    """What one run misses of the other: `samples`, and `probes` of the samples that both hold."""

    samples: int = 0
    probes: int = 0


class Pairing(Struct, frozen=True):
    """The groups that two runs share.

    `missing` is what the base run misses, then what the other run misses. `different` names the samples whose
    data differ between the runs. `unchecked` counts those of which a run of an earlier version holds no
    digest.
    """

    pairs: GroupPairs
    missing: tuple[MissingCounts, MissingCounts]
    different: tuple[str, ...] = ()
    unchecked: int = 0


def pair_groups(base: Mapping[GroupKey, Group], other: Mapping[GroupKey, Group]) -> Pairing:
    """Pair the groups of two runs, in the order of the second."""
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
    earlier = {_probe(outcome): outcome for outcome in pair.base}
    matched = [(earlier[_probe(outcome)], outcome) for outcome in pair.other if _probe(outcome) in earlier]
    if not matched and len(pair.base) == len(pair.other) == 1:
        matched = [(pair.base.outcomes[0], pair.other.outcomes[0])]
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
    first_images = hold_images(*digests) and all(map(_IMAGE.fullmatch, clusters))
    return not may_be_equal(*digests) or (readable and len(clusters) > 1 and not first_images)


def _digest(group: Group) -> str:
    return group.outcomes[0].sample_digest


def _probe(outcome: Outcome) -> tuple[str, int]:
    return outcome.variant, outcome.draw
