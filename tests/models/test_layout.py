"""Layout: whatever boxes there are, no word is lost and each stands where it stood."""

from __future__ import annotations

import math
import re
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.models.ocr import Word, layout_text, lines_of, plain_text

Box = tuple[float, float, float, float]

BOXES = st.builds(
    lambda x, y, width, height: (x, y, x + width, y + height),
    st.integers(0, 400),
    st.integers(0, 300),
    st.integers(0, 200),
    st.integers(0, 60),
)

FURNITURE = [
    [("Bedroom", 40), ("Hip Bedroom", 420)],
    [("From $99 / month", 40), ("From $109 / month", 420)],
    [("Includes 5 items", 40), ("Includes 5 items", 420)],
    [("Living Room", 40), ("Hip Living Room.", 420)],
    [("$59 / month", 40), ("$79 / month", 420)],
    [("Includes 4 items", 40), ("Includes 4 items", 420)],
]
"""The OCR text of Figures 17 and 18, on places such as the advertisement has."""


def word(text: str, box: Box) -> Word:
    return Word(text, box, 1.0)


def numbered(boxes: list[Box]) -> dict[str, Word]:
    """Words that are told apart by their texts, some of them longer than others."""
    texts = (f"{'long' * (number % 3)}{number}" for number in range(len(boxes)))
    return {text: word(text, box) for text, box in zip(texts, boxes, strict=True)}


def places(text: str) -> dict[str, tuple[int, int]]:
    """Where each word of a text stands: its line and its first character."""
    return {
        found.group(): (number, found.start())
        for number, line in enumerate(text.split("\n"))
        for found in re.finditer(r"\S+", line)
    }


def furniture() -> list[Word]:
    lines = enumerate(FURNITURE)
    return [
        word(text, (x, 30 * number, x + 10 * len(text), 30 * number + 20))
        for number, line in lines
        for text, x in line
    ]


def test_the_papers_example_reads_as_figure_17_prints_it() -> None:
    assert plain_text(reversed(furniture())) == (
        "Bedroom Hip Bedroom From $99 / month From $109 / month Includes 5 items Includes 5 items Living "
        "Room Hip Living Room. $59 / month $79 / month Includes 4 items Includes 4 items"
    )


def test_the_papers_example_has_the_lines_and_columns_of_figure_18() -> None:
    lines = layout_text(furniture()).split("\n")
    assert [re.split(r"\s{2,}", line) for line in lines] == [[text for text, _ in line] for line in FURNITURE]
    assert {line.rindex("  ") + 2 for line in lines} == {38}


@given(st.lists(BOXES, max_size=14))
@example([(0, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0)])
@example([(0, 0, 200, 60), (1, 0, 1, 60), (2, 0, 2, 60)])
@example([(0, 0, 10, 10), (9, 4, 19, 14), (18, 8, 28, 18), (0, 12, 10, 22)])
def test_no_word_is_lost_and_none_covers_another(boxes: list[Box]) -> None:
    words = numbered(boxes)
    assert sorted(places(layout_text(words.values()))) == sorted(words)
    assert sum(map(len, lines_of(words.values()))) == len(boxes)
    assert plain_text(words.values()).split() == layout_text(words.values()).split()


@given(st.lists(BOXES, max_size=14))
def test_order_and_alignment_survive(boxes: list[Box]) -> None:
    words = numbered(boxes)
    at = places(layout_text(words.values()))
    rights = [x1 for _, _, x1, _ in boxes]
    widths = [(one.box[2] - one.box[0]) / len(text) for text, one in words.items()]
    character = max([*widths, (max(rights) - min(x for x, *_ in boxes)) / 240, 1]) if boxes else 1
    for (a, one), (b, other) in combinations(words.items(), 2):
        (first, one), (second, other) = sorted([(a, one), (b, other)], key=lambda pair: pair[1].box[0])
        (upper, left), (lower, right) = at[first], at[second]
        if one.box[0] == other.box[0]:
            assert left == right
        else:
            assert left <= right
        if other.box[0] - one.box[0] >= character:
            assert left < right
        shared = min(one.box[2], other.box[2]) - other.box[0]
        middles = [sum(box[1::2]) for box in (one.box, other.box)]
        if 2 * shared > min(box[2] - box[0] for box in (one.box, other.box)) and middles[0] != middles[1]:
            assert (upper < lower) == (middles[0] < middles[1])
            assert upper != lower


