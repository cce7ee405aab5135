"""Decides by rules whether two outputs mean the same: the offline judge of CODIS 4.2, Tables 3 and 4."""

from __future__ import annotations

from sightline.benchmarks.codis.rules import claim_of, times_in
from sightline.scoring.quantities import NUMBER_WORDS, numbers
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.statements import OPEN, declines, denials
from sightline.scoring.text import FUNCTION_WORDS, answer_part, content, stem, words

SAME_FROM = 0.6
"""The overlap of content words (Dice, 0 to 1) from which two free answers count as the same in meaning."""


def same_meaning_by_rules(question: str, first: str, second: str) -> RuleVerdict:
    """Decide whether the answer parts of two outputs mean the same.

    The rules compare the chosen option, yes or no, or the time. Two answers that leave the question open
    mean the same. If the rules cannot read both answers, lexical similarity decides: the overlap of content
    words that are not in the question, the same number of negations, and the word order if all words are the
    same. Undecided if an answer has no content words, or if only one of two similar answers can be read.

    >>> same_meaning_by_rules("Is it going up or down?", "Upwards.", "It is going up.")
    'right'
    >>> same_meaning_by_rules("Is it legal?", "It is legal.", "No.")
    'wrong'

    Args:
        question: The question.
        first: The first output.
        second: The second output.

    Returns:
        'right' for the same meaning, 'wrong' for another, or 'undecided'.
    """
    one, other = answer_part(first), answer_part(second)
    if words(one) == words(other):
        return "right"
    if not words(one) or not words(other):
        return "wrong"
    claims = _claim(question, one), _claim(question, other)
    if None not in claims:
        return "right" if claims[0] == claims[1] else "wrong"
    if not (similar := _is_similar(question, one, other)):
        return "undecided" if similar is None else "wrong"
    return "right" if claims == (None, None) else "undecided"


def _claim(question: str, answer: str) -> str | frozenset[int] | None:
    """What an answer claims, if rules can read it: an option, yes or no, OPEN, or times of day."""
    return claim_of(question, answer) or times_in(question, answer) or (OPEN if declines(answer) else None)


def _is_similar(question: str, first: str, second: str) -> bool | None:
    """Whether two answers are lexically similar; None where one has no content words."""
    one, other = _own_words(question, first), _own_words(question, second)
    if not one or not other:
        return None
    if sorted(content(first)) == sorted(content(second)):
        return content(first) == content(second)
    overlap = 2 * len(one & other) / (len(one) + len(other))
    return overlap >= SAME_FROM and denials(first) == denials(second)


def _own_words(question: str, answer: str) -> frozenset[str]:
    """The stems and numbers of an answer that are not in the question; all of them if all are in it."""
    plain = [word for word in words(answer) if word not in FUNCTION_WORDS | NUMBER_WORDS]
    found = {stem(word) for word in plain} | {f"{number:g}" for number in numbers(answer)}
    return frozenset(found - set(content(question)) or found)
