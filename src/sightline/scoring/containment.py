"""Whether an answer holds a reference, after the post-processing of MM-R3, and when two answers are equal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from sightline.scoring.text import lexicon

Task = Literal["other", "rephrasing", "restyling", "context"]
"""The tasks of MM-R3; `other` for questions of any other kind, which are treated as rephrasing is."""

STOP_WORDS = lexicon("a an the of in is there")
"""What restyling drops from answer and reference before it matches them ('inside of a bus' holds 'inside
bus'): with it 8 of the 11 accuracies of Figure 8 agree, without it 5."""

_PHRASES = re.compile("in the masked region|in the image|of the image")
_WORDS = lexicon("contains is")
_PRINTED = ("the masked region", "there is ", "is ", "contains ", "the ", "in ", "of ", "image")
_SIGNS = str.maketrans("", "", ".,")
_SIGNS_PRINTED = str.maketrans("", "", ".,'")

_SIGN = re.compile(r"[^\w\s]|_")
_ARTICLES = re.compile(r"\b(?:a|an|the) (?=\S)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufe0e\ufe0f\ufeff"))
_MEANT = frozenset("%‰#&@")


def post_process(text: str, task: Task) -> str:
    """What of an answer is compared, by containment and by similarity (MM-R3 A.3).

    Context reasoning drops '.' and ',', the phrases that repeat its question, and 'contains' and 'is';
    the other tasks only lower the case, which all-MiniLM-L6-v2 does not see.

    >>> post_process("In the masked region, there is a sink.", "context")
    'there a sink'
    >>> post_process("A Bus.", "restyling")
    'a bus.'
    """
    text = text.lower()
    if task != "context":
        return text.strip()
    text = _PHRASES.sub("", text.translate(_SIGNS))
    return " ".join(word for word in text.split() if word not in _WORDS)


def post_process_as_printed(text: str, task: Task) -> str:
    """What the paper's own printed examples were computed from, as far as they tell (Figures 7-11).

    Apostrophes are dropped in every task. Context reasoning then drops a longer list of strings, also inside
    words ('in ' of 'basin '), where their case is just this: 'The masked region' stays. So 22 of 22
    similarities of its single-sentence examples agree to 0.15, by the description in A.3 17.

    >>> post_process_as_printed("In the masked region, there is a sink.", "context")
    'In a sink'
    """
    if task != "context":
        return text.replace("'", "")
    text = text.translate(_SIGNS_PRINTED)
    for string in _PRINTED:
        text = text.replace(string, "")
    return " ".join(text.split())


def contains(response: str, references: Iterable[str], task: Task = "other") -> bool:
    """Whether any reference stands in a response as a plain substring, both post-processed (MM-R3 3.3).

    Restyling drops stop words on both sides first. A blank response holds nothing, and a reference that is
    blank, or of which post-processing would leave nothing, is not made to stand in everything.

    >>> contains("Two oranges.", ["apple", "Orange"]), contains("The inside of a bus", ["inside bus"])
    (True, False)
    >>> contains("The inside of a bus", ["inside bus"], "restyling")
    True
    """
    said = _matched(response, task)
    return any(wanted in said for reference in references if (wanted := _wanted(reference, task)))


def normalised(text: str) -> str:
    """An answer for exact comparison: lower case, blanks joined, without punctuation and articles.

    Punctuation inside a number stays (3.5 is not 35; 1,000 is 1000), and so do accents, symbols and emoji.
    '' for a blank text alone: one that is all articles or punctuation keeps them.

    >>> normalised("The Red bus!"), normalised("A"), normalised("don't"), normalised("-3.50 %")
    ('red bus', 'a', 'dont', '-3.50%')
    """
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    plain = " ".join(lowered.translate(_INVISIBLE).replace("\u2212", "-").split())
    signless = " ".join(_SIGN.sub(_kept, ungrouped(plain)).split()).replace(" %", "%")
    return _ARTICLES.sub("", signless) or plain or lowered.strip()


def ungrouped(text: str) -> str:
    """A text whose numbers have no commas between thousands.

    >>> ungrouped("1,250,000, or 1,25")
    '1250000, or 1,25'
    """
    return _THOUSANDS.sub("", text)


def _matched(text: str, task: Task) -> str:
    text = unicodedata.normalize("NFC", post_process(text, task))
    return " ".join(word for word in text.split() if task != "restyling" or word not in STOP_WORDS)


def _wanted(reference: str, task: Task) -> str:
    """The reference as it is looked for; where post-processing leaves nothing of it, as it was written."""
    return _matched(reference, task) or _matched(reference, "other")


def _kept(sign: re.Match[str]) -> str:
    """What becomes of a sign: kept where it is a symbol, stands in a number or is meant as a word ('#1')."""
    mark, text, place = sign[0], sign.string, sign.start()
    is_symbol = mark != "`" and not unicodedata.category(mark).startswith("P")
    before, after = text[max(0, place - 1) : place], text[place + 1 : place + 2]
    leads = mark in "-." and not before.isalnum()
    in_number = after.isdigit() and (before.isdigit() or leads)
    if is_symbol or in_number or mark in _MEANT:
        return mark
    return "" if mark in "'’" else " "
