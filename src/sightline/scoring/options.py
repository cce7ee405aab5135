"""The option that a response chooses, as the script of II-Bench extracts it (Appendix E), or strictly."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from sightline.scoring.chosen import read_choice
from sightline.scoring.letters import letter_at
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.scorer import Reading, flags
from sightline.types import LETTERS, Case, VerdictName

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
    return most_frequent(released_letters(response, options)[1])


def released_letters(response: str, options: Sequence[str]) -> tuple[str, list[str]]:
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


def read_option(
    case: Case,
    extraction: str = "released",
    released: Callable[[str, Sequence[str]], tuple[str, list[str]]] = released_letters,
) -> Reading:
    """Judge the option that an answer chose; a refusal is a flag in `scores`, never the verdict.

    `released` is the rule of a released script, and the letters that it finds.
    """
    response = case.texts[0]
    scores = flags({"refused": is_refusal(response)})
    rule: str
    if extraction == "strict":
        position, rule, words = read_choice(response, case.options, case.probe_question)
        letter = letter_at(position)
    else:
        rule, letters = released(response, case.options)
        letter = most_frequent(letters)
        words = ", ".join(letters)
    if letter is None:
        return Reading("miss", scores=scores, rule=rule, words=words)
    verdict: VerdictName = "unscored"
    if case.references:
        verdict = "right" if letter == case.references[0] else "wrong"
    return Reading(verdict, extracted=letter, scores=scores, rule=rule, words=words)


def most_frequent(letters: Iterable[str]) -> str | None:
    letters = list(letters)
    if len(letters) < 2:
        return letters[0] if letters else None
    counts = Counter(letters)
    most = max(counts.values())
    return [letter for letter, count in counts.items() if count == most][-1]