@given(
    st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=8),
    st.data(),
)
def test_a_table_keeps_its_lines_with_cells_missing_and_boxes_off_by_a_little(
    cells: list[list[bool]], data: st.DataObject
) -> None:
    off = st.integers(-3, 3)
    table = [
        [
            word(f"r{row}c{column}", (150 * column + data.draw(off), 40 * row + data.draw(off), 0, 0))
            for column, there in enumerate(line)
            if there
        ]
        for row, line in enumerate(cells)
    ]
    table = [[_sized(one, 60, 24) for one in line] for line in table if line]
    mixed = data.draw(st.permutations([one for line in table for one in line]))
    assert [list(line) for line in lines_of(mixed)] == table
    by_column = {one.text[-1]: set[int]() for line in table for one in line}
    for text, (_, character) in places(layout_text(mixed)).items():
        by_column[text[-1]].add(character)
    assert all(len(characters) == 1 for characters in by_column.values())


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.floats(-2, 2),
    st.booleans(),
)
def test_slightly_tilted_lines_stay_lines(rows: int, columns: int, degrees: float, whole: bool) -> None:
    width = 150 * columns - 30 if whole else 120
    places_of = [(150 * column, 150 * column + width) for column in range(1 if whole else columns)]
    table = [
        [
            word(f"r{row}c{column}", _tilted((left, 40 * row, right, 40 * row + 24), degrees))
            for column, (left, right) in enumerate(places_of)
        ]
        for row in range(rows)
    ]
    assert [list(line) for line in lines_of(one for line in table for one in reversed(line))] == table
    at = places(layout_text(one for line in table for one in line))
    for line in table:
        characters = [at[one.text][1] for one in line]
        assert characters == sorted(set(characters))


def test_what_is_too_long_for_its_box_moves_all_that_follows_to_the_right() -> None:
    small = word("much more than fits", (0, 0, 50, 8))
    beside = word("beside", (55, 0, 115, 10))
    below = word("below", (55, 20, 105, 30))
    left = word("left", (0, 20, 40, 30))
    lines = layout_text([small, beside, left, below]).split("\n")
    assert lines == ["much more than fits beside", "left                below"]


def test_a_tall_word_joins_a_line_near_its_middle() -> None:
    lines = [word(f"line{number}", (0, 30 * number, 50, 30 * number + 20)) for number in range(7)]
    tall = word("TALL", (80, 0, 180, 200))
    assert [len(line) for line in lines_of([tall, *lines])] == [1, 1, 2, 1, 1, 1, 1]


def test_small_type_in_a_wide_image_costs_no_endless_spaces() -> None:
    words = [word("tiny", (0, 0, 4, 2)), word("print", (30_000, 0, 30_005, 2))]
    assert len(layout_text(words)) <= 245


@pytest.mark.parametrize("words", [[], [word(" \n", (0, 0, 9, 9))]])
def test_nothing_read_is_no_text(words: list[Word]) -> None:
    assert (lines_of(words), plain_text(words), layout_text(words)) == ([], "", "")


def test_line_breaks_inside_a_word_break_no_line() -> None:
    assert layout_text([word("two\n lines", (0, 0, 90, 30))]) == "two lines"


def _sized(one: Word, width: float, height: float) -> Word:
    x, y, *_ = one.box
    return word(one.text, (x, y, x + width, y + height))


def _tilted(box: Box, degrees: float) -> Box:
    """The upright box around one that is turned about the image's corner."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    corners = [(x * cosine - y * sine, x * sine + y * cosine) for x in box[::2] for y in box[1::2]]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)
