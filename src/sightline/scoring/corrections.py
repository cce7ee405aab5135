"""Where a text corrects itself: 'Wait, ...', 'Actually, ...', 'Scratch that'."""

from __future__ import annotations

import re

from sightline.scoring.text import words

_CORRECTION = re.compile(
    r"(?:^|[.,;:!?()\n—–-]|\b(?:but|and)\b|\s(?=[\w-]+(?: [\w-]+){0,2}[,:]))\s*"
    r"(?:(?:no|oh|ah|hm+|well|so|sorry|ok|okay|but|and|or)\b,?\s*)*"
    r"\b(?:wait(?!\s+(?:for|until|\d))|hold on|hang on|actually|correction|oops|whoops|edit|rather"
    r"|(?:sorry|apologies)(?! for| about)|scratch that|strike that|never ?mind|my (?:mistake|bad|error)"
    r"|i (?:take (?:that|it) back|meant|misread|misspoke|stand corrected|correct myself"
    r"|made (?:a mistake|an error)|(?:now )?reconsider(?:ed)?)"
    r"|let me (?:reconsider|rethink|correct|revise)(?: (?:that|this|it|myself))?"
    r"|(?:up)?on (?:second thoughts?|reflection|reconsideration|closer inspection)"
    r"|(?:looking|reading|checking) (?:again|closer|closely)"
    r"|after (?:re-?\w+|another look|a (?:second|closer) look|further \w+))\b"
)
"""A correction opens a clause or ends in a comma; 'actually' in 'It is actually right' is none."""


def corrected(text: str) -> tuple[str, str | None]:
    """Part a text at its last correction.

    Returns:
        The text between the last two corrections, or before the only one; empty if nothing precedes it. The
        text after the last correction; None if the text does not correct itself.

    >>> corrected("yes. wait, actually no, it differs."), corrected("it is actually right")
    (('yes', ' no, it differs.'), ('', None))
    """
    parts = [part for part in _CORRECTION.split(text) if words(part)]
    if not parts or (len(parts) == 1 and text.startswith(parts[0])):
        return "", None
    return "".join(parts[-2:-1]), parts[-1]
