"""Whether two outputs mean the same, by rules: the offline equality judge of CODIS (4.2, Tables 3 and 4)."""

from __future__ import annotations

from sightline.benchmarks.codis.rules import Judgement, reading, times_given
from sightline.scoring.quantities import NUMBER_WORDS, numbers
from sightline.scoring.statements import OPEN, declines, denials
from sightline.scoring.text import FUNCTION_WORDS, answer_part, content, stem, words

SAME_FROM = 0.6
"""The overlap of content words (Dice, 0 to 1) from which two free answers count as the same in meaning."""


def same_meaning_by_rules(question: str, first: str, second: str) -> Judgement:
    """Whether the answer parts of two outputs mean the same: right is same, wrong is different.

    Compared is what they answer: the option chosen, yes or no, the time; two that leave the question open
    are the same. Where that cannot be read, similarity decides; for want of an embedding model it is
    lexical: the overlap of content words beyond the question's own, as many denials in both, and where all
    words are the same their order. Undecided where an answer has no content words, or where only one of two
    similar ones can be read.

    >>> same_meaning_by_rules("Is it going up or down?", "Upwards.", "It is going up.")
    'right'
    >>> same_meaning_by_rules("Is it legal?", "It is legal.", "No.")
    'wrong'
    """
    one, other = answer_part(first), answer_part(second)
    if words(one) == words(other):
        return "right"
    if not words(one) or not words(other):
        return "wrong"
    gists = _gist(question, one), _gist(question, other)
    if None not in gists:
        return "right" if gists[0] == gists[1] else "wrong"
    if not (alike := _alike(question, one, other)):
        return "undecided" if alike is None else "wrong"
    return "right" if gists == (None, None) else "undecided"


def _gist(question: str, answer: str) -> str | frozenset[int] | None:
    """What an answer comes to where rules can read it: a choice, yes or no, OPEN, or times of day."""
    return reading(question, answer) or times_given(question, answer) or (OPEN if declines(answer) else None)


def _alike(question: str, first: str, second: str) -> bool | None:
    """Whether two answers are lexically similar; None where one has no content words."""
    one, other = _own_matter(question, first), _own_matter(question, second)
    if not one or not other:
        return None
    if sorted(content(first)) == sorted(content(second)):
        return content(first) == content(second)
    overlap = 2 * len(one & other) / (len(one) + len(other))
    return overlap >= SAME_FROM and denials(first) == denials(second)


def _own_matter(question: str, answer: str) -> frozenset[str]:
    """The stems and numbers of an answer that the question does not hold already; all if it holds all."""
    plain = [word for word in words(answer) if word not in FUNCTION_WORDS | NUMBER_WORDS]
    told = {stem(word) for word in plain} | {f"{number:g}" for number in numbers(answer)}
    return frozenset(told - set(content(question)) or told)
