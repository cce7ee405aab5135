"""Which groups and probes of two runs belong together.

Two groups are a pair if they have the same sample, the same draw, and pool the draws of the same variant or
of none. Groups that differ in what they pool are a pair if they are the only ones of their sample and draw.
Of a pair, the probes count that both groups hold, by variant and draw. If they share none, because their
settings name the variants differently, the whole groups are compared.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

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

    pairs: tuple[GroupPair, ...]
    missing: tuple[MissingCounts, MissingCounts]
    different: tuple[str, ...] = ()
    unchecked: int = 0


def pair_groups(base: Mapping[GroupKey, Group], other: Mapping[GroupKey, Group]) -> Pairing:
    """Pair the groups of two runs, in the order of the second.

    Args:
        base: The groups of the first run by their keys.
        other: The groups of the second run by their keys.

    Returns:
        The pairs, and what could not be paired.
    """
    there, here = _by_sample(base), _by_sample(other)
    pairs: list[GroupPair] = []
    different: list[str] = []
    unpaired, unchecked = [0, 0], 0
    for sample in here:
        if sample not in there:
            continue
        if _data_differ(there[sample][0], here[sample][0]):
            different.append(sample)
            continue
        unchecked += not (_digest(there[sample][0]) and _digest(here[sample][0]))
        found = [_shared_probes(*pair) for pair in _pairs_of_sample(there[sample], here[sample])]
        pairs += found
        for side, groups in enumerate((there[sample], here[sample])):
            unpaired[side] += sum(map(len, groups)) - sum(len(pair[side]) for pair in found)
    return Pairing(
        pairs=tuple(pairs),
        missing=(
            MissingCounts(len(here.keys() - there.keys()), unpaired[1]),
            MissingCounts(len(there.keys() - here.keys()), unpaired[0]),
        ),
        different=tuple(different),
        unchecked=unchecked,
    )


def probe_pairs(pair: GroupPair) -> Iterator[tuple[Outcome, Outcome]]:
    """The answers to the same probe in two runs.

    Args:
        pair: A group in both runs.

    Yields:
        The answers of the base and of the other run, by variant and draw; two groups of one probe each
        with different variants give one pair, larger ones none.
    """
    earlier = {_probe(outcome): outcome for outcome in pair.base}
    matched = [(earlier[_probe(outcome)], outcome) for outcome in pair.other if _probe(outcome) in earlier]
    if not matched and len(pair.base) == len(pair.other) == 1:
        matched = [(pair.base.outcomes[0], pair.other.outcomes[0])]
    yield from matched


def _by_sample(groups: Mapping[GroupKey, Group]) -> dict[str, list[Group]]:
    by_sample: defaultdict[str, list[Group]] = defaultdict(list)
    for group in groups.values():
        by_sample[group.id].append(group)
    return dict(by_sample)


def _pairs_of_sample(base: list[Group], other: list[Group]) -> Iterator[GroupPair]:
    keys = {group.key: group for group in base}
    equal = {group.key for group in other} & keys.keys()
    rest = [[group for group in groups if group.key not in equal] for groups in (base, other)]
    for group in other:
        same_draw = [[one for one in side if one.draw == group.draw] for side in rest]
        if group.key in equal:
            yield GroupPair(keys[group.key], group)
        elif [len(side) for side in same_draw] == [1, 1]:
            yield GroupPair(same_draw[0][0], group)


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
