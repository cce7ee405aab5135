"""The offline judge of ConTextual: a response against a short reference, by whole words."""

from __future__ import annotations

import re

from sightline.scoring.containment import ungrouped
from sightline.scoring.options import is_refusal
from sightline.scoring.quantities import NUMBER_WORDS
from sightline.scoring.rules import Judgement
from sightline.scoring.statements import NEGATIONS, declines, statements
from sightline.scoring.text import FUNCTION_WORDS, words

_ASIDE = re.compile(r"\([^)]*\)?")

SHORT = 5
"""Words of a reference up to which rules decide; longer ones say the same in too many ways."""


def accept_by_rules(reference: str, response: str) -> Judgement:
    """Whether a response says what a reference of up to five words says.

    Right where every number and content word of the reference stands in the response as a whole word, case
    aside; their order is not looked at. Wrong where the response is empty or declines to answer, whatever the
    length of the reference. All else is undecided: what a refusal names of the reference too, and what is
    held against a reference without any such word.

    >>> accept_by_rules("WA and MS", "It is above 30 % in MS and in WA.")
    'right'
    >>> accept_by_rules("WA and MS", "I'm sorry, I can't read it."), accept_by_rules("16", "Number 61.")
    ('wrong', 'undecided')
    """
    if not response.strip():
        return "wrong"
    wanted = _matter(reference)
    short = len(reference.split()) <= SHORT and not wanted <= NEGATIONS
    told = short and wanted <= frozenset(words(ungrouped(response)))
    if is_refusal(response) or _only_declines(response):
        return "undecided" if told else "wrong"
    return "right" if told else "undecided"


def _matter(reference: str) -> frozenset[str]:
    """The numbers and content words of a reference."""
    said = words(ungrouped(reference))
    return frozenset(word for word in said if word in NUMBER_WORDS or word not in FUNCTION_WORDS)


def _only_declines(response: str) -> bool:
    """Whether a response says that it cannot be answered, and nothing else but in parentheses."""
    said = statements(_ASIDE.sub("", response))
    return bool(said) and all(map(declines, said))
