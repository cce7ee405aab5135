"""The offline judge of ConTextual: compares a response with a short reference, word by word."""

from __future__ import annotations

import re
from itertools import pairwise

from sightline.scoring.non_answers import declines, is_refusal
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.text import (
    FUNCTION_WORDS,
    NEGATIONS,
    NUMBER_WORDS,
    lexicon,
    respelled,
    statements,
    ungrouped,
    words,
)

SHORT = 5
"""The most words of a reference that rules decide on; a longer one can be phrased in too many ways."""

REACH = 60
"""The most characters before a number in which rules look for what compares it."""

_ASIDE = re.compile(r"\([^)]*\)?")
_CURRENCY = "$€£¥₹₩₽¢"
_SPELLINGS = tuple(
    (re.compile(pattern), spelling)
    for pattern, spelling in (
        (r"\u2212|\b(?:minus|negative)\s+(?=\d)", "-"),
        (r"(?<=\d)\s*(?:%|per\s?cent\b)", "%"),
        (r"(\d(?:[\d.]*\d)?)\s*dollars?\b", r"$\1"),
        (rf"(\d(?:[\d.]*\d)?)\s*([{_CURRENCY}])", r"\2\1"),
        (rf"(?<=[{_CURRENCY}])\s+(?=\d)", ""),
    )
)
_WORD = re.compile(
    rf"(?:(?<![\w)])[-±])?(?:[{_CURRENCY}](?=\d))?"
    r"[^\W_]+(?:(?<=\d)[.:–-](?=\d)[^\W_]+|/[^\W_]+)*(?:%|[-+#]+(?!\w))?"
)
_NUMBER = re.compile(rf"[-±]?[{_CURRENCY}]?\d")

_COUNT = rf"(?<!\w)(?:[-±]?[{_CURRENCY}]?\d(?:[\w.:,%]*[\w%])?|(?:{'|'.join(sorted(NUMBER_WORDS))})\b)"
"""A number in figures or a word."""

_UNIT = r"(?:[^\W\d_]+\.?\s+)?"
_SIGN = r"[<>≤≥⩽⩾≦≧≲≳≠~≈≅≃±∓≪≫]"
_BETWEEN = r"(?:to|through|thru|until|till|by|times|x|plus|minus|point|[-–—…/^+×*÷]|\.\.+)"
_BOUND = r"(?:at (?:the )?(?:least|most)|min(?:imum)?\b\.?|max(?:imum)?\b\.?)"
_SCALE = "(?:hundred|thousand|million|billion|trillion|dozen|ten|lakh|crore|grand)"
_PARTED = "(?:feet|foot|ft|(?:hour|hr|minute|min|pound|lb|dollar|year|month|week|day)s?)"
"""Units that a smaller unit may follow: '5 feet 6 inches'."""

_BEFORE = re.compile(
    rf"(?:\b(?:\w+er than|(?:more|less|other|rather|worse) than|or equal to|{_BOUND}(?: of)?|up to|over|under"
    r"|above|below|beyond|exceed(?:s|ed|ing)?|within|past|before|after|until|till|by|between|from|starting at"
    r"|(?:close|near|next) to|nearly|almost|about|around|approximately|approx\.?|roughly|circa|ca\.?|some"
    r"|barely|hardly|times|half|twice|thrice|double|triple|quadruple|plus|minus|square(?: root)? of"
    rf"|(?:quarter|half) to|{_SCALE}(?: and)?)(?: (?:of|the|an?|just|only|about|total|half|another))*"
    rf"|\bbetween\s+{_COUNT}\s+{_UNIT}and|{_COUNT}\s*{_UNIT}{_BETWEEN}|{_COUNT}"
    rf"|{_SIGN}|[<>]\s*=|(?<![\w.])\.(?!\s)|\d,(?!\s)|\bx|[×÷])\s*\Z"
)
"""What ends before a number that is compared, multiplied, a part of another, or the end of a range."""

_AFTER = re.compile(
    rf"\s*(?:{_SIGN}|-?{_SCALE}s?\b|(?:k|m|b|mn|bn|tn|x|times)\b|-?(?:fold|ish)\b|[‰‱]|,\d|[×*^÷']\s*\d"
    rf"|(?<=\s){_COUNT}|{_UNIT}{_BETWEEN}\s*{_COUNT}|\+(?!\w)|(?:squared|cubed|to the power)\b"
    rf"|{_PARTED}\b,?\s*(?:and )?{_COUNT}"
    r"|and (?:an? |one |three |two )?(?:half|halves|quarters?|thirds?|tenths?)\b"
    rf"|{_UNIT}(?:(?:or|and) (?:so|more|less|up|thereabouts|beyond|above|over|under|below|\w+er|upwards?)\b"
    rf"|{_BOUND}|(?:upwards?|onwards?|plus)\b|(?:more|less|fewer) than\b))"
)
"""What begins after such a number."""

