"""Draws that hold as much of every kind as the whole does, to one (ConTextual, Appendix C)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random


def proportional(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """How many of `count` fall to each of these sizes, by largest remainders; of equal ones, the first.

    >>> proportional({"natural": 156, "time": 50, "web": 50}, 50)
    {'natural': 30, 'time': 10, 'web': 10}
    """
    whole = sum(sizes.values())
    shares = {name: divmod(size * count, whole) for name, size in sizes.items()}
    left = count - sum(sure for sure, _ in shares.values())
    more = sorted(shares, key=lambda name: -shares[name][1])[:left]
    return {name: sure + (name in more) for name, (sure, _) in shares.items()}


def draw_places(kinds: Sequence[str], count: int, random: Random) -> list[int]:
    """The places, in their order, of `count` that are drawn of things of these kinds, in proportion to them.

    `count` is at most the number of things; the same state of `random` draws the same.
    """
    members: dict[str, list[int]] = defaultdict(list)
    for place, kind in enumerate(kinds):
        members[kind].append(place)
    parts = proportional({kind: len(members[kind]) for kind in sorted(members)}, count)
    return sorted(place for kind, part in parts.items() for place in random.sample(members[kind], part))
