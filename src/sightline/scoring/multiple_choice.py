"""The option that an answer to a multiple-choice question chose (II-Bench, 4.1 and Appendix E)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from sightline.scoring.flags import flags
from sightline.scoring.letters import LETTERS
from sightline.scoring.refusals import is_refusal
from sightline.scoring.scorer import Reading
from sightline.types import Case, VerdictName

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
    """
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
