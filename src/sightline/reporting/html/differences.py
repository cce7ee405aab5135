"""Marks the words in which the responses of a group differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec import Struct

MOST_WORDS = 250
"""The words of a response that are compared; later ones are not marked."""

_SPLIT = re.compile(r"\s+|[^\s]+")


class Piece(Struct, frozen=True):
    """A part of a response; `marked` if the other responses do not have it."""

    text: str
    marked: bool = False


def mark_differences(responses: Sequence[str]) -> list[tuple[Piece, ...]]:
    """Mark the words that are not common to all responses.

    Responses without a common word, and a single response, have no marks: there is nothing to compare.

    >>> mark_differences(["It is east.", "It is west."])[0]
    (Piece(text='It is ', marked=False), Piece(text='east.', marked=True))
    """
    split = [_SPLIT.findall(response) for response in responses]
    words = [[_plain(token) for token in tokens if not token.isspace()][:MOST_WORDS] for tokens in split]
    common = words[0] if words else []
    for other in words[1:]:
        common = [common[at] for at in sorted(_matched(common, other))]
    if len(responses) < 2 or not common:
        return [(Piece(response),) for response in responses]
    return [_pieces(tokens, _matched(own, common)) for tokens, own in zip(split, words, strict=True)]


def _matched(words: Sequence[str], others: Sequence[str]) -> set[int]:
    """The places of the words that are also in others, in the same order."""
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    return {place for block in blocks for place in range(block.a, block.a + block.size)}


def _pieces(tokens: Sequence[str], common: set[int]) -> tuple[Piece, ...]:
    """Join tokens to pieces; the space between two marked words is marked."""
    pieces: list[Piece] = []
    number = -1
    for token in tokens:
        number += not token.isspace()
        marked = not token.isspace() and number not in common and number < MOST_WORDS
        if marked and len(pieces) > 1 and pieces[-1].text.isspace() and pieces[-2].marked:
            space = pieces.pop().text
            pieces[-1] = Piece(pieces[-1].text + space + token, True)
        elif pieces and pieces[-1].marked == marked and not (token.isspace() and marked):
            pieces[-1] = Piece(pieces[-1].text + token, marked)
        else:
            pieces.append(Piece(token, marked))
    return tuple(pieces)


def _plain(word: str) -> str:
    """A word without its case and the punctuation around it."""
    return word.casefold().strip(".,;:!?\"'()[]*`") or word
