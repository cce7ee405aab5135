"""The letters of the options of a question, and letters in another order of the same options."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

LETTERS = ascii_uppercase
"""The letters of options in the order shown; options after Z have none."""


def carry_letter(letter: str | None, source: Sequence[str], target: Sequence[str]) -> str | None:
    """The letter of an option in another order of the same options.

    Options correspond by equal text (equal texts in their order), then by elimination if one is left on
    each side: some texts were edited after the release.

    Args:
        letter: The letter in `source`, A-Z, or None.

    Returns:
        The letter in `target`; None if the letter names no option, or one without a counterpart or a letter.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    """
    positions = dict(zip(LETTERS, _positions(source, target), strict=False))
    position = positions.get(letter or "")
    return None if position is None or position >= len(LETTERS) else LETTERS[position]


def _positions(source: Sequence[str], target: Sequence[str]) -> list[int | None]:
    if list(source) == list(target):
        return list(range(len(target)))
    free = list(range(len(target)))
    positions: list[int | None] = []
    for text in source:
        same = next((position for position in free if target[position] == text), None)
        if same is not None:
            free.remove(same)
        positions.append(same)
    if len(free) == 1 and positions.count(None) == 1:
        positions[positions.index(None)] = free[0]
    return positions
