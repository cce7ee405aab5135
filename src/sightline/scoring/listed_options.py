"""The option that an answer chooses from the list of its question, by letter or by text (groups files)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from sightline.scoring.containment import normalised
from sightline.scoring.letters import LETTERS
from sightline.types import Outcome

_BARE = re.compile(r"\W*([A-Za-z])\W*")
_LEADING = re.compile(r"\s*(?:\(([A-Za-z])\)|([A-Z])\s*[.):\]])")
_STATED = re.compile(r"(?i:\b(?:answer|option|choice)\b(?:\s+is)?)[\s:：*(\"']*([A-Z])\b")
_IN_PARENTHESES = re.compile(r"\(([A-Za-z])\)")
_STANDING_ALONE = re.compile(r"\b(?!A\s+(?!(?:or|and|is)\b)[a-z]|I\s+[a-z]|I['’])([A-Z])\b(?!['’])")
_NEGATION = re.compile(r"\b(?:not|no|nor|neither|never)\b|n['’]t\b", re.IGNORECASE)


def chosen_letter(response: str, options: Sequence[str]) -> str | None:
    """The letter of the option that a response chooses.

    A response that is the text of an option chooses it. Otherwise the letter counts that the response
    consists of, begins with or states last ('Answer: B'), then the only letter that it names, in parentheses
    or alone; then the only letter of its last line; then the only option whose text it holds without a
    negation.

    Returns:
        The letter, or None if the response chooses no option, or several.

    >>> fruits = ["a red apple", "a green pear"]
    >>> chosen_letter("b)", fruits), chosen_letter("A green pear.", fruits), chosen_letter("Pears?", fruits)
    ('B', 'B', None)
    >>> chosen_letter("(A) is too red. The answer is B.", fruits), chosen_letter("A or B", fruits)
    ('B', None)
    """
    return _chosen_letter(response, tuple(options))


def chosen_option(outcome: Outcome) -> str | None:
    """The text of the option that an answer chooses.

    Returns:
        The normalised text, or None if the answer chooses no option.
    """
    letter = chosen_letter(outcome.response, outcome.options)
    return None if letter is None else normalised(outcome.options[LETTERS.index(letter)])


# The judge, the comparison of answers and the metrics of a group read the same response one after the other.
@lru_cache(maxsize=256)
def _chosen_letter(response: str, options: tuple[str, ...]) -> str | None:
    by_letter = dict(zip(LETTERS, options, strict=False))
    text = normalised(response)
    same = [letter for letter, option in by_letter.items() if text and normalised(option) == text]
    if same:
        return same[0]
    return _named_letter(response, by_letter) or _contained_option(text, response, by_letter)


def _named_letter(response: str, by_letter: Mapping[str, str]) -> str | None:
    if (bare := _BARE.fullmatch(response)) and bare[1].upper() in by_letter:
        return bare[1].upper()
    if stated := [letter for letter in _STATED.findall(response) if letter in by_letter]:
        return str(stated[-1])
    last_line = response.strip().rpartition("\n")[2]
    for part in (response, last_line):
        named = _letters(part, by_letter)
        if len(named) == 1:
            return named.pop()
        leading = _LEADING.match(part)
        if leading and (letter := (leading[1] or leading[2]).upper()) in by_letter and not named - {letter}:
            return letter
    return None


def _letters(text: str, by_letter: Mapping[str, str]) -> set[str]:
    """The letters of options that a text names: those in parentheses, otherwise those that stand alone."""
    found = [letter.upper() for letter in _IN_PARENTHESES.findall(text)] or _STANDING_ALONE.findall(text)
    return {letter for letter in found if letter in by_letter}


def _contained_option(text: str, response: str, by_letter: Mapping[str, str]) -> str | None:
    """The only option whose text the normalised response holds as whole words."""
    if _NEGATION.search(response) or _letters(response, by_letter):
        return None
    texts = {letter: normalised(option) for letter, option in by_letter.items()}
    held = {letter: option for letter, option in texts.items() if option and f" {option} " in f" {text} "}
    # 'a dark red car' holds 'red car' as well: an option within a longer one that is held does not count.
    outermost = {
        option for option in held.values() if not any(option != o and option in o for o in held.values())
    }
    letters = [letter for letter, option in held.items() if option in outermost]
    return letters[0] if len(outermost) == 1 else None
