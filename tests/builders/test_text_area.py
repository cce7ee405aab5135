"""The area that text covers is that of its quadrilaterals, whatever their rotation, each pixel once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.builders.curate import text_share, without_false_words, word_area
from sightline.models.ocr import Point, Word


@given(st.lists(st.tuples(*[st.integers(-3, 23)] * 4), max_size=8), st.integers(1, 20), st.integers(1, 20))
def test_the_text_share_counts_each_pixel_of_any_box_once(
    corners: list[tuple[int, int, int, int]], width: int, height: int
) -> None:
    boxes = [(min(a, c), min(b, d), max(a, c), max(b, d)) for a, b, c, d in corners]
    painted = np.zeros((height, width), dtype=bool)
    for left, top, right, bottom in boxes:
        painted[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = True
    share = text_share([Word("x", box, 1.0) for box in boxes], width, height)
    assert share == pytest.approx(painted.mean())


def rotated(x: float, y: float, width: float, height: float, degrees: float) -> tuple[Point, ...]:
    """The corners of a rectangle that is rotated about its centre."""
    turn = complex(math.cos(math.radians(degrees)), math.sin(math.radians(degrees)))
    around = [complex(a * width / 2, b * height / 2) * turn for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    return tuple((x + one.real, y + one.imag) for one in around)


def word(corners: tuple[Point, ...]) -> Word:
    xs, ys = zip(*corners, strict=True)
    return Word("text", (min(xs), min(ys), max(xs), max(ys)), 1.0, corners)


@pytest.mark.parametrize("degrees", [0, 1, 30, 45, 90, 135, 200])
def test_a_rotation_changes_no_area(degrees: float) -> None:
    line = word(rotated(50, 50, 60, 6, degrees))
    assert word_area(line) == pytest.approx(360)
    assert text_share([line], 100, 100) == pytest.approx(0.036)
    assert text_share([line, line], 100, 100) == pytest.approx(0.036)


def test_crossing_lines_are_counted_once_where_they_cross() -> None:
    one, other = (word(rotated(50, 50, 60, 6, degrees)) for degrees in (45, 135))
    assert text_share([one, other], 100, 100) == pytest.approx(0.072 - 0.0036, rel=0.002)


@given(st.lists(st.tuples(*[st.floats(20, 80)] * 2, *[st.floats(2, 15)] * 2, st.floats(0, 180)), max_size=6))
def test_the_share_is_that_of_the_points_inside(
    rectangles: list[tuple[float, float, float, float, float]],
) -> None:
    xs, ys = np.meshgrid(np.arange(0.25, 100, 0.5), np.arange(0.25, 100, 0.5))
    inside = np.zeros(xs.shape, dtype=bool)
    for x, y, width, height, degrees in rectangles:
        turn = complex(math.cos(math.radians(degrees)), -math.sin(math.radians(degrees)))
        points = ((xs - x) + 1j * (ys - y)) * turn
        inside |= (abs(points.real) <= width / 2) & (abs(points.imag) <= height / 2)
    share = text_share([word(rotated(*one)) for one in rectangles], 100, 100)
    assert share == pytest.approx(inside.mean(), abs=0.003)


def test_a_tilted_line_is_no_large_shape() -> None:
    line = word(rotated(50, 50, 120, 4, 45))
    assert without_false_words([line], 100, 100) == (line,)
