"""Lines of a limited width: words stay whole, and an address that does not fit loses its middle."""

from __future__ import annotations

import re
from functools import cache

SHORTEST_WORD, LONGEST_WORD = 16, 40
"""In a table, words up to the first width stay whole, and words above the second one may be shortened to it.
Words between them are shortened only if they are addresses, to the name at the end."""

_WIDE = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff01-\uff60"
_ASCII_PIECE = re.compile(r" *(?:[^ ]+|$)")

LEAST_REST = 12
"""If less than this is left of an address before its name, all of that is left out."""


def cells_of(text: str) -> int:
    """The width of a text in a terminal, where a Chinese character is as wide as two Latin ones."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def least_width(text: str, *, shorten: bool) -> int:
    """The least width in which `wrapped` keeps every line within the width."""
    return max((_least(word) if shorten else cells_of(word) for word in _words(text)), default=0)


def longest_word(text: str) -> int:
    return max(map(cells_of, _words(text)), default=0)


def wrapped(text: str, width: int, *, shorten: bool, indent: int = 0) -> list[str]:
    """Break a text into lines between words."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _pieces(paragraph):
            if cells_of(line + piece) <= width:
                line += piece
                continue
            if line.strip():
                lines.append(line.rstrip())
                line = " " * indent
            word = piece.lstrip()
            line += shortened(word, width - len(line)) if shorten else word
        lines.append(line.rstrip())
    return lines


def shortened(word: str, width: int) -> str:
    """Put an ellipsis in the middle of a word that is too wide.

    The name at the end of an address, behind '#' or the last '/', stays whole if it fits.

    >>> shortened("http://localhost:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct", 44)
    'http://l…000/v1#Qwen/Qwen2.5-VL-72B-Instruct'
    >>> shortened("http://localhost:8000/v1#Qwen/Qwen2.5-VL-72B-Instruct", 30)
    '…Qwen/Qwen2.5-VL-72B-Instruct'
    >>> shortened("0123456789abcdef", 7)
    '012…def'
    """
    if cells_of(word) <= width:
        return word
    name = next((name for name in _names(word) if cells_of(name) < width), "")
    rest = word.removesuffix(name)
    kept = width - 1 - cells_of(name)
    if name and kept < LEAST_REST:
        return f"…{name}"
    return _start(rest, kept - kept // 2) + "…" + _start(rest[::-1], kept // 2)[::-1] + name


def _pieces(line: str) -> list[str]:
    """Each word with the spaces before it: an address, one character of a script without spaces, or another
    word."""
    # Most texts are ASCII, and the other pattern takes 5 ms to compile.
    return (_ASCII_PIECE if line.isascii() else _piece()).findall(line)


@cache
def _piece() -> re.Pattern[str]:
    return re.compile(rf" *(?:[^ ]*://[^ ]*|[{_WIDE}]|[^ {_WIDE}]+|$)")


def _words(text: str) -> list[str]:
    return [word.lstrip() for line in text.split("\n") for word in _pieces(line)]


def _least(word: str) -> int:
    width = cells_of(word)
    named = min((1 + cells_of(name) for name in _names(word)), default=width)
    return min(width, LONGEST_WORD, max(SHORTEST_WORD, named))


def _names(word: str) -> list[str]:
    """What names the thing at an address, the longest first: 'http://host/v1#Qwen/VL' -> 'Qwen/VL', 'VL'."""
    fragment = word.rpartition("#")[2]
    names = dict.fromkeys((fragment, fragment.rpartition("/")[2]))
    return [name for name in names if 0 < len(name) < len(word)]


def _start(text: str, width: int) -> str:
    """The beginning of a text, as much as fits."""
    while cells_of(text) > width:
        text = text[:-1] if len(text) <= width else text[:width]
    return text