_DOUBT_WORDS = lexicon("or either whether could may might maybe perhaps possibly")
_ORDERED = re.compile(r"[<>→]|\w\s*:\s")


def read_acceptance(reference: str, response: str) -> tuple[RuleVerdict, str, str]:
    """Decide whether a response says what a reference of up to five words says, by which rule and words.

    Right: statements of the response contain every number and content word of the reference as whole words
    (WH97, A/C, -5, 10%, $500 and C# are one word each), in any case. Each number is followed by the same word
    as in the reference; otherwise the order does not matter. A number that is compared, multiplied or the end
    of a range ('more than 10', '10 million', '10 to 12') is another number. Statements that negate, or that
    leave open what the reference does not (a question, 'either', 'could be'), do not count.

    Wrong: the response is empty or declines to answer.

    Undecided: everything else. This includes a refusal that contains the words of the reference, and a
    reference that negates, whose order matters ('X > Y', 'X: Y'), or that has no such word.

    >>> read_acceptance("WA and MS", "It is above 30 % in MS and in WA.")[0]
    'right'
    >>> read_acceptance("WA and MS", "I'm sorry, I can't read it.")[0], read_acceptance("16", "Number 61.")[0]
    ('wrong', 'undecided')
    """
    if not response.strip():
        return "wrong", "empty", ""
    expected = _key_words(reference)
    short = len(reference.split()) <= SHORT
    comparable = bool(expected) and short and not _has_structure(reference, expected)
    if is_refusal(response) or _only_declines(response):
        if comparable and set(expected) <= set(_key_words(response)):
            return "undecided", "declines, with the words of the reference", response
        return "wrong", "declines", response
    if not comparable:
        return "undecided", "the reference is too long, or has no words to compare", response
    stated = _key_words(_statements(reference, response))
    if _contains(stated, expected):
        return "right", "states the words of the reference", " ".join(expected)
    missing = [word for word in dict.fromkeys(expected) if word not in stated]
    return "undecided", f"does not state: {' '.join(missing or expected)}", response


def _has_structure(reference: str, key_words: tuple[str, ...]) -> bool:
    """Whether a reference means more than its words: an order, an assignment, a negation."""
    return bool(_ORDERED.search(reference) or NEGATIONS & set(key_words))


def _contains(stated: tuple[str, ...], expected: tuple[str, ...]) -> bool:
    counts = {(word, following) for word, following in pairwise(expected) if _is_number(word)}
    return set(expected) <= set(stated) and counts <= set(pairwise(stated))


def _key_words(text: str) -> tuple[str, ...]:
    """The numbers and content words of a text in their order."""
    text = respelled(ungrouped(text))
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    found = (_in_context(text, word) for word in _WORD.finditer(text))
    return tuple(word for word in found if word in NUMBER_WORDS or word not in FUNCTION_WORDS)


def _in_context(text: str, word: re.Match[str]) -> str:
    """A word; a number with what makes it another number: '10 million', 'more than 10', '10 to 12'."""
    if not _is_number(word[0]):
        return word[0]
    before = _BEFORE.search(text, max(0, word.start() - REACH), word.start())
    after = _AFTER.match(text, word.end())
    parts = [word[0], *(" ".join(found[0].split()) for found in (before, after) if found)]
    return " | ".join(parts)


def _is_number(word: str) -> bool:
    return bool(_NUMBER.match(word)) or word in NUMBER_WORDS


def _statements(reference: str, response: str) -> str:
    allowed = _doubts(reference)
    return " | ".join(
        one for one in statements(response) if not NEGATIONS & set(words(one)) and _doubts(one) <= allowed
    )


def _doubts(text: str) -> set[str]:
    """The signs of a question, a choice or a guess in a text."""
    return {word for word in words(text) if word in _DOUBT_WORDS} | ({"?"} & set(text))


def _only_declines(response: str) -> bool:
    """Whether all statements of a response decline to answer, apart from text in parentheses."""
    stated = statements(_ASIDE.sub("", response))
    return bool(stated) and all(map(declines, stated))
