"""Whether two answers plainly contradict each other, however similar their sentences are."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

from sightline.scoring.containment import ungrouped
from sightline.scoring.non_answers import declines
from sightline.scoring.opposites import OPPOSITES
from sightline.scoring.polarity import explicit
from sightline.scoring.quantities import NUMBER_WORDS, colours, numbers, on_the_dial, times_of_day
from sightline.scoring.statements import NEGATIONS, OPEN, denials, excludes, statements
from sightline.scoring.text import content, lexicon, respelled, words

Kind = Literal["yes/no", "number", "colour", "left/right", "opposite"]

_COMPASS = lexicon("north south east west")

_SIDE_BEFORE = lexicon("the to on its his her their far turn turning turns upper lower top bottom")
_SIDE_AFTER = lexicon("side hand corner of arm foot leg wing lane turn edge end half")
_ANSWER_OPENS = re.compile(r"^\W*(?:yes|yeah|yep|no|nope)\b[\s,;:.!-]*", re.IGNORECASE)
_SCALED = lexicon(
    """hundred thousand million billion trillion dozen half quarter third couple pair several
    hundreds thousands millions billions dozens minus negative percent"""
)
_MEASURE = re.compile(r"\d\s*([a-z%°$€£]+)")
_UNITS = lexicon(
    """mm cm m km in ft yd mi inch inches foot feet yard yards mile miles meter meters metre metres
    centimeter centimeters kilometer kilometers kilometre kilometres s sec second seconds min minute minutes
    h hr hour hours day days week weeks month months year years g kg mg gram grams kilogram kilograms lb lbs
    pound pounds oz ounce ounces ton tons l ml liter liters litre litres dollar dollars euro euros cent cents
    c f degree degrees celsius fahrenheit am pm k b bn"""
)
_DETERMINERS = lexicon("a an the this that one some")


def contradiction(first: str, second: str) -> Kind | None:
    """The kind of word in which two answers contradict each other.

    Each answer must be one statement that neither declines nor excludes its words ('anything but red'),
    and hold exactly one value of the kind: 'red' does not contradict 'red and blue'. In answers with a
    negation only yes and no are compared. Numbers with different units ('60 minutes', '1 hour') are not
    compared.

    Returns:
        The kind; None if they do not plainly contradict each other.

    >>> contradiction("Yes.", "No, it is not."), contradiction("a red bus", "A blue bus.")
    ('yes/no', 'colour')
    >>> contradiction("red", "red and blue"), contradiction("2", "two")
    (None, None)
    """
    if not (_is_plain(first) and _is_plain(second)):
        return None
    stated = explicit(first), explicit(second)
    if OPEN in stated:
        return None
    if None not in stated and stated[0] != stated[1]:
        return "yes/no"
    if stated == (None, None) and _denies_other(first, second):
        return "yes/no"
    one, other = (_ANSWER_OPENS.sub("", text) for text in (first, second))
    if denials(one) or denials(other):
        return None
    for kind, values in _KINDS:
        left, right = values(one), values(other)
        if len(left) == len(right) == 1 and left != right:
            return None if kind == "number" and _measure(one) != _measure(other) else kind
    return "opposite" if _are_opposite(one, other) else None


def _is_plain(text: str) -> bool:
    parts = statements(text)
    return len(parts) == 1 and not declines(parts[0]) and not excludes(parts[0])


def _denies_other(first: str, second: str) -> bool:
    """Whether one answer is the negation of the other: 'it is not red', 'it is red'."""
    stems = [tuple(word for word in content(text) if word not in NEGATIONS) for text in (first, second)]
    return bool(stems[0]) and stems[0] == stems[1] and {denials(first), denials(second)} == {0, 1}


def _times(text: str) -> frozenset[float]:
    """The times of day in a text, in minutes on a 12-hour clock face: 7:23 may be 19:23."""
    return frozenset(map(float, on_the_dial(times_of_day(text))))


def _numbers(text: str) -> frozenset[float]:
    """The number of a text; none if a word scales it, or if 'one' is a pronoun."""
    plain = ungrouped(text)
    tokens = words(plain)
    if _SCALED & set(tokens):
        return frozenset()
    values_found = numbers(plain)
    is_pronoun = "one" in tokens and tokens not in (("one",), ("just", "one"), ("only", "one"))
    return values_found - {1.0} if is_pronoun and "1" not in tokens else values_found


def _measure(text: str) -> str:
    """The unit of the number in a text: 'minutes', '%'."""
    plain = ungrouped(respelled(text))
    figures = _MEASURE.findall(plain)
    if figures:
        return figures[0] if not figures[0].isalpha() or figures[0] in _UNITS else ""
    tokens = words(plain)
    after = [then for word, then in pairwise(tokens) if word in NUMBER_WORDS]
    return after[0] if after and after[0] in _UNITS else ""


def _colours(text: str) -> frozenset[str]:
    """The colours in a text; 'an orange' is a fruit."""
    tokens = words(text)
    fruit = any(
        word == "orange" and place and tokens[place - 1] in _DETERMINERS and place + 1 == len(tokens)
        for place, word in enumerate(tokens)
    )
    return colours(text) - {"orange"} if fruit else colours(text)


def _sides(text: str) -> frozenset[str]:
    """Left and right as sides: not in 'he left' or 'the right answer'."""
    tokens = ("", *words(text), "")
    alone = len(tokens) == 3
    return frozenset(
        word
        for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word in ("left", "right")
        and (alone or after in _SIDE_AFTER or (not after and before in _SIDE_BEFORE))
    )


def _compass(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if word in _COMPASS)


def _are_opposite(first: str, second: str) -> bool:
    """Whether the answers hold words of the two different sides of a pair of opposites."""
    one, other = set(words(first)), set(words(second))
    for pair in OPPOSITES:
        left, right = ([bool(side & held) for side in pair.strict] for held in (one, other))
        if sum(left) == sum(right) == 1 and left != right:
            return True
    return len(_compass(first)) == len(_compass(second)) == 1 and _compass(first) != _compass(second)


_KINDS: tuple[tuple[Kind, Callable[[str], frozenset[str] | frozenset[float]]], ...] = (
    ("number", _times),
    ("number", _numbers),
    ("colour", _colours),
    ("left/right", _sides),
)
