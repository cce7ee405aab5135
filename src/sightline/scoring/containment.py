"""Whether an answer contains a reference after the post-processing of MM-R3; normalised text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Literal

from sightline.scoring.text import cached_for_short_texts, lexicon

Task = Literal["other", "rephrasing", "restyling", "context"]
"""The tasks of MM-R3; `other` is any other question, treated like rephrasing."""

STOP_WORDS = lexicon("a an the of in is there")
"""The words that restyling drops from answer and reference before matching ('inside of a bus' contains
'inside bus'). With this list 8 of the 11 accuracies of Figure 8 agree, without it 5."""

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
    """The part of an answer that containment and similarity compare (MM-R3 A.3).

    Context reasoning drops '.' and ',', the phrases that repeat its question, and 'contains' and 'is'. The
    other tasks only convert to lower case, which all-MiniLM-L6-v2 ignores.

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
    """The post-processing behind the printed examples of the paper (Figures 7-11).

    It drops apostrophes in every task. Context reasoning then drops a longer list of strings, also inside
    words ('in ' of 'basin '), if the case matches: 'The masked region' stays. With it, 22 of 22
    similarities of the single-sentence examples agree to 0.15; with the description in A.3, 17 do.

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
    """Whether a response contains any reference as a substring, after post-processing (MM-R3 3.3).

    Restyling drops stop words on both sides first. A blank response contains nothing. A reference that is
    blank after post-processing is compared as it was written.

    >>> contains("Two oranges.", ["apple", "Orange"]), contains("The inside of a bus", ["inside bus"])
    (True, False)
    >>> contains("The inside of a bus", ["inside bus"], "restyling")
    True
    """
    text = _matched(response, task)
    return any(part in text for reference in references if (part := _searched(reference, task)))


@cached_for_short_texts
def normalised(text: str) -> str:
    """An answer for exact comparison: lower case, single blanks, no punctuation, no articles.

    Punctuation inside a number stays (3.5 is not 35; 1,000 is 1000), and so do accents, symbols and emoji.

    >>> normalised("The Red bus!"), normalised("A"), normalised("don't"), normalised("-3.50 %")
    ('red bus', 'a', 'dont', '-3.50%')
    """
    lowered = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    plain = " ".join(lowered.translate(_INVISIBLE).replace("\u2212", "-").split())
    signless = plain
    if _SIGN.search(plain):
        signless = " ".join(_SIGN.sub(_replacement, ungrouped(plain)).split()).replace(" %", "%")
    return _ARTICLES.sub("", signless) or plain or lowered.strip()


def ungrouped(text: str) -> str:
    """Remove the commas between thousands from the numbers of a text.

    >>> ungrouped("1,250,000, or 1,25")
    '1250000, or 1,25'
    """
    return _THOUSANDS.sub("", text)


def _matched(text: str, task: Task) -> str:
    text = unicodedata.normalize("NFC", post_process(text, task))
    return " ".join(word for word in text.split() if task != "restyling" or word not in STOP_WORDS)


def _searched(reference: str, task: Task) -> str:
    """The reference after post-processing; as it was written if nothing is left."""
    return _matched(reference, task) or _matched(reference, "other")


def _replacement(sign: re.Match[str]) -> str:
    """The replacement of a sign: itself if it is a symbol, part of a number or meant as a word ('#1')."""
    mark, text, start = sign[0], sign.string, sign.start()
    is_symbol = mark != "`" and not unicodedata.category(mark).startswith("P")
    before, after = text[max(0, start - 1) : start], text[start + 1 : start + 2]
    leads = mark in "-." and not before.isalnum()
    in_number = after.isdigit() and (before.isdigit() or leads)
    if is_symbol or in_number or mark in _MEANT:
        return mark
    return "" if mark in "'’" else " "
