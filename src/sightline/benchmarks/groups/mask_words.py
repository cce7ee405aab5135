"""Detects answers that name the mask and not what it hides: its colour, its shape, its lines.

MM-R3 4.3.1 and A.9.3: models that a mask misleads answer 'a green square' or 'a white rectangular shape with
horizontal lines'. `sightline.scoring.refusals.is_refusal` detects refusals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from sightline.scoring.quantities import colours
from sightline.scoring.text import FUNCTION_WORDS, lexicon, sentences, words
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
_LINES = lexicon("line lines stripe stripes band bands bar bars strip strips streak streaks")
_STRIPED = lexicon("striped stripey stripy pinstriped")
_SINGULAR = lexicon("line stripe band bar strip streak")
_HIDDEN = lexicon("masked hidden covered same whole entire")
_HOSTS = frozenset().union(*_SHAPES.values()) | lexicon(
    """shape shapes pattern patterns region area mask block blocks patch panel box background surface image
    picture photo object thing something item design texture overlay grid figure section part space field
    color colour spot square bar bars band bands one effect fill screen filter barrier pixels"""
)
"""What lines of a mask are lines of: a shape or the region itself, not an object that has stripes."""
_DESCRIBES_LINES = (
    _COLOURS
    | _SOLID
    | lexicon(
        """horizontal vertical diagonal parallel straight alternating thin thick narrow wide bold long short
    dark light bright pale gray grey brown orange pink purple empty blank evenly spaced even equal several
    multiple many few some two three four five six seven eight nine ten number numerous various
    single opaque colorful colourful different uniform regular continuous simple series set bunch row rows
    group only with""",
    )
)
_PLACES = lexicon("of on across along in over around through")
_NAMES = lexicon(
    """contains contain contained containing has have having shows show showing features feature featuring
    displays display see covered covering filled includes include consists consist composed depicts made
    appears appear looks look like crossed hidden obscured shaped marked painted being both no not
    answer just simply also mostly partially completely"""
)
"""Words between lines and what has them, or that report them."""


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
    return any(
        _names_lines(sentence, place)
        for sentence in map(words, sentences(response))
        for place, word in enumerate(sentence)
        if word in _LINES or word in _STRIPED
    )


def _names_lines(tokens: Sequence[str], place: int) -> bool:
    """Whether the word for lines at this place means lines of a shape or of the region, not of an object."""
    before, after = tokens[:place][::-1], tokens[place + 1 :]
    if tokens[place] in _STRIPED:
        return _first_noun(after, _DESCRIBES_LINES) in _HOSTS | {""} and _host(before) in _HOSTS | {""}
    if before[:1] and before[0] not in _DESCRIBES_LINES | _NAMES | FUNCTION_WORDS:
        return False
    if tokens[place] in _SINGULAR and after and _is_noun(after[0]):
        return False
    of = after[1:] if after and after[0] in _PLACES else ()
    return _first_noun(of, _DESCRIBES_LINES | _HIDDEN) in _HOSTS | {""} and _host(before) in _HOSTS | {""}


def _is_noun(word: str) -> bool:
    """Whether a word after 'bar' may be the noun of a compound: 'bar stool', not 'bar covering'."""
    return word not in FUNCTION_WORDS | _NAMES | _DESCRIBES_LINES | _PLACES and not word.endswith("ing")


def _host(before: Sequence[str]) -> str:
    """The noun before a word for lines: what has them; '' if there is none."""
    return _first_noun(before, _DESCRIBES_LINES | _NAMES)


def _first_noun(tokens: Sequence[str], skipped: frozenset[str]) -> str:
    return next((word for word in tokens if word not in skipped | FUNCTION_WORDS | _LINES), "")
