"""Decoding JSON with the line of an error, writing files atomically, and checks before writing."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError, did_you_mean
from sightline.formats.atomic_file import AtomicFile
from sightline.formats.content import numbered_lines
from sightline.formats.lenient_json import lenient_json

T = TypeVar("T")

_UNKNOWN_FIELD = re.compile("Object contains unknown field `(.*)`")

Records = list[tuple[str, dict[str, Any]]]
"""Records with their position in the file, such as 'line 3' or 'entry 3'."""


def json_records(content: bytes, path: Path) -> Records:
    """Decode a JSON list, JSON Lines, or one JSON object.

    Args:
        content: The content of the file.
        path: The file, for error messages.

    Returns:
        The records with their positions.

    Raises:
        UserError: The content is not JSON, or an entry is not an object; it names the line or the entry.
    """
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


def read_lines(path: Path, kind: type[T], prepare: Callable[[Any], Any] | None = None) -> Iterator[T]:
    """Read a JSON Lines file as structs, line by line.

    Args:
        path: The file; it may be gzipped.
        kind: The struct that each line holds.
        prepare: Changes a decoded line before it is converted; None leaves lines as they are.

    Yields:
        One struct per line; empty lines are skipped.

    Raises:
        UserError: The file cannot be read, or a line is not such a struct; it names the line and the field.
    """
    decoder = msgspec.json.Decoder(kind)

    def decode(line: bytes) -> T:
        if prepare is None:
            return decoder.decode(line)
        return msgspec.convert(prepare(msgspec.json.decode(line)), kind)

    for number, line in numbered_lines(path):
        yield decode_line(decode, line, number, path, kind)


def decode_line(decode: Callable[[bytes], T], line: bytes, number: int, path: Path, kind: type[Any]) -> T:
    """Decode a line of a JSON Lines file.

    Args:
        decode: Converts a line to a struct.
        line: The line.
        number: Its number in the file, from 1.
        path: The file.
        kind: The struct.

    Returns:
        The struct.

    Raises:
        UserError: The line is not such a struct; it names the line and the field.
    """
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
    """Make the error for a field or a column that a file should not have.

    Args:
        name: The field.
        known: The fields that exist.
        path: The file.
        record: The position of the record.

    Returns:
        The error, with the most similar field.
    """
    known = list(known)
    return UserError(
        f"is an unknown field{did_you_mean(name, known)}",
        file=path,
        record=record,
        field=name,
        expected=f"only {', '.join(known)}",
    )


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file under a temporary name, then rename it: readers see the old file or the complete new one.

    Args:
        path: The file.
        pieces: The content.

    Raises:
        EnvironmentFailedError: The disk cannot be written; nothing remains then.
    """
    with AtomicFile(path) as file:
        for piece in pieces:
            file.write(piece)


def json_list(entries: Iterable[Any]) -> Iterator[bytes]:
    """Encode a JSON list entry by entry, as `json.dumps` with an indentation of 4 does.

    >>> b"".join(json_list([{"a": 1}, 2])) == json.dumps([{"a": 1}, 2], indent=4).encode()
    True

    Args:
        entries: The entries.

    Yields:
        The pieces of the list.
    """
    mark = b"["
    for entry in entries:
        # Line breaks within texts are escaped, so that all others are those of the layout.
        yield mark + b"\n    " + json.dumps(entry, indent=4).replace("\n", "\n    ").encode()
        mark = b","
    yield b"[]" if mark == b"[" else b"\n]"


def refuse_overwriting(
    path: Path, force: bool | None, option: str = "--out", *, read: Iterable[Path] = ()
) -> None:
    """Check that a command can write a file without replacing another one.

    Args:
        path: The file.
        force: Whether the file may be replaced; None: the command has no --force.
        option: The option that names the file, for error messages.
        read: The files that the command reads; even `force` does not replace them.

    Raises:
        UserError: The file exists, or its folder is missing or cannot be written.
    """
    if path.is_dir():
        raise UserError("is a folder", file=path, expected=f"a file for {option}")
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UserError(
            "is an input of this command and would be replaced", file=path, expected=f"another {option}"
        )
    if path.exists() and not force:
        or_force = "" if force is None else ", or --force"
        raise UserError("exists already", file=path, expected=f"another {option}{or_force}")
    if not path.parent.is_dir():
        raise UserError("there is no such folder", file=path.parent, expected=f"an existing one for {option}")
    refuse_unwritable(path.parent, option)


def refuse_unwritable(folder: Path, option: str = "--out") -> None:
    """Check that a folder, or the folder in which it must be created, can be written.

    A file is created on trial, because permissions do not show a read-only file system.

    Args:
        folder: The folder.
        option: The option that names the folder, for error messages.

    Raises:
        UserError: The path is a file, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file", file=folder, expected=f"a folder for {option}")
    existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        expected = f"a writable folder for {option}"
        raise UserError(f"cannot be written: {error.strerror}", file=folder, expected=expected) from None


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
