"""The statements of a free answer: which commit themselves, which decline, and which one counts."""

from __future__ import annotations

import re
from collections.abc import Callable

from sightline.scoring.short_texts import cached_for_short_texts
from sightline.scoring.text import FUNCTION_WORDS, lexicon, respelled, sentences, stem, words

OPEN = "?"
"""The reading of a statement that leaves the question open: it declines, or names options without
choosing."""

NEGATIONS = lexicon("not no never neither nor none nobody nothing hardly unlikely impossible unable")
"""Words that negate a statement (after the cues of the *SEM 2012 shared task on negation)."""

NAMES_NOTHING = lexicon("none nobody nothing neither nor either both")
"""The pronouns that, as a whole answer, choose nothing."""

AUXILIARIES = lexicon(
    """am is are was were be been do does did has have had
    will would shall should can could may might must"""
)
"""The forms of be, have and do, and the modals."""

_EXCLUDES = re.compile(
    r"\b(?:except(?:ing)?|excluding|apart from|other than|aside from|besides|outside(?: of)?"
    r"|(?:the )?opposite(?: of| to)|(?:anything|everything|everyone|all|nothing) but)\b"
)
_TURN = re.compile(
    r"[;,]?\s+(?:but|however|nevertheless)\b[\s,]*|,\s+(?:while|whereas)\b|;\s*", re.IGNORECASE
)
_LEAD_IN = re.compile(
    r"^\W*(?:(?:based (?:up)?on|given|according to|considering|looking at|judging (?:by|from)|assuming"
    r"|from|in|as"
    r"|since|because|with|under|by|if|when|so|therefore|thus|hence|well|ok|okay|sure|finally|overall"
    r"|(?:my |the )?(?:\w+ )?answer(?: is| would be)?)\b[^,;:]*[,:]\s*)+",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\s*(?:[.!?;…]\s*)+\bor\b", re.IGNORECASE)
_PUT_ASIDE = re.compile(r"\b(?:rather than|instead of|as opposed to)\b[^.,;!?]*", re.IGNORECASE)
_CONCLUDES = re.compile(r"^\W*(?:so|therefore|thus|hence|overall|in (?:conclusion|summary)|finally)\b")
_ANNOUNCES = re.compile(r"\banswer\W+(?:\w+\W+){0,2}?(?:is|be)\b|\banswer\W*:")


def excludes(statement: str) -> bool:
    """Whether a statement names something only to exclude it ('any day except Monday', 'the opposite of up').

    >>> excludes("It is anything but red."), excludes("Red, but pale.")
    (True, False)
    """
    return bool(_EXCLUDES.search(" ".join(words(statement))))


@cached_for_short_texts
def statements(answer: str) -> tuple[str, ...]:
    """The statements of an answer: its sentences, split at 'but' or 'whereas', without 'rather than ...'.

    A sentence that begins with 'or' belongs to the one before it.

    >>> statements("It is not up but down. Down rather than up")
    ('It is not up', 'down.', 'Down ')
    """
    remaining = (_PUT_ASIDE.sub("", sentence) for sentence in sentences(_ALTERNATIVE.sub(", or", answer)))
    return tuple(part for sentence in remaining for part in _TURN.split(sentence) if words(part))


def without_lead_in(answer: str) -> str:
    """An answer without the clauses that only lead to it ('Based on the context, ...', 'So, ...').

    >>> without_lead_in("Given the image, so: Eight."), without_lead_in("In the car")
    ('Eight.', 'In the car')
    """
    rest = _LEAD_IN.sub("", answer)
    return rest if words(rest) else answer


def announced(answer: str) -> str | None:
    """The last statement that announces itself as the answer ('The answer is ...', 'Answer: ...').

    Returns:
        The statement; None if there is none.
    """
    parts = [part for part in statements(answer) if _ANNOUNCES.search(respelled(part))]
    return parts[-1] if parts else None


def settle(answer: str, read: Callable[[str], str | None], about: frozenset[str] = frozenset()) -> str | None:
    """Combine the readings of the statements of an answer.

    The announced statement decides if there is one. Otherwise all statements must agree. A later statement
    that is not open replaces an open one. If statements differ, the last one decides if it concludes ('So
    ...') or is a bare word, unless the answer began with a bare word; otherwise those that name what the
    question is about, if they agree.

    Args:
        read: Reads one statement; None if it says nothing.

    Returns:
        The reading; None if no statement says anything or they contradict each other.
    """
    final = announced(answer)
    if final and (reading := read(final)) is not None:
        return reading
    parts = statements(answer)
    parts = parts[parts.index(final) + 1 :] if final else parts
    readings = [(part, reading) for part in parts if (reading := read(part)) is not None]
    while len(readings) > 1 and readings[0][1] == OPEN:
        readings = readings[1:]
    if not readings:
        return None
    last, reading = readings[-1]
    if len({reading for _, reading in readings}) == 1:
        return reading
    if (_CONCLUDES.search(respelled(last)) or _is_bare(last)) and not _is_bare(readings[0][0]):
        return reading
    named = {reading for part, reading in readings if about & set(map(stem, words(part)))}
    return named.pop() if len(named) == 1 else None


def denials(text: str) -> int:
    """Count the negations in a text.

    >>> denials("It is not impossible.")
    2
    """
    return sum(word in NEGATIONS for word in words(text))


def _is_bare(statement: str) -> bool:
    """Whether a statement is a word or phrase of up to three content words, such as 'Left.'"""
    parts = words(statement)
    return sum(word not in FUNCTION_WORDS for word in parts) <= 3 and not AUXILIARIES & set(parts)
