"""Layout of OCR text: reading order, or every line and column at its position in the image.

ConTextual (Wadhawan et al. 2024, section 3.1) gives a text-only model the text of an image in both forms,
the second in the manner of the LATIN prompt (Wang et al. 2023): lines in their order, with spaces between
the words of a line, so that columns of the image are columns of the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median

from msgspec.structs import replace

from sightline.models.ocr import Word

WIDEST = 240
"""Characters of the widest line, so that small type does not cause endless spaces."""

APART = 2
"""Gap in character widths from which two words of a line are separated by two spaces, like columns."""

TextLine = tuple[Word, ...]


def lines_of(words: Iterable[Word]) -> list[TextLine]:
    """Group words into lines.

    Two words of which one is above the other (more than half of the narrower one's width is below or above
    the other) are never in one line, and the higher one's line comes first. Other words are in one line
    if, from neighbour to neighbour, the heights of their middles differ by at most half of the mean of
    their own heights, so that a line may be slightly tilted. Blank words are left out.
    """
    texts = (replace(word, text=" ".join(word.text.split())) for word in words)
    ordered = sorted((word for word in texts if word.text), key=_height_and_place)
    below = [
        [n for n in range(m + 1, len(ordered)) if _in_one_column(upper, ordered[n])]
        for m, upper in enumerate(ordered)
    ]
    above = Counter(n for lower in below for n in lower)
    remaining = dict.fromkeys(range(len(ordered)))
    lines: list[TextLine] = []
    while remaining:
        # The highest remaining word has nothing above it; this must hold for the words of its line too.
        free = [n for n in remaining if not above[n]]
        line = [next(iter(remaining))]
        while followers := [n for n in free if _continues(ordered[line[-1]], ordered[n])]:
            line.append(min(followers, key=lambda n: ordered[n].box[0]))
        while leaders := [n for n in free if _continues(ordered[n], ordered[line[0]])]:
            line.insert(0, max(leaders, key=lambda n: ordered[n].box[0]))
        lines.append(tuple(ordered[n] for n in line))
        for n in line:
            del remaining[n]
            above.subtract(below[n])
    return lines


def plain_text(words: Iterable[Word]) -> str:
    """Format words in reading order, separated by spaces (Figure 17).

    >>> plain_text([Word("right", (60, 0, 90, 10), 1), Word("below", (0, 20, 30, 30), 1),
    ...             Word("left", (0, 1, 30, 11), 1)])
    'left right below'
    """
    return " ".join(word.text for line in lines_of(words) for word in line)


def layout_text(words: Iterable[Word]) -> str:
    """Format words at their positions in the image, one line of text for each line (Figures 18 and 19).

    Words that begin at the same x begin at the same character. A word that begins further left by a
    character's width begins at an earlier character. At least one space separates two words. The left
    margin is left out.

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
    """The character at which words begin, by their x.

    It grows with x, one character per character width. If the words further left in a line need more room
    than they have in the image, it and all that follow move to the right.
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
        # Less than a character apart: the same x within the precision of the boxes.
        if x - anchor >= unit or room > column:
            column = max(room, int((x - margin) / unit), column + 1)
            anchor = x
        columns[x] = column
    return columns


def _character_width(lines: Sequence[TextLine]) -> float:
    """Width of a character in pixels: the median over the words, larger if a line would be too long."""
    words = [word for line in lines for word in line]
    if not words:
        return 1.0
    usual = median((word.box[2] - word.box[0]) / len(word.text) for word in words)
    width = max(word.box[2] for word in words) - min(word.box[0] for word in words)
    return max(usual, width / WIDEST) or 1.0


def _continues(word: Word, follower: Word) -> bool:
    """Whether the second word is to the right of the first, at the same height."""
    heights = sum(each.box[3] - each.box[1] for each in (word, follower))
    return (
        word.box[0] < follower.box[0]
        and not _in_one_column(word, follower)
        and abs(_middle(word) - _middle(follower)) <= heights / 4
    )


def _in_one_column(one: Word, other: Word) -> bool:
    """Whether one word is above the other; boxes that touch or overlap a little are side by side."""
    shared = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    narrower = min(one.box[2] - one.box[0], other.box[2] - other.box[0])
    return one.box[0] == other.box[0] or shared > narrower / 2


def _middle(word: Word) -> float:
    return (word.box[1] + word.box[3]) / 2


def _height_and_place(word: Word) -> tuple[float, float]:
    return _middle(word), word.box[0]
