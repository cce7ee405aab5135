"""The offline judge of CODIS: an answer against its ground truth, by rules that leave doubt undecided."""

from __future__ import annotations

import re
from typing import Literal

from sightline.scoring.offered_choice import chosen_option
from sightline.scoring.offered_options import offer_of
from sightline.scoring.polarity import asks_yes_or_no, explicit, said_yes_or_no
from sightline.scoring.quantities import allowed_times, colours, numbers, on_the_dial, times_of_day
from sightline.scoring.statements import OPEN, announced, declines, denials, excludes, statements
from sightline.scoring.text import answer_part, content, words

Judgement = Literal["right", "wrong", "undecided"]

_WEIGHS = frozenset({"or", "either", "both"})
_FULL_DAY = re.compile(r"\b24(?:-| )?h(?:ou)?rs?\b", re.IGNORECASE)


_OFF_THE_TIME = re.compile(r"\b(?:before|after|until)\s+\d", re.IGNORECASE)
"""A time that another one is reckoned from: '10 minutes before 7:23'."""

_RELATIONS = frozenset({"before", "after", "near", "beside", "behind"})


def judge_by_rules(question: str, reference: str, output: str) -> Judgement:
    """Whether the answer part of an output agrees with the ground truth of a question (CODIS, 4.2).

    Words are compared whole. An answer that declines ('it cannot be determined') or names the options side
    by side is wrong, since every ground truth is definite; so is an empty one. What is in doubt (it takes
    a synonym, contradicts itself, breaks off) is undecided.

    >>> judge_by_rules("Is it going up or down?", "Up.", "The cabin is rising, so:\\nIt goes upwards")
    'right'
    >>> judge_by_rules("Does it run clockwise or counterclockwise?", "Clockwise.", "Counterclockwise.")
    'wrong'
    """
    answer = answer_part(output)
    if not words(answer):
        return "wrong"
    if words(answer) == words(reference):
        return "right"
    if allowed := allowed_times(reference):
        return _judge_time(question, allowed, answer)
    given, expected = reading(question, answer), reading(question, reference)
    if expected is None and explicit(reference):
        given, expected = said_yes_or_no(question, answer), explicit(reference)
    if given == OPEN:
        return "wrong"
    if given is not None and expected is not None:
        return "right" if given == expected else "wrong"
    if offer_of(question) is not None and expected is not None:
        return "undecided"
    return _judge_words(reference, answer)


def reading(question: str, answer: str) -> str | None:
    """What an answer says to a question that offers options or asks yes or no: the option's words, 'yes' or
    'no', OPEN where it leaves the question open; None where that is in doubt or the question is another.
    """
    if offer_of(question) is not None:
        return chosen_option(question, answer)
    return said_yes_or_no(question, answer) if asks_yes_or_no(question) else None


def times_given(question: str, answer: str) -> frozenset[int]:
    """The times of day in an answer, in minutes: after midnight where the question asks for the 24-hour
    form, else as on the face of a clock."""
    given = times_of_day(answer)
    return given if _FULL_DAY.search(question) else on_the_dial(given)


def _judge_time(question: str, allowed: frozenset[int], answer: str) -> Judgement:
    said = announced(answer) or answer
    given = times_given(question, said)
    if given and _OFF_THE_TIME.search(said):
        return "undecided"
    if not given:
        return "wrong" if declines(answer) else "undecided"
    if not _FULL_DAY.search(question):
        allowed = on_the_dial(allowed)
    if given <= allowed:
        return "right"
    return "undecided" if given & allowed else "wrong"


def _judge_words(reference: str, answer: str) -> Judgement:
    """For a free question: the reference's words in the answer, or one other number or colour than its."""
    final = announced(answer) or answer
    said = statements(final)
    if any(map(declines, said)):
        return "wrong"
    answer = " ".join(said)
    weighs = bool(_WEIGHS & set(words(answer))) or excludes(final) or _relates(reference, answer)
    if denials(reference) != denials(answer) or weighs:
        return "undecided"
    for kind in (numbers, colours):
        expected, given = kind(reference), kind(answer)
        if len(expected) == 1 and len(content(reference)) <= 1 and given:
            return "undecided" if len(given) > 1 else "right" if given == expected else "wrong"
    wanted, told = content(reference), content(answer)
    if sorted(wanted) == sorted(told):
        return "right" if wanted == told else "wrong"
    starts = range(len(told) - len(wanted) + 1)
    return "right" if wanted and any(told[i : i + len(wanted)] == wanted for i in starts) else "undecided"


def _relates(reference: str, answer: str) -> bool:
    """Whether an answer speaks of something by way of the reference: 'the day after', 'Tom's brother'."""
    told, wanted = words(answer), words(reference)
    if _RELATIONS & set(told) - set(wanted):
        return True
    return any(re.search(rf"\b{re.escape(word)}['’]s\b", answer, re.IGNORECASE) for word in wanted)
