"""The letters of options: what a reference names, and the same option in another order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from sightline.scoring.text import in_one_spelling
from sightline.types import LETTERS


def lettered(options: Sequence[str]) -> list[str]:
    """The options as a prompt lists them: '(A) red'; one after Z has no letter, and is left out."""
    return [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]


def letter_at(position: int | None) -> str | None:
    return None if position is None or position >= len(LETTERS) else LETTERS[position]


def named_option(position: int, options: Sequence[str]) -> str:
    """The letter of an option; of one after Z its text."""
    return LETTERS[position] if position < len(LETTERS) else options[position]


def are_listed(options: Sequence[str], text: str) -> bool:
    """Whether a text holds each of the options."""
    shown = text.casefold()
    return all(option.strip().casefold() in shown for option in options)


def are_shown(options: Sequence[str], prompt: str) -> bool:
    """Whether a prompt shows its options; yes and no need not be shown."""
    if are_listed(options, prompt):
        return True
    from sightline.scoring.mentions import Options  # compiles for as long as a small run takes

    return len(Options(options).sides) == len(options)


def right_positions(references: Iterable[str], options: Sequence[str]) -> frozenset[int]:
    """The positions of the right options, from 0.

    A reference is a letter, otherwise the text of an option as it is written, otherwise in another spelling.
    """
    texts = [option.strip() for option in options]
    right: set[int] = set()
    for reference in map(str.strip, references):
        by_letter = position_of_letter(reference, texts)
        right.update(positions_of_text(reference, texts) if by_letter is None else [by_letter])
    return frozenset(right)


def position_of_letter(reference: str, options: Sequence[str]) -> int | None:
    position = LETTERS.find(reference) if len(reference) == 1 else -1
    return position if 0 <= position < len(options) else None


def positions_of_text(reference: str, texts: Sequence[str]) -> list[int]:
    if reference in texts:
        return [texts.index(reference)]
    sought = in_one_spelling(reference)
    return [position for position, text in enumerate(texts) if in_one_spelling(text) == sought]


def carry_letter(letter: str | None, source: Sequence[str], target: Sequence[str]) -> str | None:
    """The letter of an option in another order of the same options.

    Options correspond by equal text (equal texts in their order), then by texts that differ only in case and
    occur once on each side, then by elimination if one is left: some texts were edited after the release.

    Args:
        letter: The letter in `source`, A-Z, or None.

    Returns:
        The letter in `target`; None if the letter names no option, or one without a counterpart or a letter.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    >>> carry_letter("A", ["Rain", "sun", "fog"], ["fog", "rain", "Sun"])
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
    left = Counter(text.casefold() for text, same in zip(source, positions, strict=True) if same is None)
    there = Counter(target[position].casefold() for position in free)
    for number, text in enumerate(source):
        if positions[number] is None and left[text.casefold()] == there[text.casefold()] == 1:
            positions[number] = next(one for one in free if target[one].casefold() == text.casefold())
    free = [position for position in free if position not in positions]
    if len(free) == 1 and positions.count(None) == 1:
        positions[positions.index(None)] = free[0]
    return positions
