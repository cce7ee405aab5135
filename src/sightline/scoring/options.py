"""The letters of options: in another order of the same options, and as II-Bench reads them (Appendix E)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sightline.scoring.chosen import letter_at, read_choice
from sightline.scoring.mentions import LETTERS
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.scorer import Reading, flags
from sightline.types import Case, VerdictName

# -- The letters of the options of a question, and letters in another order of the same options


def carry_letter(letter: str | None, source: Sequence[str], target: Sequence[str]) -> str | None:
    """The letter of an option in another order of the same options.

    Options correspond by equal text (equal texts in their order), then by texts that differ only in case and
    occur once on each side, then by elimination if one is left: some texts were edited after the release.

    Args:
        letter: The letter in `source`, A-Z, or None.

    Returns:
        The letter in `target`; None if the letter names no option, or one without a counterpart or a letter.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    >>> carry_letter("A", ["Rain", "sun", "fog"], ["fog", "rain", "Sun"])
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
    left = Counter(text.casefold() for text, same in zip(source, positions, strict=True) if same is None)
    there = Counter(target[position].casefold() for position in free)
    for number, text in enumerate(source):
        if positions[number] is None and left[text.casefold()] == there[text.casefold()] == 1:
            positions[number] = next(one for one in free if target[one].casefold() == text.casefold())
    free = [position for position in free if position not in positions]
    if len(free) == 1 and positions.count(None) == 1:
        positions[positions.index(None)] = free[0]
    return positions


SIX_LETTERS = LETTERS[:6]
"""The letters of a question of II-Bench: it has at most six options, and its script reads no others."""

_IN_PARENTHESES = re.compile(r"\(([A-F])\)")
_STANDING_ALONE = re.compile(r"\b([A-F])\b")


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
    return _most_frequent(_released_letters(response, options)[1])


def _released_letters(response: str, options: Sequence[str]) -> tuple[str, list[str]]:
    """The rule of the released script that finds letters in a response, and the letters."""
    if letters := _IN_PARENTHESES.findall(response):
        return "letters in parentheses", letters
    if letters := _STANDING_ALONE.findall(response):
        return "letters that stand alone", letters
    letters = [
        letter
        for letter, option in zip(SIX_LETTERS, options, strict=False)
        if option.strip() in response or response in option
    ]
    return "text of an option" if letters else "none", letters


def read_option(case: Case, extraction: str = "released") -> Reading:
    """Judge the option that an answer chose; a refusal is a flag in `scores`, never the verdict."""
    response = case.texts[0]
    scores = flags({"refused": is_refusal(response)})
    rule: str
    if extraction == "strict":
        position, rule, words = read_choice(response, case.options, case.probe_question)
        letter = letter_at(position)
    else:
        letter = extract_released(response, case.options)
        rule, letters = _released_letters(response, case.options)
        words = ", ".join(letters)
    if letter is None:
        return Reading("miss", scores=scores, rule=rule, words=words)
    verdict: VerdictName = "unscored"
    if case.references:
        verdict = "right" if letter == case.references[0] else "wrong"
    return Reading(verdict, extracted=letter, scores=scores, rule=rule, words=words)


def _most_frequent(letters: Iterable[str]) -> str | None:
    counts = Counter(letters)
    if not counts:
        return None
    most = max(counts.values())
    return [letter for letter, count in counts.items() if count == most][-1]
