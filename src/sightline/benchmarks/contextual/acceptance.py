"""The offline judge of ConTextual: a response against a short reference, by whole words."""

from __future__ import annotations

import re
from itertools import pairwise

from sightline.benchmarks.codis.rules import Judgement
from sightline.scoring.containment import ungrouped
from sightline.scoring.multiple_choice import is_refusal
from sightline.scoring.quantities import NUMBER_WORDS
from sightline.scoring.statements import NEGATIONS, declines, statements
from sightline.scoring.text import FUNCTION_WORDS, lexicon, respelled, words

SHORT = 5
"""Words of a reference up to which rules decide; longer ones say the same in too many ways."""

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
_LEAVES_OPEN = lexicon("or either whether could may might maybe perhaps possibly")
_ORDERED = re.compile(r"[<>→]|\w\s*:\s")


def accept_by_rules(reference: str, response: str) -> Judgement:
    """Whether a response says what a reference of up to five words says.

    Right where every number and content word of the reference stands in the response as a whole word (WH97,
    A/C, -5, 10%, $500 and C# are one each), case aside, in a statement that denies nothing and leaves nothing
    open that the reference does not (a question, 'either', 'could be'), and behind each number the word that
    follows it in the reference; else their order is not looked at. Wrong where the response is empty or
    declines to answer, whatever the reference. All else is undecided: what a refusal names of the reference
    too, and what is held against a reference that denies, that says by its order what belongs where
    ('X > Y', 'X: Y'), or that has no such word.

    >>> accept_by_rules("WA and MS", "It is above 30 % in MS and in WA.")
    'right'
    >>> accept_by_rules("WA and MS", "I'm sorry, I can't read it."), accept_by_rules("16", "Number 61.")
    ('wrong', 'undecided')
    """
    if not response.strip():
        return "wrong"
    wanted = _matter(reference)
    short = len(reference.split()) <= SHORT
    compared = bool(wanted) and short and not _says_more(reference, wanted)
    if is_refusal(response) or _only_declines(response):
        return "undecided" if compared and set(wanted) <= set(_matter(response)) else "wrong"
    return "right" if compared and _told(wanted, _matter(_stated(reference, response))) else "undecided"


def _says_more(reference: str, wanted: tuple[str, ...]) -> bool:
    """Whether a reference says more than its words do: an order, what belongs to what, a denial."""
    return bool(_ORDERED.search(reference) or NEGATIONS & set(wanted))


def _told(wanted: tuple[str, ...], said: tuple[str, ...]) -> bool:
    counted = {(word, following) for word, following in pairwise(wanted) if _is_number(word)}
    return set(wanted) <= set(said) and counted <= set(pairwise(said))


def _matter(text: str) -> tuple[str, ...]:
    """The numbers and content words of a text, in its order."""
    text = respelled(ungrouped(text))
    for pattern, spelling in _SPELLINGS:
        text = pattern.sub(spelling, text)
    found = _WORD.findall(text)
    return tuple(word for word in found if word in NUMBER_WORDS or word not in FUNCTION_WORDS)


def _is_number(word: str) -> bool:
    return bool(_NUMBER.match(word)) or word in NUMBER_WORDS


def _stated(reference: str, response: str) -> str:
    """The statements of a response that deny nothing, and leave nothing open that the reference does not."""
    known = _doubts(reference)
    return " ".join(
        said for said in statements(response) if not NEGATIONS & set(words(said)) and _doubts(said) <= known
    )


def _doubts(text: str) -> set[str]:
    """What in a text keeps it from stating what it says: the signs of a question, a choice, a guess."""
    return {word for word in words(text) if word in _LEAVES_OPEN} | ({"?"} & set(text))


def _only_declines(response: str) -> bool:
    """Whether a response says that it cannot be answered, and nothing else but in parentheses."""
    said = statements(_ASIDE.sub("", response))
    return bool(said) and all(map(declines, said))
