"""Decodes JSON and TOML of users and other programs: the error of whatever they hold names the file."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from sightline.errors import UserError

T = TypeVar("T")

UNDECODABLE = (ValueError, RecursionError)
"""What decoders raise: errors of msgspec, json and tomllib, bad UTF-8, too many digits, too deep nesting."""


def decode_json(content: bytes, kind: type[T], file: object, what: str, *, expected: str | None = None) -> T:
    """Decode JSON.

    Args:
        content: The content of the file.
        kind: The type of what it holds.
        file: What messages call the file.
        what: What the file should be, for messages, with its article.
        expected: The remedy, for messages.

    Returns:
        What the file holds.

    Raises:
        UserError: The content is not JSON, or holds something else.
    """
    with _naming(file, what, expected):
        return msgspec.json.decode(content, type=kind)


def decode_toml(
    content: str | bytes, kind: type[T], file: object, what: str, *, expected: str | None = None
) -> T:
    """Decode TOML.

    Args:
        content: The content of the file.
        kind: The type of what it holds.
        file: What messages call the file.
        what: What the file should be, for messages, with its article.
        expected: The remedy, for messages.

    Returns:
        What the file holds.

    Raises:
        UserError: The content is not TOML, or holds something else.
    """
    with _naming(file, what, expected):
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        return msgspec.convert(tomllib.loads(text), kind)


def fault(error: Exception) -> str:
    """Describe why something cannot be decoded.

    Args:
        error: One of UNDECODABLE.

    Returns:
        The reason, without the content.
    """
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text: {error.reason}"
    return str(error)


@contextmanager
def _naming(file: object, what: str, expected: str | None) -> Iterator[None]:
    try:
        yield
    except UNDECODABLE as error:
        raise UserError(f"is not {what} ({fault(error)})", file=file, expected=expected) from None
