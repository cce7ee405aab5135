"""The options that a question itself offers: 'Is it going up or down?' offers 'up' and 'down'."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

from sightline.scoring.text import FUNCTION_WORDS, lexicon, sentences, stem, words

DETERMINERS = lexicon("a an the my your his her its our their")
PLACES = lexicon("in on at of to from by with under over inside outside into onto towards toward")

_POINTERS = frozenset({"it", "them", "him"})
_PARTICLES = lexicon("up down off out away back")
_LEADS = PLACES | _PARTICLES
_ASKS = lexicon("what which who whose whom when where why how")

Words = tuple[str, ...]


class OfferedOption(Struct, frozen=True):
    """An option that a question offers."""

    words: Words
    phrase: Words
    keys: frozenset[str]
    apart: Words


class Offer(Struct, frozen=True):
    """The options of a question, two or more, and its other words."""

    options: tuple[OfferedOption, ...]
    about: frozenset[str]
    aside: frozenset[str]
    pairs: frozenset[tuple[str, str]]


@lru_cache(maxsize=2048)
def offer_of(question: str) -> Offer | None:
    """The options that a question offers with 'or'; None if it offers none.

    >>> [" ".join(option.words) for option in offer_of("Which way, east, west, south or north?").options]
    ['east', 'west', 'south', 'north']
    >>> [" ".join(option.words) for option in offer_of("Am I putting on or taking off my hat?").options]
    ['putting on', 'taking off']
    """
    asked = sentences(question)
    at = max((i for i, sentence in enumerate(asked) if " or " in sentence.casefold()), default=None)
    if at is None:
        return None
    phrases, before, after = _parted([words(part) for part in asked[at].split(",")])
    if len(phrases) < 2:
        return None
    offered = {word for phrase in phrases for word in phrase}
    others = [words(part) for i, sentence in enumerate(asked) if i != at for part in sentence.split(",")]
    beside = [part for part in (*others, *before) if part]
    main = [part for part in beside if part[0] not in PLACES or _ASKS & set(part)]
    about = _offers_matter(main, offered)
    return Offer(
        tuple(_option(phrase, phrases, after) for phrase in phrases),
        about,
        _offers_matter([*beside, after], offered) - about,
        _pairs(beside, offered),
    )


def _parted(parts: list[Words]) -> tuple[list[Words], list[Words], Words]:
    """The words of each option, the parts before them (by commas) and the words after them.

    `parts` are the words of the question between its commas; one of them holds the 'or'.
    """
    at = next(i for i, part in enumerate(parts) if "or" in part)
    before, after = _around_or(parts[at])
    if not after:
        return [], [], ()
    listed, beside = _listed(parts[:at], before or after)
    if not before:
        return [*listed, after], beside, ()
    if listed:
        end = len(before)
        return [*listed, before, after[:end]], beside, after[end:]
    start = _start(before, after)
    end = _end(before[start:], after)
    return [before[start:], after[:end]], [*parts[:at], before[:start]], after[end:]


def _around_or(part: Words) -> tuple[Words, Words]:
    at = len(part) - 1 - part[::-1].index("or")
    after = part[at + 1 :]
    while len(after) > 1 and after[0] in FUNCTION_WORDS - PLACES - DETERMINERS:
        after = after[1:]
    return part[:at], after


def _listed(parts: list[Words], option: Words) -> tuple[list[Words], list[Words]]:
    """The options before the last comma of a list, and the parts before them.

    Each is as long as `option`, the one before the 'or': up to two words, or a place ('on the left').
    There are no options if it is not a list: 'Which side, left or right?' offers two, 'Is it left, right
    or up?' three.
    """
    asks = bool(parts and _ASKS & set(parts[0]))
    long_enough = len(parts) >= (2 if asks else 1) and all(parts)
    size, is_place = len(option), _is_place(option)
    if (
        not long_enough
        or size > (3 if is_place else 2)
        or any(len(part) > max(size, 2) for part in parts[1:])
    ):
        return [], parts
    if is_place and not all(map(_is_place, [parts[0][-size:], *parts[1:]][asks:])):
        return [], parts
    first, *rest = parts
    return (rest, [first]) if asks else ([first[-size:], *rest], [first[:-size]])


def _is_place(option: Words) -> bool:
    """Whether an option is a place in three words: 'in the middle'."""
    return len(option) == 3 and option[0] in PLACES


def _start(before: Words, after: Words) -> int:
    """The start of the first option before 'or': where it runs parallel to the second."""
    alike = [i for i, word in enumerate(before) if _parallel(word, after[0])]
    if alike:
        return max(alike, key=lambda i: (len(set(before[i:]) & set(after)), i))
    if after[0] in PLACES and (leads := [i for i, word in enumerate(before) if word in PLACES]):
        return leads[-1]
    start = len(before) - 1
    if start and before[start] in _PARTICLES and after[1:2] and after[1] in _PARTICLES:
        return start - 1
    shared = set(map(stem, after)) | FUNCTION_WORDS
    while start and before[start] not in _LEADS and stem(before[start]) in shared:
        start -= 1
    while start and before[start] in PLACES and after[0] not in _LEADS:
        start -= 1
    return start


def _parallel(word: str, other: str) -> bool:
    acts = word.endswith("ing") and other.endswith("ing")
    return word == other or acts or {word, other} <= {"a", "an"}


def _end(first: Words, after: Words) -> int:
    """The end of the second option; the rest follows both ('closing | my bag').

    It has as many words as the first one, and what belongs to its last word ('further away', 'saying
    goodbye').
    """
    end = min(len(first), len(after))
    if end == 1 and after[0].endswith("ing") and after[1:2] and after[1] not in FUNCTION_WORDS:
        end = 2
    while end < len(after) and after[end] in _PARTICLES:
        end += 1
    return end


def _option(phrase: Words, phrases: list[Words], after: Words) -> OfferedOption:
    others = [other for other in phrases if other != phrase]
    shared = after if phrase != phrases[-1] else ()
    rivals = {stem(word) for other in (*others, shared) for word in other}
    apart = tuple(word for word in phrase if stem(word) not in rivals and word not in DETERMINERS - {"a"})
    keys = [word for word in apart if word not in FUNCTION_WORDS]
    if any(_POINTERS & set(other) for other in others):
        named = {word for lead, word in pairwise(phrase) if lead in DETERMINERS}
        keys = [word for word in keys if word not in named] or keys
    if phrase[0].endswith("ing") and phrase[1:2] and phrase[1] in keys and phrase[1] not in _PARTICLES:
        keys = [word for word in keys if word != phrase[0]]  # 'saying goodbye': the noun makes the difference
    return OfferedOption(phrase, _phrase(phrase, others), _with_synonyms(keys, rivals), apart)


def _with_synonyms(keys: list[str], rivals: set[str]) -> frozenset[str]:
    """The stems of the words that name an option, and of what means the same as one of them.

    A synonym counts only if its opposite is a word of another option.
    """
    own = frozenset(map(stem, keys))
    return own.union(*(synonyms(key, rival) - rivals for key in own for rival in rivals))


def _phrase(phrase: Words, others: list[Words]) -> Words:
    """The stems of an option from its first difference to the others; all if only a function word is left."""
    lead = 0
    while lead < len(phrase) and all(other[lead : lead + 1] == phrase[lead : lead + 1] for other in others):
        lead += 1
    if all(word in FUNCTION_WORDS for word in phrase[lead:]):
        return tuple(map(stem, phrase))
    return tuple(stem(word) for word in phrase[lead:] if word not in DETERMINERS)


def _offers_matter(parts: Iterable[Words], offered: set[str]) -> frozenset[str]:
    left_out = FUNCTION_WORDS | offered
    return frozenset(stem(word) for part in parts for word in part if word not in left_out)


def _pairs(parts: Iterable[Words], offered: set[str]) -> frozenset[tuple[str, str]]:
    pairs = (pair for part in parts for pair in pairwise(part))
    return frozenset(pair for pair in pairs if pair[0] in offered and pair[1] not in FUNCTION_WORDS)


# -- Words that exclude each other: pairs of opposites with their synonyms, and values of one kind

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
