"""Decides by rules whether two outputs mean the same: the offline judge of CODIS 4.2, Tables 3 and 4."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from sightline.benchmarks.codis.rules import claim_of, times_in
from sightline.scoring.non_answers import declines
from sightline.scoring.offered_choice import NEITHER
from sightline.scoring.opposites import relation
from sightline.scoring.quantities import NUMBER_WORDS, colours, numbers
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.statements import OPEN, denials, without_lead_in
from sightline.scoring.text import FUNCTION_WORDS, answer_part, content, joined, lexicon, stem, words

SAME_FROM = 0.6
"""The overlap of content words (Dice, 0 to 1) from which two free answers count as the same in meaning."""

_REPORTS = frozenset(
    map(stem, lexicon("answer think believe guess say appear seem look case context image picture photo"))
)
"""Words that report an answer without being part of it ('I think', 'it looks like')."""

_CHOICE = frozenset({"or", "either"})
_CLAUSE_END = re.compile(r"[,:]\s")


def same_meaning_by_rules(question: str, first: str, second: str) -> RuleVerdict:
    """Decide whether the answer parts of two outputs mean the same.

    A lead-in ('Based on the context, ...') does not count, nor does any other beginning that both answers
    share. The rules then compare the chosen option, yes or no, or the time. Two answers that leave the
    question open mean the same. Otherwise the words count that are not in the question: answers differ if a
    number, a colour or an opposite differs, if they share no word, or if their number of negations or their
    word order differs. Undecided if an answer has no such words, or if only one of two answers to a
    yes/no question can be read.

    >>> same_meaning_by_rules("Is it going up or down?", "Upwards.", "It is going up.")
    'right'
    >>> same_meaning_by_rules("What is it?", "Based on the context, eight.", "Based on the context, two.")
    'wrong'
    """
    one, other = _without_shared_clauses(question, answer_part(first), answer_part(second))
    if words(one) == words(other):
        return "right"
    if not words(one) or not words(other):
        return "wrong"
    claims = _claim(question, one), _claim(question, other)
    if None not in claims and claims != (NEITHER, NEITHER):
        return "right" if claims[0] == claims[1] else "wrong"
    if not (similar := _is_similar(question, one, other)):
        return "undecided" if similar is None or {"yes", "no"} & set(claims) else "wrong"
    return "right" if claims[0] == claims[1] else "undecided"


def _without_shared_clauses(question: str, first: str, second: str) -> tuple[str, str]:
    """Two answers without the clauses with which both begin, unless these already answer the question."""
    ends = [end.end() for end in _CLAUSE_END.finditer(first) if second.startswith(first[: end.end()])]
    shared = ends[-1] if ends else 0
    if not shared or _claim(question, first[:shared]) is not None:
        return first, second
    return first[shared:], second[shared:]


def _claim(question: str, answer: str) -> str | frozenset[int] | None:
    """What an answer claims, if rules can read it: an option, yes or no, OPEN, or times of day."""
    return claim_of(question, answer) or times_in(question, answer) or (OPEN if declines(answer) else None)


def _is_similar(question: str, first: str, second: str) -> bool | None:
    """Whether two answers are lexically similar; None where one has no content words."""
    first, second = without_lead_in(first), without_lead_in(second)
    one, other = _own_words(question, first, second), _own_words(question, second, first)
    if not one or not other:
        return None
    if denials(first) != denials(second) or _offers(first) != _offers(second):
        return False
    if sorted(one) == sorted(other):
        return one == other
    for kind in (numbers, colours):
        values = kind(first), kind(second)
        if all(values) and values[0] != values[1]:
            return False
    return _agree(*_cores(one, other))


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the words in which two answers differ mean the same, or only one of them says more."""
    if not one or not other:
        return True
    related = [[relation(own, there) for there in other] for own in one]
    if any(-1 in row for row in related):
        return False
    shared = sum(1 in row for row in related), sum(1 in column for column in zip(*related, strict=True))
    return sum(shared) / (len(one) + len(other)) >= SAME_FROM


def _cores(one: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Two sequences without the beginning and the end that they share."""
    start = _shared_length(one, other)
    one, other = one[start:], other[start:]
    end = _shared_length(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: relation(*pair) == 1, pairs))


def _offers(answer: str) -> bool:
    return bool(_CHOICE & set(words(answer)))


def _own_words(question: str, answer: str, other: str) -> tuple[str, ...]:
    """The stems and numbers of an answer that are not in the question; all of them if all are in it."""
    plain = [stem(word) for word in joined(words(answer), words(other)) if not _says_nothing(word)]
    found = [*plain, *(f"{number:g}" for number in sorted(numbers(answer)))]
    asked = set(content(question)) | _REPORTS
    return tuple(word for word in found if word not in asked) or tuple(found)


def _says_nothing(word: str) -> bool:
    return word in FUNCTION_WORDS | NUMBER_WORDS or word.isdecimal()
