"""Files read and written whole, with errors that name them, and the digests of their contents."""

from __future__ import annotations

import asyncio
import codecs
import errno
import fcntl
import gzip
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BufferedReader, FileIO
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, TypeVar

import msgspec

from sightline.errors import EnvironmentFailedError, UserError
from sightline.text import decode_line


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a temporary file, then rename it: readers see the old file or the complete new one."""
    with AtomicFile(path) as file:
        for piece in pieces:
            file.write(piece)


def json_list(entries: Iterable[Any]) -> Iterator[bytes]:
    """Encode a JSON list entry by entry, as `json.dumps` with an indentation of 4 does.

    >>> b"".join(json_list([{"a": 1}, 2])) == json.dumps([{"a": 1}, 2], indent=4).encode()
    True
    """
    mark = b"["
    for entry in entries:
        # Line breaks within texts are escaped, so that all others are those of the layout.
        yield mark + b"\n    " + json.dumps(entry, indent=4).replace("\n", "\n    ").encode()
        mark = b","
    yield b"[]" if mark == b"[" else b"\n]"


def refuse_overwriting(path: Path, force: bool | None, *, read: Iterable[Path] = ()) -> None:
    """Check that a command can write a file without replacing another one.

    `force`: whether the file may be replaced; None: the command has no --force.
    """
    if path.is_dir():
        raise UserError("is a folder", file=path, expected="a file for --out")
    if is_stream(path):
        return
    if path.exists() and any(one.exists() and path.samefile(one) for one in read):
        raise UserError(
            "is an input of this command and would be replaced", file=path, expected="another --out"
        )
    if path.exists() and not force:
        or_force = "" if force is None else ", or --force"
        raise UserError("exists already", file=path, expected=f"another --out{or_force}")
    if not path.parent.is_dir():
        raise UserError("there is no such folder", file=path.parent, expected="an existing one for --out")
    refuse_unwritable(path.parent)


def refuse_unwritable(folder: Path) -> None:
    """Check that a folder, or the folder in which it must be created, can be written.

    A file is created on trial, because permissions do not show a read-only file system.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError("is a file", file=folder, expected="a folder for --out")
    existing = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".", dir=existing))
    except OSError as error:
        why = f"cannot be written: {error.strerror}"
        raise UserError(why, file=folder, expected="a writable folder for --out") from None


# -- The content of files that other tools wrote, plain or gzipped: whole or line by line, within limits

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
    content = _in_utf8(b"".join(pieces), path).removeprefix(BYTE_ORDER_MARK)
    if not content.strip():
        raise _empty(path)
    return content


_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def _in_utf8(content: bytes, path: Path) -> bytes:
    """Decode text that its byte order mark calls UTF-16, as spreadsheets and PowerShell write it."""
    if not content.startswith(_UTF16):
        refuse_utf16(content, path)
        return content
    try:
        return content.decode("utf-16").encode()
    except UnicodeDecodeError as error:
        raise UserError(
            "is broken or truncated UTF-16 text", file=path, found=error.reason, expected="UTF-8 text"
        ) from None


def refuse_utf16(start: bytes, path: Path) -> None:
    """Check the first bytes of a file that is read line by line, or has no byte order mark."""
    if start.startswith(_UTF16) or (0 in start[:2] and start[:2].strip(b"\0")):
        raise UserError(
            "is UTF-16 text",
            file=path,
            expected="UTF-8 text: save it with the encoding UTF-8, or use `iconv -f UTF-16 -t UTF-8`",
        )


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Read a file line by line; its size does not matter."""
    number, is_empty = 0, True
    with opened(path) as file:
        while read := read_line(file, number + 1, path):
            if not number:
                refuse_utf16(read, path)
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

    `prepare`: changes a decoded line before it is converted; None leaves lines as they are.
    """
    decoder = msgspec.json.Decoder(kind)

    def decode(line: bytes) -> T:
        if prepare is None:
            return decoder.decode(line)
        return msgspec.convert(prepare(msgspec.json.decode(line)), kind)

    for number, line in numbered_lines(path):
        yield decode_line(decode, line, number, path, kind)


def read_line(file: IO[bytes] | gzip.GzipFile, number: int, path: Path) -> bytes:
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


# -- Files that appear complete or not at all


def is_stream(path: Path) -> bool:
    """Whether a path is a pipe, a device or a socket, which takes what is written and is never replaced."""
    return path.exists() and not path.is_file() and not path.is_dir()


class AtomicFile:
    """A binary file that is written under a temporary name and renamed at the end.

    After an error nothing remains of it. EnvironmentFailedError is raised if the disk cannot be written.
    A link stays, and the file that it names is written; a pipe or a device is written into.
    """

    def __init__(self, path: Path) -> None:
        self._is_stream = is_stream(path)
        self._path = path.resolve() if path.is_symlink() and not self._is_stream else path
        self._temporary = self._path if self._is_stream else temporary_path(self._path)
        self._refused: EnvironmentFailedError | None = None

    def __enter__(self) -> Self:
        """Open the temporary file; remove those that killed processes left of this file."""
        try:
            if self._is_stream:
                self._file = self._path.open("wb", buffering=1 << 18)
                return self
            remove_leftovers(self._path)
            self._open()
            # Before it was locked, another process may have taken it for a leftover.
            while not os.fstat(self._file.fileno()).st_nlink:
                self._file.close()
                self._open()
        except OSError as error:
            raise cannot_write(self._path, error) from None
        return self

    def _open(self) -> None:
        self._file = self._temporary.open("xb", buffering=1 << 18)
        hold(self._file.fileno())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename the file; after an error, remove it."""
        try:
            # A library that writes may hide the error of a full disk behind its own.
            if self._refused is not None:
                raise self._refused
            if kind is None:
                self._file.flush()
                if not self._is_stream:
                    os.fsync(self._file.fileno())
                    self._file.close()
                    self._temporary.replace(self._path)
        except OSError as failure:
            raise cannot_write(self._path, failure) from None
        finally:
            if not self._is_stream:
                self._temporary.unlink(missing_ok=True)
            # Closing writes the rest again, which fails again.
            with suppress(OSError):
                self._file.close()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close as `__exit__` does. A thread waits for the disk, so that the event loop stays free."""
        if kind is not None:
            self.__exit__(kind, error, trace)
        else:
            ended = asyncio.get_running_loop().run_in_executor(None, self.__exit__, None, None, None)
            await asyncio.shield(ended)

    def write(self, piece: bytes) -> int:
        try:
            return self._file.write(piece)
        except OSError as error:
            self._refused = cannot_write(self._path, error)
            raise self._refused from None

    def flush(self) -> None:
        """Do nothing: the end flushes the file. Libraries that write to a file call this."""


