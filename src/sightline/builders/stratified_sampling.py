"""Stratified samples: each category is drawn in proportion to its size (ConTextual, Appendix C)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random


def proportional(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Divide a sample among categories by largest remainders; the first of equal remainders wins.

    >>> proportional({"natural": 156, "time": 50, "web": 50}, 50)
    {'natural': 30, 'time': 10, 'web': 10}
    """
    total = sum(sizes.values())
    shares = {name: divmod(size * count, total) for name, size in sizes.items()}
    left = count - sum(quotient for quotient, _ in shares.values())
    more = sorted(shares, key=lambda name: -shares[name][1])[:left]
    return {name: quotient + (name in more) for name, (quotient, _) in shares.items()}


def draw_indices(categories: Sequence[str], count: int, random: Random) -> list[int]:
    """Draw a stratified sample."""
    members: dict[str, list[int]] = defaultdict(list)
    for index, category in enumerate(categories):
        members[category].append(index)
    parts = proportional({category: len(members[category]) for category in sorted(members)}, count)
    return sorted(
        index for category, part in parts.items() for index in random.sample(members[category], part)
    )
