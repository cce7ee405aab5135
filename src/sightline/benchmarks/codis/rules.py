"""The offline judge of CODIS: compares an answer with its ground truth by rules."""

from __future__ import annotations

import re

from sightline.scoring.offered_choice import chosen_option
from sightline.scoring.offered_options import offer_of
from sightline.scoring.polarity import asks_yes_or_no, explicit, said_yes_or_no
from sightline.scoring.quantities import allowed_times, colours, numbers, on_the_dial, times_of_day
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.statements import OPEN, announced, declines, denials, excludes, statements
from sightline.scoring.text import answer_part, content, words

_CHOICE_WORDS = frozenset({"or", "either", "both"})
_FULL_DAY = re.compile(r"\b24(?:-| )?h(?:ou)?rs?\b", re.IGNORECASE)

_RELATIVE_TIME = re.compile(r"\b(?:before|after|until)\s+\d", re.IGNORECASE)
"""A time from which another one is computed: '10 minutes before 7:23'."""

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

    Args:
        question: The question.
        reference: The ground truth.
        output: The model's output.

    Returns:
        The verdict.
    """
    answer = answer_part(output)
    if not words(answer):
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
    if claimed is not None and expected is not None:
        return "right" if claimed == expected else "wrong"
    if offer_of(question) is not None and expected is not None:
        return "undecided"
    return _judge_words(reference, answer)


def claim_of(question: str, answer: str) -> str | None:
    """Read the claim of an answer to a question that offers options or asks yes or no.

    Args:
        question: The question.
        answer: The answer part of an output.

    Returns:
        The words of the chosen option, 'yes' or 'no'; OPEN if the answer leaves the question open; None if
        it is unclear or the question is of another kind.
    """
    if offer_of(question) is not None:
        return chosen_option(question, answer)
    return said_yes_or_no(question, answer) if asks_yes_or_no(question) else None


def times_in(question: str, answer: str) -> frozenset[int]:
    """Read the times of day in an answer.

    Args:
        question: The question; it decides between the 24-hour form and the face of a clock.
        answer: The answer part of an output.

    Returns:
        The times in minutes, after midnight or on the face of a clock.
    """
    times = times_of_day(answer)
    return times if _FULL_DAY.search(question) else on_the_dial(times)


def _judge_time(question: str, allowed: frozenset[int], answer: str) -> RuleVerdict:
    final = announced(answer) or answer
    times = times_in(question, final)
    if times and _RELATIVE_TIME.search(final):
        return "undecided"
    if not times:
        return "wrong" if declines(answer) else "undecided"
    if not _FULL_DAY.search(question):
        allowed = on_the_dial(allowed)
    if times <= allowed:
        return "right"
    return "undecided" if times & allowed else "wrong"


def _judge_words(reference: str, answer: str) -> RuleVerdict:
    """For a free question: the reference's words in the answer, or another single number or colour."""
    final = announced(answer) or answer
    stated = statements(final)
    if any(map(declines, stated)):
        return "wrong"
    answer = " ".join(stated)
    unclear = bool(_CHOICE_WORDS & set(words(answer))) or excludes(final) or _relates(reference, answer)
    if denials(reference) != denials(answer) or unclear:
        return "undecided"
    for kind in (numbers, colours):
        expected, named = kind(reference), kind(answer)
        if len(expected) == 1 and len(content(reference)) <= 1 and named:
            return "undecided" if len(named) > 1 else "right" if named == expected else "wrong"
    expected_words, words_of_answer = content(reference), content(answer)
    if sorted(expected_words) == sorted(words_of_answer):
        return "right" if expected_words == words_of_answer else "wrong"
    length = len(expected_words)
    starts = range(len(words_of_answer) - length + 1)
    found = any(words_of_answer[i : i + length] == expected_words for i in starts)
    return "right" if expected_words and found else "undecided"


def _relates(reference: str, answer: str) -> bool:
    """Whether an answer refers to the reference by a relation: 'the day after', 'Tom's brother'."""
    own = words(reference)
    if _RELATIONS & set(words(answer)) - set(own):
        return True
    return any(re.search(rf"\b{re.escape(word)}['’]s\b", answer, re.IGNORECASE) for word in own)
