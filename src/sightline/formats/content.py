"""The content of files that other tools wrote, plain or gzipped: whole or line by line, within limits."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from sightline.decoding import decode_line
from sightline.errors import UserError

T = TypeVar("T")

MAX_FILE = 4 * 1024**3
"""The most bytes of a file that is read whole, decompressed."""

MAX_LINE = 64 * 1024**2
"""The most bytes of a line of a file that is read line by line."""

BUFFER = 1 << 18
"""The bytes that are read from a file at once."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_PIECE = 1024**2


def read_bytes(path: Path) -> bytes:
    """Read the content of a file."""
    pieces: list[bytes] = []
    size = 0
    with opened(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > MAX_FILE:
                raise UserError(
                    "is too large to be read whole",
                    file=path,
                    found=f"more than {MAX_FILE:,} bytes, decompressed",
                    expected="several smaller files",
                )
    content = b"".join(pieces).removeprefix(BYTE_ORDER_MARK)
    if not content.strip():
        raise _empty(path)
    return content


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read a file line by line; its size does not matter."""
    number, is_empty = 0, True
    with opened(path) as file:
        while read := read_line(file, number + 1, path):
            # A carriage return ends a line too.
            for line in read.splitlines():
                number += 1
                if number == 1:
                    line = line.removeprefix(BYTE_ORDER_MARK)
                if line.strip():
                    is_empty = False
                    yield number, line
    if is_empty:
        raise _empty(path)


def read_lines(path: Path, kind: type[T], prepare: Callable[[Any], Any] | None = None) -> Iterator[T]:
    """Read a JSON Lines file as structs, line by line.

    Args:
        prepare: Changes a decoded line before it is converted; None leaves lines as they are.
    """
    decoder = msgspec.json.Decoder(kind)

    def decode(line: bytes) -> T:
        if prepare is None:
            return decoder.decode(line)
        return msgspec.convert(prepare(msgspec.json.decode(line)), kind)

    for number, line in numbered_lines(path):
        yield decode_line(decode, line, number, path, kind)


def read_line(file: IO[bytes] | gzip.GzipFile, number: int, path: Path) -> bytes:
    """Read the next line of an open file."""
    line = file.readline(MAX_LINE + 1)
    if len(line) > MAX_LINE:
        raise UserError(
            "is too long",
            file=path,
            record=f"line {number}",
            found=f"more than {MAX_LINE:,} bytes",
            expected="one JSON object a line",
        )
    return line


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Open a file, plain or gzipped."""
    try:
        # A pipe without a writer would wait for ever, and most files are read several times.
        if stat.S_ISFIFO(os.stat(path).st_mode):
            raise UserError("cannot be read several times", file=path, found="a pipe", expected="a file")
        with BufferedReader(FileIO(path), BUFFER) as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.open(file) as content:
                    yield content
            else:
                yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UserError("the gzip archive is broken or truncated", file=path, found=str(error)) from None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path) from None


def _empty(path: Path) -> UserError:
    return UserError("the file is empty", file=path, expected="at least one record")
