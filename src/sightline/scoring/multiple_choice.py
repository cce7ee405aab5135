"""Which option an answer to a multiple-choice question chose (II-Bench, section 4.1 and Appendix E)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sightline.scoring.scorer import Reading
from sightline.types import Case, VerdictName

LETTERS = "ABCDEF"

_IN_PARENTHESES = re.compile(r"\(([A-F])\)")
_STANDING_ALONE = re.compile(r"\b([A-F])\b")
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is)?)\s*[:：]?\s*\(?([A-F])\b\)?")
_REFUSAL = re.compile(
    r"\b(?:i(?:['’]m| am) (?:sorry|unable|not able)|i (?:can(?:no|['’])t|cannot|won['’]t)|as an ai\b)",
    re.IGNORECASE,
)


def extract_released(response: str, options: Sequence[str]) -> str | None:
    """The option that the released evaluation script reads from a response; None is a miss.

    Letters in parentheses, else letters that stand alone; the most frequent, on a tie the one that
    appeared last among the tied. Without letters: options whose text stands in the response, or in whose
    text the response stands; the last one.

    >>> extract_released("Not (A) but (B).", ["x"] * 6)
    'B'
    >>> extract_released("BDF", ["x"] * 6) is None
    True
    """
    letters = _IN_PARENTHESES.findall(response) or _STANDING_ALONE.findall(response)
    if not letters:
        letters = [
            letter
            for letter, option in zip(LETTERS, options, strict=False)
            if option.strip() in response or response in option
        ]
    return _most_frequent(letters)


def extract_strict(response: str, options: Sequence[str]) -> str | None:
    """A stricter reading: the last 'Answer: X' wins, else the letter where only one is named; else None."""
    stated = _ANSWER_IS.findall(response)
    if stated:
        return str(stated[-1])
    letters = set(_IN_PARENTHESES.findall(response) or _STANDING_ALONE.findall(response))
    return str(letters.pop()) if len(letters) == 1 else None


EXTRACTIONS = {"released": extract_released, "strict": extract_strict}


def read_option(case: Case, extraction: str = "released") -> Reading:
    """Right, wrong or miss for one answer; `references` hold the right letter as shown, or nothing.

    Without a right letter the verdict is `unscored`, and a miss stays a miss. A refusal is a flag beside the
    released status (`scores`), never instead of it.
    """
    response = case.texts[0]
    letter = EXTRACTIONS[extraction](response, case.options)
    flags = {"refused": 1.0} if is_refusal(response) else {}
    if letter is None:
        return Reading("miss", scores=flags)
    if not case.references:
        return Reading("unscored", extracted=letter, scores=flags)
    verdict: VerdictName = "right" if letter == case.references[0] else "wrong"
    return Reading(verdict, extracted=letter, scores=flags)


def carry_letter(letter: str | None, source: Sequence[str], target: Sequence[str]) -> str | None:
    """The letter that an option of `source` has in `target`, the same options in another order.

    Options correspond by exact text (equal texts in their order), then, where one is left on each side,
    by elimination: texts were edited after the release. None where the letter names no option of
    `source`, or one without a counterpart.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    """
    places = dict(zip(LETTERS, _places(source, target), strict=False))
    place = places.get(letter or "")
    return None if place is None else LETTERS[place]


def is_refusal(response: str) -> bool:
    """Whether an answer declines to answer.

    >>> is_refusal("I'm sorry, I can't help with that."), is_refusal("(C)")
    (True, False)
    """
    return _REFUSAL.search(response[:200]) is not None


def _most_frequent(letters: Iterable[str]) -> str | None:
    counts = Counter(letters)
    if not counts:
        return None
    most = max(counts.values())
    return [letter for letter, count in counts.items() if count == most][-1]


def _places(source: Sequence[str], target: Sequence[str]) -> list[int | None]:
    free = list(range(len(target)))
    places: list[int | None] = []
    for text in source:
        same = next((place for place in free if target[place] == text), None)
        if same is not None:
            free.remove(same)
        places.append(same)
    if len(free) == 1 and places.count(None) == 1:
        places[places.index(None)] = free[0]
    return places
