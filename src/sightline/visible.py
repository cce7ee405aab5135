"""Shows the characters that a reader would not see, or that change how other text is displayed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_SEPARATORS = "\u2028\u2029"
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_SURROGATES = "\ud800-\udfff"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The other characters of Unicode's property Default_Ignorable_Code_Point, and interlinear annotations."""

_NOT_CHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_UNSAFE = f"[{_CONTROLS}{_SEPARATORS}{_BIDIRECTIONAL}{_SURROGATES}{_INVISIBLE}{_NOT_CHARACTERS}]"

_UNSAFE_PRINTABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Those that `str.isprintable` accepts."""

_EMOJI = (
    "[©®‼⁉™ℹ\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff〰〽㊗㊙\U0001f000-\U0001faff]"
    "[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
)
_TAGS = "(?:gbeng|gbsct|gbwls)".translate({ord(letter): 0xE0000 + ord(letter) for letter in "begclnstw"})
_SPACELESS = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff]"
_MEANINGFUL = (
    "\U0001f3f4" + _TAGS + "\U000e007f",  # the flags of England, Scotland and Wales
    f"{_EMOJI}(?:\u200d{_EMOJI})*",
    "[0-9#*]\ufe0f(?=\u20e3)",  # keycaps
    "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\ufe00-\ufe02\U000e0100-\U000e01ef]",  # forms of Han
    "[\u1820-\u18aa][\u180b-\u180d\u180f]",  # forms of Mongolian letters
    "[\u1820-\u18aa]\u180e(?=[\u1820\u1821])",
    # Joiners in Arabic and in the scripts of India and of South-East Asia.
    "[\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1b00-\u1b7f\ua980-\ua9df][\u200c\u200d]",
    f"{_SPACELESS}\u200b(?={_SPACELESS})",  # where a line may break between words without spaces
)
"""Invisible characters in the places where the spelling of a language, or an emoji, needs them."""


def visible(text: str) -> str:
    r"""Show a text in one line, with the escapes of Python for characters that are not safe to display.

    Control characters, line breaks, bidirectional controls, invisible characters, lone surrogates, and a
    combining mark at the beginning become `\n`, `\x1b`, `\u202e` or `\U000e0041`. Invisible characters stay
    where the spelling of a language needs them: joiners in Arabic, Persian and Indian scripts and in emoji,
    variation selectors behind the characters that have variants. All other text stays, backslashes too, so
    that the result is for readers, and is not to be parsed. A shown text stays as it is if it is shown again.

    >>> visible("one\nline\x1b[2J"), visible("100 % \u202eright")
    ('one\\nline\\x1b[2J', '100 % \\u202eright')
    """
    if text.isascii() and text.isprintable():
        return text
    shown = replace_unsafe(text, _escape)
    return _escape(shown[0]) + shown[1:] if unicodedata.category(shown[0])[0] == "M" else shown


def visible_lines(text: str) -> str:
    """Show a text as `visible` does, with its line feeds."""
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def replace_unsafe(text: str, escape: Callable[[str], str]) -> str:
    """Replace the characters that `visible` replaces, but for a combining mark at the beginning."""
    if text.isprintable() and not _UNSAFE_PRINTABLE.search(text):
        return text  # as almost every text
    return _pattern().sub(lambda found: found[0] if found.lastgroup is None else escape(found[0]), text)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"{'|'.join(_MEANINGFUL)}|(?P<unsafe>{_UNSAFE})")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
