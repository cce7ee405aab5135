"""Detects answers that name the mask and not what it hides: its colour, its shape, its lines.

MM-R3 4.3.1 and A.9.3: models that a mask misleads answer 'a green square' or 'a white rectangular shape with
horizontal lines'. `sightline.scoring.multiple_choice.is_refusal` detects refusals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise

from sightline.scoring.quantities import colours
from sightline.scoring.text import FUNCTION_WORDS, lexicon, words
from sightline.types import Labels

_SHAPES: Mapping[str, frozenset[str]] = {
    "rectangle": lexicon("rectangle rectangles rectangular square squares quadrilateral"),
    "ellipse": lexicon("ellipse ellipses elliptical oval ovals circle circles circular disc disk round"),
}
_THINGS: Mapping[str, frozenset[str]] = {
    "rectangle": lexicon("box boxes block blocks patch bar bars panel"),
    "ellipse": lexicon("dot spot blob ball"),
}
"""Words that mean a shape only after the mask's colour or 'solid': 'a green box'."""

_SOLID = lexicon("solid plain coloured colored")
_COLOURS = lexicon("red blue green yellow white black")
_LINES = re.compile(r"lines?|stripes?|bands?|bars?")
_LINE_WORDS = lexicon("horizontal parallel straight alternating") | _COLOURS | _SOLID
_STRIPED = lexicon("striped stripey stripy")


def named_properties(response: str, labels: Labels) -> dict[str, bool]:
    """Which properties of its mask a response names.

    Args:
        response: The response.
        labels: The labels of the probe; a mask has `colour`, `shape` and `lines`.

    Returns:
        Whether the response names it, by the metric's name (`names_colour` ...), for the labels that exist.
    """
    properties = {"colour": names_colour, "shape": names_shape, "lines": names_lines}
    return {
        f"names_{label}": names(response, value)
        for label, names in properties.items()
        if isinstance(value := labels.get(label), str)
    }


def names_colour(response: str, colour: str) -> bool:
    """Check whether an answer contains the colour of a mask as a word.

    An object that really has that colour counts as well, so compare the shares of different colours.

    >>> names_colour("There is a green square.", "green"), names_colour("There is a greenhouse.", "green")
    (True, False)

    Args:
        response: The response.
        colour: The colour of the mask.

    Returns:
        Whether the response names it.
    """
    return colour.lower() in colours(response)


def names_shape(response: str, shape: str) -> bool:
    """Check whether an answer names the shape of a mask.

    >>> names_shape("The masked region is a square.", "rectangle"), names_shape("a green box", "rectangle")
    (True, True)
    >>> names_shape("The masked region is a square.", "ellipse"), names_shape("a box of pizza", "rectangle")
    (False, False)

    Args:
        response: The response.
        shape: 'rectangle' or 'ellipse'.

    Returns:
        Whether the response names it.
    """
    tokens = words(response)
    things, shapes = _THINGS.get(shape, frozenset()), _SHAPES.get(shape, frozenset({shape.lower()}))
    return bool(shapes & set(tokens)) or any(
        word in things and before in _COLOURS | _SOLID for before, word in pairwise(tokens)
    )


def names_lines(response: str, lines: str) -> bool:
    """Check whether an answer names the lines of a mask: 'horizontal lines', 'white stripes'.

    A mask of one line covers its area without gaps, so there are no lines to name.

    >>> names_lines("a white rectangular shape with horizontal lines", "3"), names_lines("power lines", "3")
    (True, False)
    >>> names_lines("a white shape with horizontal lines", "1")
    False

    Args:
        response: The response.
        lines: The number of lines of the mask.

    Returns:
        Whether the response names them.
    """
    if lines == "1":
        return False
    tokens = [word for word in words(response) if word not in FUNCTION_WORDS]
    if set(tokens) & _STRIPED or (len(tokens) == 1 and _LINES.fullmatch(tokens[0])):
        return True
    return any(before in _LINE_WORDS and _LINES.fullmatch(word) for before, word in pairwise(tokens))
