"""Words that exclude each other: pairs of opposites with their synonyms, and values of one kind."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from sightline.scoring.text import lexicon, stem

_TABLE = """
    above / over : below under beneath underneath
    top upper : bottom lower
    inside indoors indoor : outside outdoors outdoor
    small little tiny smaller smallest : large big huge larger largest bigger biggest
    short shorter shortest : tall taller tallest long longer longest
    open opened opening / unlock unzip ajar : closed shut closing / close lock
    up upward upwards / rise ascend climb lift raise uphill : down downward downwards
        / fall descend drop sink downhill
    empty : full
    hot : cold
    wet : dry
    day daytime : night nighttime
    man male men boy / guy gentleman father son : woman female women girl / lady mother daughter
    true correct / right proper : false incorrect / wrong improper
    before : after
    front / ahead : back rear / behind
    more : less fewer
    clockwise : counterclockwise
    horizontal horizontally : vertical vertically
    / bright light lighten illuminated : / dark dim
    / loud noisy : / soft quiet
    / arrive enter approach come : / leave depart exit
    / toward close near approach : / away recede further farther
    / forward ahead front : / backward backwards reverse
    / extend stretch expand lengthen loosen : / contract shrink compress shorten
    / pull drag : / push
    / put wear don : / off take remove doff
    / put load place insert : / take unload remove out
    / pick lift raise : / put place lower set
    / greet hello hi welcome : / goodbye farewell bye
    / old elderly aged senior : / young youthful
    / festive joyful cheerful celebratory happy merry lively : / solemn serious somber sombre sad mournful
    / fahrenheit : / centigrade celsius
    / offense offence attack offensive : / defense defence defensive
    / crater hole pit depression : / hill mound bump
    / fasten buckle put : / unfasten unbuckle release take off remove
    / increase : / decrease
    / legal lawful allowed permitted permissible : / illegal unlawful forbidden prohibited banned
        illegitimate criminal crime
    / appropriate acceptable proper suitable fine okay ok polite respectful
        : / inappropriate unacceptable improper unsuitable impolite rude offensive disrespectful insulting
        vulgar obscene
    / rude impolite offensive insulting disrespectful : / polite courteous respectful friendly
    / dangerous danger unsafe risky hazardous perilous : / safe harmless
    / rabbit bunny hare :
    / see visible :
    / still stationary stopped motionless static parked : / moving
    / morning dawn sunrise : / afternoon pm
    / common usual normal ordinary typical : / uncommon unusual abnormal strange odd weird rare atypical
    / good excellent great : / bad poor terrible
    / festive : / funeral
"""
"""One pair a line, the two sides apart by ':'. Words before '/' contradict each other in any two answers; the
words after it name the side only where the question asks about this pair."""

_VALUES = """
    left right up down upward downward upwards downwards forward forwards backward backwards
        north south east west northeast northwest southeast southwest above below front back top bottom
        middle center centre rear clockwise counterclockwise straight sideways
    morning afternoon noon midday evening night midnight nighttime
    winter summer spring autumn
    first second third fourth fifth sixth last
    black white red green yellow blue brown purple pink orange grey gray
"""
"""The values of one kind a block: an answer that names one of them does not mean another one."""


_NEGATIVE_PREFIXES = ("un", "in", "im", "il", "ir", "non", "dis")


class Opposites(Struct, frozen=True):
    """A pair of opposites."""

    strict: tuple[frozenset[str], frozenset[str]]
    sides: tuple[frozenset[str], frozenset[str]]


def _opposites(line: str) -> Opposites:
    halves = [side.partition("/")[::2] for side in line.split(":")]
    first, second = ((lexicon(strict), _stems(lexicon(f"{strict} {more}"))) for strict, more in halves)
    return Opposites((first[0], second[0]), (first[1], second[1]))


def _stems(listed: frozenset[str]) -> frozenset[str]:
    """The stems of words and of their inflections: 'enter' and 'entering' have two."""
    return frozenset(stem(word + ending) for word in listed for ending in ("", "s", "ing", "ed"))


def _blocks(table: str) -> list[str]:
    """The entries of a table; a line that is indented further continues the one before it."""
    return table.strip().replace("\n        ", " ").splitlines()


OPPOSITES = tuple(map(_opposites, _blocks(_TABLE)))
"""All pairs of opposites."""

_KINDS = tuple((kind, frozenset(map(stem, kind))) for kind in map(lexicon, _blocks(_VALUES)))


@lru_cache(maxsize=4096)
def synonyms(own: str, other: str) -> frozenset[str]:
    """The stems that name the side of a word in the pairs of opposites that separate it from another word.

    >>> "ascend" in synonyms("up", "down"), synonyms("up", "left")
    (True, frozenset())
    """
    found: set[str] = set()
    for pair in OPPOSITES:
        for side, opposite in (pair.sides, pair.sides[::-1]):
            if own in side and other in opposite:
                found |= side - opposite
    return frozenset(found)


@lru_cache(maxsize=4096)
def relation(own: str, other: str) -> int:
    """Whether two stems mean the same or the opposite.

    >>> relation("unlawful", "forbidden"), relation("legal", "illegal"), relation("red", "blu")
    (1, -1, 0)
    """
    if own == other:
        return 1
    short, long = sorted((own, other), key=len)
    if len(short) > 2 and any(long == prefix + short for prefix in _NEGATIVE_PREFIXES):
        return -1
    found = set()
    for pair in OPPOSITES:
        for side, opposite in (pair.sides, pair.sides[::-1]):
            if own in side - opposite:
                found.add(1 if other in side else -1 if other in opposite else 0)
    found.discard(0)
    return found.pop() if len(found) == 1 else 0


def kind_of(options: Iterable[frozenset[str]]) -> frozenset[str]:
    """The values of the kind that every option of a question names.

    >>> "middle" in kind_of([frozenset({"left"}), frozenset({"right"})])
    True
    """
    named = list(options)
    return next((kind for kind, stems in _KINDS if all(stems & option for option in named)), frozenset())
