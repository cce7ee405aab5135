"""The area of an image that text covers: the quadrilaterals that OCR found, rotated ones included."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sightline.models.ocr import Word

STRIPS = 16
"""Strips between two corners in which the covered length is measured. It is exact for upright boxes, and for
rotated ones that do not overlap."""

Quads = NDArray[np.float64]
"""Corners of quadrilaterals in order, shape (words, 4, 2): x and y in pixels."""


def word_area(word: Word) -> float:
    """The area of the quadrilateral of a word.

    Returns:
        Square pixels.

    >>> word_area(Word("tilted", (0, 0, 10, 10), 1, ((5, 0), (10, 5), (5, 10), (0, 5))))
    50.0
    """
    x, y = np.array(word.quad).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def text_share(words: Iterable[Word], width: int, height: int) -> float:
    """The share of an image's area that the quadrilaterals of its words cover; overlaps count once.

    Args:
        words: The words, with corners in pixels.
        width, height: The image's size in pixels.

    >>> text_share([Word("a", (0, 0, 5, 10), 1), Word("b", (0, 5, 10, 10), 1)], 10, 10)
    0.75
    >>> text_share([Word("tilted", (0, 0, 10, 10), 1, ((5, 0), (10, 5), (5, 10), (0, 5)))], 10, 10)
    0.5
    """
    quads = np.array([word.quad for word in words], dtype=np.float64).reshape(-1, 4, 2)
    quads = np.clip(quads, 0, (width, height))
    corners = np.unique(quads[..., 1])
    if len(corners) < 2:
        return 0.0
    heights = np.repeat(np.diff(corners) / STRIPS, STRIPS)
    steps = (np.arange(STRIPS) + 0.5) / STRIPS
    rows = (corners[:-1, None] + np.diff(corners)[:, None] * steps).ravel()
    return float(heights @ _covered_lengths(*_intervals(quads, rows))) / (width * height)


def _intervals(quads: Quads, rows: NDArray[np.float64]) -> tuple[Quads, Quads]:
    """Both ends of each quadrilateral on each row, shape (rows, words); 0 and 0 where it is absent."""
    left = np.full((len(rows), len(quads)), np.inf)
    right = np.full((len(rows), len(quads)), -np.inf)
    for corner in range(4):
        (x0, y0), (x1, y1) = quads[:, corner].T, quads[:, (corner + 1) % 4].T
        crosses = (np.minimum(y0, y1) <= rows[:, None]) & (rows[:, None] < np.maximum(y0, y1))
        slope = np.divide(x1 - x0, y1 - y0, out=np.zeros_like(x0), where=y1 != y0)
        x = x0 + (rows[:, None] - y0) * slope
        left = np.where(crosses, np.minimum(left, x), left)
        right = np.where(crosses, np.maximum(right, x), right)
    absent = left > right
    return np.where(absent, 0, left), np.where(absent, 0, right)


def _covered_lengths(left: Quads, right: Quads) -> NDArray[np.float64]:
    """The length of the union of the intervals of each row."""
    order = np.argsort(left, axis=1)
    left, right = np.take_along_axis(left, order, 1), np.take_along_axis(right, order, 1)
    before = np.maximum.accumulate(right, axis=1)
    before = np.hstack([np.zeros((len(left), 1)), before[:, :-1]])
    length: NDArray[np.float64] = np.maximum(0, right - np.maximum(left, before)).sum(axis=1)
    return length
