"""Layout: what was read in an image as text, in reading order or with every line and column where it was.

ConTextual (Wadhawan et al. 2024, section 3.1) tells a text-only model what stands in an image in both ways,
the second in the manner of the LATIN prompt (Wang et al. 2023): lines in their order, and spaces between the
words of a line, so that what stands below one another in the image does so in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from sightline.models.ocr import Word

WIDEST = 240
"""Characters over which the widest image is spread, so that small type in it costs no endless spaces."""

APART = 2
"""Widths of a character from which on two words of a line are parted by two spaces, as columns are."""

TextLine = tuple[Word, ...]


def lines_of(words: Iterable[Word]) -> list[TextLine]:
    """The words line by line, from top to bottom, and from left to right within a line.

    Two words of which one stands above the other (more than half of the narrower one's width is below or
    above the other) are never in one line, and the higher one's line comes first. Others are in one line
    where, from neighbour to neighbour, the heights of their middles differ by at most half of the mean of
    their own heights: so a line may be slightly tilted. Blank words are left out.
    """
    texts = (replace(word, text=" ".join(word.text.split())) for word in words)
    found = sorted((word for word in texts if word.text), key=_height_and_place)
    below = [
        [n for n in range(m + 1, len(found)) if _in_one_column(one, found[n])] for m, one in enumerate(found)
    ]
    above = Counter(n for lower in below for n in lower)
    left = dict.fromkeys(range(len(found)))
    lines: list[TextLine] = []
    while left:
        # The highest of those that are left has nothing above it; neither may those that join it.
        free = [n for n in left if not above[n]]
        line = [next(iter(left))]
        while followers := [n for n in free if _continues(found[line[-1]], found[n])]:
            line.append(min(followers, key=lambda n: found[n].box[0]))
        while leaders := [n for n in free if _continues(found[n], found[line[0]])]:
            line.insert(0, max(leaders, key=lambda n: found[n].box[0]))
        lines.append(tuple(found[n] for n in line))
        for n in line:
            del left[n]
            above.subtract(below[n])
    return lines


def plain_text(words: Iterable[Word]) -> str:
    """The words in reading order, a space between two of them (Figure 17).

    >>> plain_text([Word("right", (60, 0, 90, 10), 1), Word("below", (0, 20, 30, 30), 1),
    ...             Word("left", (0, 1, 30, 11), 1)])
    'left right below'
    """
    return " ".join(word.text for line in lines_of(words) for word in line)


def layout_text(words: Iterable[Word]) -> str:
    """A line of text for each line, its words where they stand in the image (Figures 18 and 19).

    Words that begin at the same x begin at the same character, and what begins further left by the width of
    a character begins at an earlier one; a space at least parts two words. The left margin is left out.

    >>> print(layout_text([Word("one", (0, 0, 30, 10), 1), Word("two", (60, 1, 90, 11), 1),
    ...                    Word("three", (60, 20, 110, 30), 1)]))
    one   two
          three
    """
    lines = lines_of(words)
    columns = _columns(lines)
    texts = []
    for line in lines:
        text = ""
        for word in line:
            text = text.ljust(columns[word.box[0]]) + word.text
        texts.append(text)
    return "\n".join(texts)


def _columns(lines: Sequence[TextLine]) -> dict[float, int]:
    """The character at which words begin, by the x at which they do.

    It grows with x, by the width of a character where nothing is in the way; where the words further left in
    a line need more room than they have in the image, it and all that follow move to the right.
    """
    before: dict[float, list[tuple[Word, int]]] = {}
    unit = _character_width(lines)
    for line in lines:
        before.setdefault(line[0].box[0], [])
        for word, follower in pairwise(line):
            gap = 1 + (follower.box[0] - word.box[2] >= APART * unit)
            before.setdefault(follower.box[0], []).append((word, len(word.text) + gap))
    columns: dict[float, int] = {}
    margin = anchor = min(before, default=0.0)
    column = 0
    for x, neighbours in sorted(before.items()):
        room = max((columns[word.box[0]] + needed for word, needed in neighbours), default=0)
        # Less than a character apart, they begin at the same x but for how exactly a box is found.
        if x - anchor >= unit or room > column:
            column = max(room, int((x - margin) / unit), column + 1)
            anchor = x
        columns[x] = column
    return columns


def _character_width(lines: Sequence[TextLine]) -> float:
    """The width of a character in pixels: the median over the words, more where that would be too many."""
    words = [word for line in lines for word in line]
    if not words:
        return 1.0
    usual = median((word.box[2] - word.box[0]) / len(word.text) for word in words)
    width = max(word.box[2] for word in words) - min(word.box[0] for word in words)
    return max(usual, width / WIDEST) or 1.0


def _continues(word: Word, follower: Word) -> bool:
    """Whether the second stands to the right of the first, at its height."""
    heights = sum(one.box[3] - one.box[1] for one in (word, follower))
    return (
        word.box[0] < follower.box[0]
        and not _in_one_column(word, follower)
        and abs(_middle(word) - _middle(follower)) <= heights / 4
    )


def _in_one_column(one: Word, other: Word) -> bool:
    """Whether one stands above the other, not beside it: boxes that touch or overlap a little are beside."""
    shared = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    narrower = min(one.box[2] - one.box[0], other.box[2] - other.box[0])
    return one.box[0] == other.box[0] or shared > narrower / 2


def _middle(word: Word) -> float:
    return (word.box[1] + word.box[3]) / 2


def _height_and_place(word: Word) -> tuple[float, float]:
    return _middle(word), word.box[0]
