"""Regular expressions that are compiled at their first use: a run whose result is cached uses none."""

from __future__ import annotations

import re
from typing import Any, cast


class _Pattern:
    """Acts as the compiled pattern; each of its methods is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern = pattern
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, value)
        return value


def compiled_later(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Make a pattern that is compiled at its first use.

    Args:
        pattern: The regular expression. An error in it appears at the first use.
        flags: The flags of `re.compile`.

    Returns:
        What `re.compile` returns, as far as its methods are concerned.

    >>> compiled_later("b+").search("abbc").group()
    'bb'
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