# -- Errors of writing files, such as those of a full disk: with the path and the remedy

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a full disk, and of a user's share of it."""


def cannot_write(path: object, error: OSError) -> EnvironmentFailedError:
    remedy = "; make room, then run the same command again" if error.errno in NO_ROOM else ""
    return EnvironmentFailedError(f"{path}: cannot be written: {error.strerror or error}{remedy}")


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Name the path in errors of the operating system, whose own text has none after the file was opened."""
    try:
        yield
    except OSError as error:
        raise cannot_write(error.filename or path, error) from None


# -- Temporary files and folders: their process locks them; what nobody locks is left over from a killed
#    one

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.\d+\.[0-9a-f]{8}\.tmp", re.DOTALL)


def temporary_path(path: Path) -> Path:
    """A new name in the same folder for what becomes `path`."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


@contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a folder beside `path` for what becomes it, which may be renamed, and remove it at the end."""
    remove_leftovers(path)
    folder = temporary_path(path)
    try:
        folder.mkdir()
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(path, error) from None
    try:
        hold(descriptor)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Wait until no other process writes the files of a folder together."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def hold(descriptor: int) -> None:
    """Lock an open file or folder until it is closed, which the end of the process does too."""
    # A file system without locks keeps its leftovers.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of a file or folder. What a live process has is locked, and stays."""
    for name in _found(str(path.parent)).pop(path.name, ()):
        _remove_unless_held(path.with_name(name))


@lru_cache(maxsize=64)
def _found(folder: str) -> dict[str, list[str]]:
    """Name -> its temporary files when this process first wrote there: a folder may have many files."""
    names: defaultdict[str, list[str]] = defaultdict(list)
    with suppress(OSError):
        for name in os.listdir(folder):
            if match := _TEMPORARY.fullmatch(name):
                names[match["name"]].append(name)
    return names


def _remove_unless_held(path: Path) -> None:
    # OSError: it is locked, it is gone, or it belongs to another user.
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        finally:
            os.close(descriptor)


# -- Digests: the SHA-256 of JSON, of texts, of files and of sets of texts, all in hexadecimal

READERS = 4
"""The number of threads that compute digests; hashing releases the interpreter lock."""


def json_digest(content: Any, unknown: Callable[[Any], Any] | None = None) -> str:
    """The SHA-256 of plain data as JSON with sorted keys.

    `unknown`: makes plain data of any other object; None refuses those.
    """
    return hashlib.sha256(msgspec.json.encode(content, order="sorted", enc_hook=unknown)).hexdigest()


def text_digest(text: str) -> str:
    """The SHA-256 of a text in UTF-8, whose surrogates without a partner count too."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: str | Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digest_or_error(path: str | Path) -> str | OSError:
    try:
        return file_digest(path)
    except OSError as error:
        return error


def changed_files(folder: Path, files: Mapping[str, str]) -> list[str]:
    """The files that are missing or have another content."""
    with ThreadPoolExecutor(READERS) as pool:
        digests = pool.map(file_digest_or_error, (folder / name for name in files))
        return [
            name
            for (name, expected), digest in zip(files.items(), digests, strict=True)
            if digest != expected
        ]


_DIGITS = 32
"""Hexadecimal digits of a digest."""

_BETWEEN = "-"
"""Stands between the digest of the texts and that of the first images."""


class SetDigest:
    """The digest of texts in any order: the sum of their SHA-256, so that memory does not grow.

    >>> first, second = SetDigest(), SetDigest()
    >>> for text in (b"a", b"b"):
    ...     first.add(text)
    >>> for text in (b"b", b"a"):
    ...     second.add(text)
    >>> first.hexdigest() == second.hexdigest()
    True
    """

    def __init__(self) -> None:
        self._sum = 0

    def add(self, text: bytes) -> None:
        self._sum += int.from_bytes(hashlib.sha256(text).digest())

    def hexdigest(self) -> str:
        return f"{self._sum % 16**_DIGITS:0{_DIGITS}x}"


def data_digest(texts: str, images: str) -> str:
    """Join the digest of the texts of all samples and that of their first images."""
    return texts + _BETWEEN + images


def texts_of_data_digest(digest: str) -> str:
    """Take the digest of the texts from that of a run or of a result."""
    texts = digest.partition(_BETWEEN)[0]
    return texts if len(texts) == _DIGITS else ""


# -- The marker file of synthetic data: it says that a folder holds no images of a paper

MARKER = ".sightline-mini"
"""The name of the marker file; it names the synthetic benchmark."""


def is_synthetic(folder: Path | None) -> bool:
    """Whether a data folder holds synthetic scenes.

    `folder`: the data folder, or a part of one such as a task of MM-R3; None if there is none.
    """
    return folder is not None and any((one / MARKER).is_file() for one in (folder, folder.absolute().parent))
