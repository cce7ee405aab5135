"""Long texts for display: the beginning, and how much is left out."""

from __future__ import annotations

from msgspec import Struct

RESPONSE = 1_500
"""The characters of a response or a prompt that a report shows."""

QUESTION = 400
"""The characters of a question, a context, a reference or an option."""


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

    Args:
        text: Any text.
        most: The number of characters that are shown.

    Returns:
        The beginning; the whole text if it is not longer.

    >>> shorten("a long response", 6).notice
    '[9 of 15 characters are not shown]'
    """
    return ShortText(text[:most], len(text))
