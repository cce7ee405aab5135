"""Bytes in and out: plain or gzipped files read whole, JSON with the line of a fault, and atomic writing."""

from __future__ import annotations

import gzip
import json
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from sightline.errors import UserError
from sightline.formats.atomic_file import AtomicFile

T = TypeVar("T")

Records = list[tuple[str, dict[str, Any]]]
"""Where a record stands in its file ('line 3', 'entry 3'), and the record."""


def read_bytes(path: Path) -> bytes:
    """The file's content, unzipped where it is gzipped, without a byte order mark.

    UserError where the file is absent, unreadable, cut off or empty.
    """
    try:
        content = path.read_bytes()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError("the gzip archive is broken or cut off", file=path, found=str(error)) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path) from None
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise UserError("the file is empty", file=path, expected="at least one record")
    return content


def json_records(content: bytes, path: Path) -> Records:
    """The records of a JSON list, of JSON Lines, or of one JSON object.

    UserError that names the line where the JSON breaks off, or the entry that is no object.
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


def read_lines(path: Path, kind: type[T], prepare: Callable[[Any], Any] | None = None) -> list[T]:
    """Read a JSON Lines file as structs.

    Args:
        path: The file; it may be gzipped.
        kind: The struct that each line holds.
        prepare: Changes a decoded line before it is converted; None leaves lines as they are.

    Returns:
        One struct per line; empty lines are skipped.

    Raises:
        UserError: The file cannot be read, or a line is not such a struct; it names the line and the field.
    """
    content = read_bytes(path)
    if prepare is None:
        with suppress(ValueError):
            return msgspec.json.Decoder(kind).decode_lines(content)

    def decode(line: bytes) -> T:
        record = msgspec.json.decode(line)
        return msgspec.convert(record if prepare is None else prepare(record), kind)

    lines = enumerate(content.splitlines(), 1)
    return [_decode_line(decode, line, number, path) for number, line in lines if line.strip()]


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write beside `path` first, then rename: readers see the old file or the whole new one.

    EnvironmentFailedError where the disk refuses; nothing is left behind then.
    """
    with AtomicFile(path) as file:
        for piece in pieces:
            file.write(piece)


def refuse_overwriting(path: Path, force: bool, option: str = "--out", *, read: Iterable[Path] = ()) -> None:
    """Raise UserError where a file that a command is to write is there already, or its folder is not, or
    takes nothing.

    What the command itself reads (`read`) is not replaced with `force` either.
    """
    if path.is_dir():
        raise UserError("is a folder", file=path, expected=f"a file for {option}")
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UserError("is read, and would be replaced", file=path, expected=f"another {option}")
    if path.exists() and not force:
        raise UserError("exists already", file=path, expected=f"another {option}, or --force")
    if not path.parent.is_dir():
        raise UserError("there is no such folder", file=path.parent, expected=f"an existing one for {option}")
    refuse_unwritable(path.parent, option)


def refuse_unwritable(folder: Path, option: str = "--out") -> None:
    """Raise UserError where nothing can be made in a folder, or where it would have to be made itself.

    It is tried: permissions alone do not tell of a file system that takes nothing.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file", file=folder, expected=f"a folder for {option}")
    above = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".", dir=above))
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
    except ValueError:
        # Python's json writes a missing cell or an undefined score as NaN, which JSON does not know.
        if b"NaN" in content or b"Infinity" in content:
            return json.loads(content)
        raise


def _broken(content: bytes, path: Path, first: int = 1) -> UserError:
    """The error for content that is not JSON; `first` is the number of its first line in the file."""
    line, text = first, "holds an escaped half of a surrogate pair, which is no character"
    try:
        json.loads(content)
    except json.JSONDecodeError as error:
        line, text = first + error.lineno - 1, f"is not valid JSON: {error.msg}"
    except UnicodeDecodeError as error:
        line, text = first + content.count(b"\n", 0, error.start), f"is not UTF-8 text: {error.reason}"
    expected = "whole JSON (a list, or one object a line); is the file cut off?"
    return UserError(text, file=path, record=f"line {line}", expected=expected)


def _object(where: str, entry: Any, path: Path) -> tuple[str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise UserError("is no record", file=path, record=where, found=entry, expected="a JSON object")
    return where, entry


def _decode_line(decode: Callable[[bytes], T], line: bytes, number: int, path: Path) -> T:
    try:
        return decode(line)
    except msgspec.ValidationError as error:
        text, _, location = str(error).partition(" - at `$")
        field = re.sub(r"^\.|`$", "", location) or None
        raise UserError(text, file=path, record=f"line {number}", field=field) from None
    except ValueError:
        raise _broken(line, path, number) from None
