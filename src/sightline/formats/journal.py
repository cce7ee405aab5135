"""The journal of a folder that is being built: a line for each finished source, readable after a kill."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import msgspec
from msgspec import Struct, field

from sightline.errors import UserError
from sightline.formats.files import cannot_write
from sightline.formats.groups import GroupLine
from sightline.text import UNDECODABLE

JOURNAL = ".journal.jsonl"

_encoder = msgspec.json.Encoder()


class FinishedSource(Struct, frozen=True, omit_defaults=True):
    """A finished source: its lines or the reason why it was dropped, and the SHA-256 of each of its files."""

    id: str
    fingerprint: str
    lines: tuple[GroupLine, ...] = ()
    dropped: str = ""
    files: dict[str, str] = field(default_factory=dict)


class Journal:
    """The journal of a folder, locked by one process at a time; its first line describes the build.

    A line that a kill cut off is dropped with all lines after it. Entering raises UserError if another
    process works in the folder (`option` names the folder's command-line option), and any method raises
    EnvironmentFailedError if the file cannot be written.

    The lock is on the journal itself. The library filelock truncates the file that it locks, so it would need
    a second file, which would stay in built folders.
    """

    def __init__(self, folder: Path, option: str = "--out") -> None:
        self._path = folder / JOURNAL
        self._folder = folder
        self._option = option

    def __enter__(self) -> Self:
        """Open and lock the journal; create it and its folder if they do not exist."""
        self._lock_file()
        # Between opening and locking, the process that had the lock may have removed the file.
        while not self._is_current():
            self._file.close()
            self._lock_file()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the journal; remove one that was created and not used."""
        with contextlib.suppress(OSError):
            if self._idle and self._is_current():
                discard(self._folder)
            self._file.close()

    def header(self) -> Any:
        return header_of(self._folder)

    def begin(self, header: Mapping[str, Any]) -> None:
        """Clear the journal for a new build."""
        self._idle = False
        try:
            self._file.truncate(0)
            self._write([_encoder.encode(header)])
        except OSError as error:
            raise cannot_write(self._path, error) from None

    def add(self, entries: Iterable[FinishedSource]) -> None:
        try:
            self._write([_encoder.encode(entry) for entry in entries])
        except OSError as error:
            raise cannot_write(self._path, error) from None

    def read(self) -> dict[str, FinishedSource]:
        """Read the finished sources, and cut off what a kill left incomplete."""
        finished: dict[str, FinishedSource] = {}
        decoder = msgspec.json.Decoder(FinishedSource)
        self._file.seek(0)
        complete = len(self._file.readline())
        for line in self._file:
            try:
                entry = decoder.decode(line if line.endswith(b"\n") else b"")
            except UNDECODABLE:
                break
            finished[entry.id] = entry
            complete += len(line)
        self._file.truncate(complete)
        return finished

    def discard(self) -> None:
        discard(self._folder)

    def _lock_file(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._idle = not self._path.exists()
            self._file = self._path.open("a+b")
        except OSError as error:
            raise cannot_write(self._path, error) from None
        try:
            _lock(self._file.fileno())
        except BlockingIOError:
            self._file.close()
            raise UserError(
                "another process works there",
                file=self._folder,
                expected=f"that process to end, or another {self._option}",
            ) from None
        except OSError as error:
            self._file.close()
            raise cannot_write(self._path, error) from None

    def _is_current(self) -> bool:
        """Whether the locked file is still the journal of the folder."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _write(self, lines: list[bytes]) -> None:
        self._file.write(b"".join(line + b"\n" for line in lines))
        self._file.flush()


def header_of(folder: Path) -> Any:
    """The first line of a folder's journal, which describes the build; None if none is complete."""
    try:
        with (folder / JOURNAL).open("rb") as file:
            line = file.readline()
            return msgspec.json.decode(line) if line.endswith(b"\n") else None
    except (OSError, *UNDECODABLE):
        return None


def discard(folder: Path) -> None:
    (folder / JOURNAL).unlink(missing_ok=True)


def _lock(descriptor: int) -> None:
    """Lock a file until it is closed, which a kill does too. Raises BlockingIOError if it is locked."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
