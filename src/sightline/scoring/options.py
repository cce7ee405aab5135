"""The option that an answer to a multiple-choice question chose (II-Bench, 4.1 and Appendix E)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase

from sightline.scoring.non_answers import is_refusal
from sightline.scoring.scorer import Reading, flags
from sightline.scoring.text import normalised
from sightline.types import Case, Outcome, VerdictName

# -- The option that an answer chooses from the list of its question, by letter or by text (groups files)

_BARE = re.compile(r"\W*([A-Za-z])\W*")
_LEADING = re.compile(r"\s*(?:\(([A-Za-z])\)|([A-Z])\s*[.):\]])")
_STATED = re.compile(r"(?i:\b(?:answer|option|choice)\b(?:\s+is)?)[\s:：*(\"']*([A-Z])\b")
_LISTED_IN_PARENTHESES = re.compile(r"\(([A-Za-z])\)")
_LISTED_ALONE = re.compile(r"\b(?!A\s+(?!(?:or|and|is)\b)[a-z]|I\s+[a-z]|I['’])([A-Z])\b(?!['’])")
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
    """The normalised text of the option that an answer chooses; None if it chooses none."""
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
    found = [letter.upper() for letter in _LISTED_IN_PARENTHESES.findall(text)] or _LISTED_ALONE.findall(text)
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


# -- The letters of the options of a question, and letters in another order of the same options

LETTERS = ascii_uppercase
"""The letters of options in the order shown; options after Z have none."""


def carry_letter(letter: str | None, source: Sequence[str], target: Sequence[str]) -> str | None:
    """The letter of an option in another order of the same options.

    Options correspond by equal text (equal texts in their order), then by elimination if one is left on
    each side: some texts were edited after the release.

    Args:
        letter: The letter in `source`, A-Z, or None.

    Returns:
        The letter in `target`; None if the letter names no option, or one without a counterpart or a letter.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    """
    positions = dict(zip(LETTERS, _positions(source, target), strict=False))
    position = positions.get(letter or "")
    return None if position is None or position >= len(LETTERS) else LETTERS[position]


def _positions(source: Sequence[str], target: Sequence[str]) -> list[int | None]:
    if list(source) == list(target):
        return list(range(len(target)))
    free = list(range(len(target)))
    positions: list[int | None] = []
    for text in source:
        same = next((position for position in free if target[position] == text), None)
        if same is not None:
            free.remove(same)
        positions.append(same)
    if len(free) == 1 and positions.count(None) == 1:
        positions[positions.index(None)] = free[0]
    return positions


SIX_LETTERS = LETTERS[:6]
"""The letters of a question of II-Bench: it has at most six options, and its script reads no others."""

_IN_PARENTHESES = re.compile(r"\(([A-F])\)")
_STANDING_ALONE = re.compile(r"\b([A-F])\b")
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is)?)\s*[:：]?\s*\(?([A-F])\b\)?")


def extract_released(response: str, options: Sequence[str]) -> str | None:
    """The option that the released evaluation script extracts from a response.

    Letters in parentheses count, otherwise letters that stand alone: the most frequent one, on a tie the
    one that appeared last. Without letters, the last option whose text contains, or is contained in, the
    response.

    Returns:
        The letter; None is a miss.

    >>> extract_released("Not (A) but (B).", ["x"] * 6)
    'B'
    >>> extract_released("BDF", ["x"] * 6) is None
    True
    """
    letters = _IN_PARENTHESES.findall(response) or _STANDING_ALONE.findall(response)
    if not letters:
        letters = [
            letter
            for letter, option in zip(SIX_LETTERS, options, strict=False)
            if option.strip() in response or response in option
        ]
    return _most_frequent(letters)


def extract_strict(response: str, options: Sequence[str]) -> str | None:
    """The option by a stricter rule: the last 'Answer: X', otherwise the only letter that is named.

    Returns the letter; None is a miss.
    """
    stated = _ANSWER_IS.findall(response)
    if stated:
        return str(stated[-1])
    letters = set(_IN_PARENTHESES.findall(response) or _STANDING_ALONE.findall(response))
    return str(letters.pop()) if len(letters) == 1 else None


EXTRACTIONS = {"released": extract_released, "strict": extract_strict}


def read_option(case: Case, extraction: str = "released") -> Reading:
    """Judge the option that an answer chose; a refusal is a flag in `scores`, never the verdict."""
    response = case.texts[0]
    letter = EXTRACTIONS[extraction](response, case.options)
    scores = flags({"refused": is_refusal(response)})
    if letter is None:
        return Reading("miss", scores=scores)
    if not case.references:
        return Reading("unscored", extracted=letter, scores=scores)
    verdict: VerdictName = "right" if letter == case.references[0] else "wrong"
    return Reading(verdict, extracted=letter, scores=scores)


def _most_frequent(letters: Iterable[str]) -> str | None:
    counts = Counter(letters)
    if not counts:
        return None
    most = max(counts.values())
    return [letter for letter, count in counts.items() if count == most][-1]
