"""What instructions ask for: the verb that each begins with, and its direct noun (ConTextual, Figure 3).

By closed word classes alone (question words, determiners, prepositions and the like), with no language model
to fetch: it reads commands ('List the items that ...': list, item). Questions have no such verb and are
counted apart. The paper does not say which parser it used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from sightline.scoring.statements import AUXILIARIES
from sightline.scoring.text import lexicon


class Order(NamedTuple):
    """The verb of a command, and its direct noun in the singular; '' where it has none."""

    verb: str
    noun: str


class Verbs(Struct, frozen=True):
    """How many instructions are commands and how many are not, how many different verbs these have, and the
    most frequent verbs with their most frequent nouns, each with its number."""

    commands: int
    others: int
    different: int
    top: tuple[tuple[str, int, tuple[tuple[str, int], ...]], ...]


def count_verbs(instructions: Iterable[str], *, verbs: int = 20, nouns: int = 4) -> Verbs:
    """The verbs of instructions, the most frequent `verbs` of them with `nouns` direct nouns each.

    Of equally frequent ones, the first in the alphabet.
    """
    read = [read_order(instruction) for instruction in instructions]
    orders = [order for order in read if order is not None]
    counts = Counter(order.verb for order in orders)
    of_verb = {verb: Counter(o.noun for o in orders if o.verb == verb and o.noun) for verb in counts}
    top = tuple((verb, times, tuple(_most(of_verb[verb], nouns))) for verb, times in _most(counts, verbs))
    return Verbs(len(orders), len(read) - len(orders), len(counts), top)


def read_order(instruction: str) -> Order | None:
    """The verb and the direct noun of a command; None for a question, or where neither is plain.

    >>> read_order("Find out the advertisements with text in two colors.")
    Order(verb='find', noun='advertisement')
    >>> read_order("Which name is the seconds hand pointing to?")
    """
    words = _WORD.findall(instruction.replace("’", "'").lower())
    start = _start(words)
    if start is None:
        return None
    verb, rest = words[start], words[start + 1 :]
    while len(rest) > 1 and rest[0] in _JOINING and rest[1] not in _BEFORE_NOUNS:
        rest = rest[2:]  # 'Group and list the items': the first verb, the common noun
    if rest and rest[0] in _PARTICLES:
        rest = rest[1:]
    return Order(verb, _singular(_head(rest)))


def _start(words: list[str]) -> int | None:
    """The place of a command's verb: the first word, behind words of courtesy or behind a clause."""
    place = 0
    if words and words[0] in _CLAUSES:
        if "," not in words:
            return None
        place = words.index(",") + 1
    if words[place : place + 1] and words[place] in AUXILIARIES and words[place + 1 : place + 2] == ["you"]:
        place += 2
    while place < len(words) and words[place] in _COURTESIES:
        place += 1
    named = place < len(words) and words[place].isalpha() and words[place] not in _NO_VERBS
    return place if named else None


def _head(words: list[str]) -> str:
    """The last word of the noun phrase that the words begin with; '' where they begin with none."""
    head = ""
    for word in words:
        # 'the text written ...', but 'the projected shopping expenditure'
        follows = _is_participle(word, "ed") or (_is_participle(word, "ing") and head[-2:] != "ed")
        if word in _BETWEEN or not word[0].isalnum() or (head and (follows or word in _DETERMINERS)):
            break
        if word[0].isalpha() and word not in _BEFORE_NOUNS and not word.endswith(("'s", "s'", "ly")):
            head = word
    return head


def _is_participle(word: str, ending: str) -> bool:
    """Whether a word seems to be one: 'depicted', but not 'red' or 'speed', 'ring' or 'wing'."""
    longer = word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("eed")
    return longer or (ending == "ed" and word in _PARTICIPLES)


def _singular(noun: str) -> str:
    if noun in _PLURALS:
        return _PLURALS[noun]
    for ending, single in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x")):
        if noun.endswith(ending) and len(noun) > len(ending) + 1:
            return noun.removesuffix(ending) + single
    return noun.removesuffix("s") if not noun.endswith(("ss", "us", "is")) else noun


def _most(counts: Counter[str], most: int) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:most]


_WORD = re.compile(r"[a-z][a-z]*(?:['-][a-z]+|(?<=s)')*|\d[\w.%:]*|[^\s\w]")

_QUESTIONS = lexicon("what which who whom whose when where why how")
_DETERMINERS = lexicon(
    """a an the this that these those my your his her its our their all any both each every either neither
    no some another such"""
)
_QUANTITIES = lexicon(
    """one two three four five six seven eight nine ten many much more most few fewer several other"""
)
_PREPOSITIONS = lexicon(
    """about above across after against along among amongst amid around as at before behind below beneath
    beside besides between beyond by despite during except for from in inside into like near of off on onto
    opposite outside over past per since than through throughout to toward towards under underneath until up
    upon versus via with within without regarding concerning according based given considering using"""
)
_LINKS = lexicon("and or but nor so if whether because while although though unless then not also")
_PRONOUNS = lexicon("i you he she it we they me him us them there here")
_PARTICIPLES = lexicon(
    """written shown drawn seen worn given made held known torn sold hidden spoken built found taken sent born
    met said put kept present visible"""
)
"""Participles, and adjectives that follow their noun, which no ending tells."""

_JOINING = lexicon("and or")
_PARTICLES = lexicon("out up down off")
_COURTESIES = lexicon("please kindly briefly accurately")
_CLAUSES = _PREPOSITIONS | lexicon("if when while")
_BEFORE_NOUNS = _DETERMINERS | _QUANTITIES
_BETWEEN = _QUESTIONS | AUXILIARIES | _PREPOSITIONS | _LINKS | _PRONOUNS
_NO_VERBS = _BETWEEN | _BEFORE_NOUNS

_PLURALS = {
    "men": "man",
    "women": "woman",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
    "series": "series",
    "clothes": "clothes",
    "lens": "lens",
    "movies": "movie",
    "cookies": "cookie",
}
