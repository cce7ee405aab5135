"""How a condition of `--fail-if` names the number that it is about: METRIC, or METRIC[LABEL=VALUE]."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAMED = re.compile(r"\s*(\w*)\s*(?:\[(.+)\])?\s*(.*)", re.DOTALL)


class Named(NamedTuple):
    """A metric ('' where none is named), its subset ('all' where none is), and what is said of it."""

    metric: str
    subset: str
    said: str


def named(text: str) -> Named:
    """What a condition is about, and the rest of its words.

    >>> named("acc_p[category=Attributes] <= 20.5")
    Named(metric='acc_p', subset='category=Attributes', said='<= 20.5')
    >>> named("miss: higher")
    Named(metric='miss', subset='all', said=': higher')
    """
    metric, subset, said = _NAMED.findall(text)[0]
    return Named(metric, subset or "all", said)
