"""Texts that are too long for a page: their beginning; names of models and judges without their servers."""

from __future__ import annotations

import re

from msgspec import Struct

RESPONSE = 1_500
"""The characters of a response or a prompt that a report shows."""

QUESTION = 400
"""The characters of a question, a context, a reference or an option."""

_SERVER = re.compile(r"https?://[^\s,#]+#")


class ShortText(Struct, frozen=True):
    """The beginning of a text; `total` is the number of characters of the whole text."""

    text: str
    total: int

    @property
    def notice(self) -> str:
        """What is left out; '' if nothing is."""
        left_out = self.total - len(self.text)
        return f"[{left_out:,} of {self.total:,} characters are not shown]" if left_out else ""


def shorten(text: str, most: int = RESPONSE) -> ShortText:
    """Shorten a text for display.

    >>> shorten("a long response", 6).notice
    '[9 of 15 characters are not shown]'
    """
    return ShortText(text[:most], len(text))


def without_servers(names: str) -> str:
    """Names of models or judges without the addresses of their servers.

    >>> without_servers("rules, http://localhost:8000/v1#qwen (decides: first)")
    'rules, qwen (decides: first)'
    """
    return _SERVER.sub("", names)
