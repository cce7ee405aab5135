"""Decodes JSON and TOML of users and other programs: errors name the file, the line and the field."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError, did_you_mean

T = TypeVar("T")

UNDECODABLE = (ValueError, RecursionError)
"""What decoders raise: errors of msgspec, json and tomllib, bad UTF-8, too many digits, too deep nesting."""

MAX_DIGITS = 18
"""Whole numbers up to this length fit into 64 bits."""

Records = list[tuple[str, dict[str, Any]]]
"""Records with their position in the file, such as 'line 3' or 'entry 3'."""

_UNKNOWN_FIELD = re.compile("Object contains unknown field `(.*)`")


def decode_json(content: bytes, kind: type[T], file: object, what: str, *, expected: str | None = None) -> T:
    with _naming(file, what, expected):
        return msgspec.json.decode(content, type=kind)


def decode_toml(
    content: str | bytes, kind: type[T], file: object, what: str, *, expected: str | None = None
) -> T:
    with _naming(file, what, expected):
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        return msgspec.convert(tomllib.loads(text), kind)


def json_records(content: bytes, path: Path) -> Records:
    """Decode a JSON list, JSON Lines, or one JSON object."""
    if content.lstrip().startswith(b"["):
        return [_object(f"entry {n}", entry, path) for n, entry in enumerate(_whole(content, path), 1)]
    lines = [(n, line) for n, line in enumerate(content.splitlines(), 1) if line.strip()]
    rows: Records = []
    for number, line in lines:
        try:
            rows.append(_object(f"line {number}", _decode(line), path))
        except ValueError:
            if rows:
                raise _broken(line, path, number) from None
            return [_object("entry 1", _whole(content, path), path)]
    return rows


def decode_line(decode: Callable[[bytes], T], line: bytes, number: int, path: Path, kind: type[Any]) -> T:
    """Decode a line of a JSON Lines file."""
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        text, _, location = str(error).partition(" - at `$")
        field = re.sub(r"^\.|`$", "", location) or None
        if (unknown := _UNKNOWN_FIELD.fullmatch(text)) and field is None:
            known = [one.encode_name for one in msgspec.structs.fields(kind)]
            raise unknown_field(unknown[1], known, path, f"line {number}") from None
        raise UserError(text, file=path, record=f"line {number}", field=field) from None
    except (ValueError, RecursionError):
        raise _broken(line, path, number) from None


def unknown_field(name: str, known: Iterable[str], path: Path, record: str) -> UserError:
    """Make the error for a field or a column that a file should not have."""
    known = list(known)
    return UserError(
        f"is an unknown field{did_you_mean(name, known)}",
        file=path,
        record=record,
        field=name,
        expected=f"only {', '.join(known)}",
    )


def lenient_json(text: str | bytes, constant: Callable[[str], Any] = float) -> Any:
    """Decode JSON. A number that 64 bits cannot hold (1e999, 10,000 digits) becomes a text.

    >>> lenient_json('{"a": 1e999, "b": 9999999999999999999, "c": 7}')
    {'a': '1e999', 'b': '9999999999999999999', 'c': 7}

    Args:
        constant: Makes the value of NaN, Infinity and -Infinity from their name.

    Raises:
        ValueError: The text is not JSON.
        RecursionError: It is nested too deeply.
    """
    return json.loads(text, parse_constant=constant, parse_float=_float, parse_int=_integer)


def fault(error: Exception) -> str:
    """Describe why something cannot be decoded."""
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


def _whole(content: bytes, path: Path) -> Any:
    try:
        return _decode(content)
    except ValueError:
        raise _broken(content, path) from None


def _decode(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except msgspec.ValidationError:
        # A number is too large.
        return lenient_json(content)
    except ValueError:
        # Python's json module writes a missing cell or an undefined score as NaN, which is not JSON.
        if b"NaN" in content or b"Infinity" in content:
            return lenient_json(content)
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _broken(content: bytes, path: Path, first: int = 1) -> UserError:
    """The error for content that is not JSON; `first` is the line number of its first line."""
    line, text = first, "holds half of a surrogate pair, which is not a character"
    expected = "complete JSON (a list, or one object a line); is the file truncated?"
    try:
        lenient_json(content)
    except json.JSONDecodeError as error:
        line, text = first + error.lineno - 1, f"is not valid JSON: {error.msg}"
    except UnicodeDecodeError as error:
        line, text = first + content.count(b"\n", 0, error.start), f"is not UTF-8 text: {error.reason}"
    except RecursionError:
        text, expected = "is nested too deeply", f"at most {sys.getrecursionlimit():,} levels"
    return UserError(text, file=path, record=f"line {line}", expected=expected)


def _object(where: str, entry: Any, path: Path) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise UserError("is not a record", file=path, record=where, found=entry, expected="a JSON object")
    return where, entry


def _float(digits: str) -> float | str:
    number = float(digits)
    return number if math.isfinite(number) else digits


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) <= MAX_DIGITS else digits
