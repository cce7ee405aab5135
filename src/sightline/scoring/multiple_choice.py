"""The option that an answer to a multiple-choice question chose (II-Bench, 4.1 and Appendix E)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sightline.scoring.refusals import is_refusal
from sightline.scoring.scorer import Reading
from sightline.types import Case, VerdictName

LETTERS = "ABCDEF"

_IN_PARENTHESES = re.compile(r"\(([A-F])\)")
_STANDING_ALONE = re.compile(r"\b([A-F])\b")
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is)?)\s*[:：]?\s*\(?([A-F])\b\)?")


def extract_released(response: str, options: Sequence[str]) -> str | None:
    """The option that the released evaluation script extracts from a response.

    Letters in parentheses count, otherwise letters that stand alone: the most frequent one, on a tie the
    one that appeared last. Without letters, the last option whose text contains, or is contained in, the
    response.

    Args:
        response: The response.
        options: The options in the order shown.

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
            for letter, option in zip(LETTERS, options, strict=False)
            if option.strip() in response or response in option
        ]
    return _most_frequent(letters)


def extract_strict(response: str, options: Sequence[str]) -> str | None:
    """The option by a stricter rule: the last 'Answer: X', otherwise the only letter that is named.

    Args:
        response: The response.
        options: The options in the order shown.

    Returns:
        The letter; None is a miss.
    """
    stated = _ANSWER_IS.findall(response)
    if stated:
        return str(stated[-1])
    letters = set(_IN_PARENTHESES.findall(response) or _STANDING_ALONE.findall(response))
    return str(letters.pop()) if len(letters) == 1 else None


EXTRACTIONS = {"released": extract_released, "strict": extract_strict}


def read_option(case: Case, extraction: str = "released") -> Reading:
    """Judge the option that an answer chose.

    A refusal is a flag in `scores` next to the released verdict, never instead of it.

    Args:
        case: The answer; `references` holds the right letter as shown, or nothing.
        extraction: The rule: `released` or `strict`.

    Returns:
        Right, wrong or miss; `unscored` without a right letter, except for a miss.
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
    """The letter of an option in another order of the same options.

    Options correspond by equal text (equal texts in their order), then by elimination if one is left on
    each side: some texts were edited after the release.

    Args:
        letter: The letter in `source`, or None.
        source: The options in one order.
        target: The options in the other order.

    Returns:
        The letter in `target`; None if the letter names no option or one without a counterpart.

    >>> carry_letter("A", ["rain", "sun"], ["sun", "rain"])
    'B'
    """
    positions = dict(zip(LETTERS, _positions(source, target), strict=False))
    position = positions.get(letter or "")
    return None if position is None else LETTERS[position]


def _most_frequent(letters: Iterable[str]) -> str | None:
    counts = Counter(letters)
    if not counts:
        return None
    most = max(counts.values())
    return [letter for letter, count in counts.items() if count == most][-1]


def _positions(source: Sequence[str], target: Sequence[str]) -> list[int | None]:
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
