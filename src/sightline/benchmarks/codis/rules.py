"""The offline judge of CODIS: compares an answer with its ground truth by rules."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sightline.scoring.non_answers import declines
from sightline.scoring.offered_choice import chosen_option
from sightline.scoring.offered_options import offer_of
from sightline.scoring.opposites import relation
from sightline.scoring.polarity import asks_yes_or_no, explicit, said_yes_or_no
from sightline.scoring.quantities import (
    NUMBER_WORDS,
    allowed_times,
    colours,
    numbers,
    on_the_dial,
    times_of_day,
)
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.short_texts import cached_for_short_texts
from sightline.scoring.statements import NAMES_NOTHING, OPEN, announced, denials, excludes, statements
from sightline.scoring.text import FUNCTION_WORDS, answer_part, content, is_question, joined, stem, words

_CHOICE_WORDS = frozenset({"or", "either", "both", "neither"})
_FULL_DAY = re.compile(r"\b24(?:-| )?h(?:ou)?rs?\b", re.IGNORECASE)

_TIME_IN_WORDS = re.compile(
    rf"\d|\b(?:{'|'.join(sorted(NUMBER_WORDS))}|half|quarter|noon|midday|midnight|past|o['’]?clock)\b",
    re.IGNORECASE,
)
"""What an answer needs to name a time: figures, or a time in words, which these rules do not read."""

_RELATIVE_TIME = re.compile(r"\b(?:before|after|until)\s+\d", re.IGNORECASE)
"""A time from which another one is computed: '10 minutes before 7:23'."""

_THERE_IS_NO = re.compile(r"\bthere (?:is|are|was|were)(?: no\b|n[’']t\b| not any\b)", re.IGNORECASE)

_RELATIONS = frozenset({"before", "after", "near", "beside", "behind"})


def judge_by_rules(question: str, reference: str, output: str) -> RuleVerdict:
    """Decide whether the answer part of an output agrees with the ground truth (CODIS 4.2).

    Whole words are compared. Every ground truth is definite, so an answer is wrong if it is empty, declines
    ('it cannot be determined') or names several options. It is undecided if it uses a synonym, contradicts
    itself or breaks off.

    >>> judge_by_rules("Is it going up or down?", "Up.", "The cabin is rising, so:\\nIt goes upwards")
    'right'
    >>> judge_by_rules("Does it run clockwise or counterclockwise?", "Clockwise.", "Counterclockwise.")
    'wrong'
    """
    answer = answer_part(output)
    if all(map(is_question, statements(answer))):
        return "wrong"
    if words(answer) == words(reference):
        return "right"
    if allowed := allowed_times(reference):
        return _judge_time(question, allowed, answer)
    claimed, expected = claim_of(question, answer), claim_of(question, reference)
    if expected is None and explicit(reference):
        claimed, expected = said_yes_or_no(question, answer), explicit(reference)
    if claimed == OPEN:
        return "wrong"
    if expected is None:
        return _judge_words(reference, answer)
    return "undecided" if claimed is None else "right" if claimed == expected else "wrong"


@cached_for_short_texts
def claim_of(question: str, answer: str) -> str | None:
    """Read the claim of an answer to a question that offers options or asks yes or no.

    Returns:
        The words of the chosen option, 'yes' or 'no'; OPEN if the answer leaves the question open; None if
        it is unclear or the question is of another kind.
    """
    if offer_of(question) is not None:
        return chosen_option(question, answer)
    if set(words(answer)) <= NAMES_NOTHING:
        return OPEN
    return said_yes_or_no(question, answer) if asks_yes_or_no(question) else None


def times_in(question: str, answer: str) -> frozenset[int]:
    """Read the times of day in an answer."""
    times = times_of_day(answer)
    return times if _FULL_DAY.search(question) else on_the_dial(times)


def _judge_time(question: str, allowed: frozenset[int], answer: str) -> RuleVerdict:
    final = announced(answer) or answer
    times = times_in(question, final)
    if times and _RELATIVE_TIME.search(final):
        return "undecided"
    if not times:
        return "undecided" if _TIME_IN_WORDS.search(final) and not declines(final, question) else "wrong"
    if not _FULL_DAY.search(question):
        allowed = on_the_dial(allowed)
    if times <= allowed:
        return "right"
    return "undecided" if times & allowed else "wrong"


def _judge_words(reference: str, answer: str) -> RuleVerdict:
    """For a free question: the reference's words in the answer, or other words in their place."""
    final = announced(answer) or answer
    stated = statements(final)
    if any(map(declines, stated)) or _names_nothing(final) or _CHOICE_WORDS & set(words(final)):
        return "wrong"
    answer = " ".join(stated)
    if excludes(final) or _relates(reference, answer):
        return "undecided"
    expected_words, words_of_answer = _matter(reference, answer), _matter(answer, reference)
    found = _holds(words_of_answer, expected_words)
    if explicit(final) and not found:
        return "wrong"
    is_other = _is_other(words_of_answer, expected_words)
    if denials(reference) != denials(answer):
        denied = found or bool(_THERE_IS_NO.search(answer)) or (is_other and not denials(answer))
        return "wrong" if denied else "undecided"
    for kind in (numbers, colours):
        expected, named = kind(reference), kind(answer)
        if len(expected) == 1 and len(content(reference)) <= 1 and named:
            return "right" if named == expected else "wrong"
    if sorted(expected_words) == sorted(words_of_answer):
        return "right" if expected_words == words_of_answer else "wrong"
    if found:
        return "right"
    return "wrong" if is_other else "undecided"


def _matter(text: str, other: str) -> tuple[str, ...]:
    """The stems of the content words of a text, with compounds as in the other text."""
    return tuple(stem(word) for word in joined(words(text), words(other)) if word not in FUNCTION_WORDS)


def _holds(tokens: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether stems contain a phrase, word by word or by synonyms."""
    size = len(phrase)
    return bool(phrase) and any(
        all(map(_means, tokens[start : start + size], phrase)) for start in range(len(tokens) - size + 1)
    )


def _is_other(tokens: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether stems name something else: an opposite of an expected word, or no expected word at all."""
    related = [relation(token, word) for token in tokens for word in expected]
    return bool(tokens) and (-1 in related or 1 not in related)


def _means(one: str, other: str) -> bool:
    return relation(one, other) == 1


def _names_nothing(answer: str) -> bool:
    return set(words(answer)) <= NAMES_NOTHING


def _relates(reference: str, answer: str) -> bool:
    """Whether an answer refers to the reference by a relation: 'the day after', 'Tom's brother'."""
    own = words(reference)
    if _RELATIONS & set(words(answer)) - set(own):
        return True
    return any(re.search(rf"\b{re.escape(word)}['’]s\b", answer, re.IGNORECASE) for word in own)
