"""What of a folder is finished so far, a line a source, written by one process and read after any kill."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec import Struct, field

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.groups import GroupLine

JOURNAL = ".journal.jsonl"

_encoder = msgspec.json.Encoder()


class Done(Struct, frozen=True, omit_defaults=True):
    """A source that is finished: its lines or why it was dropped, and the SHA-256 of each file it gave."""

    id: str
    fingerprint: str
    lines: tuple[GroupLine, ...] = ()
    dropped: str = ""
    files: dict[str, str] = field(default_factory=dict)


class Journal:
    """The journal of a folder, held by one process at a time; its first line says what is being built.

    A line that a kill tore off is dropped, and so is all behind it. UserError where another process works
    in the folder, which `option` names, EnvironmentFailedError where the disk refuses.
    """

    def __init__(self, folder: Path, option: str = "--out") -> None:
        self._path = folder / JOURNAL
        self._folder = folder
        self._option = option

    def __enter__(self) -> Self:
        """Open it, made anew with its folder where it is not there, and keep other processes out."""
        self._hold()
        # The process that held it may have removed it after it was opened here.
        while not self._in_place():
            self._file.close()
            self._hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it; what was added stays. One that was made anew for nothing goes."""
        with contextlib.suppress(OSError):
            if self._idle and self._in_place():
                discard(self._folder)
            self._file.close()

    def header(self) -> Any:
        """What its first line says, None where there is none."""
        return header_of(self._folder)

    def begin(self, header: Mapping[str, Any]) -> None:
        """Forget what it holds; `header` says what is built from now on."""
        self._idle = False
        try:
            self._file.truncate(0)
            self._write([_encoder.encode(header)])
        except OSError as error:
            raise self._failed(error) from None

    def add(self, entries: Iterable[Done]) -> None:
        """Write down what is finished, at once."""
        try:
            self._write([_encoder.encode(entry) for entry in entries])
        except OSError as error:
            raise self._failed(error) from None

    def read(self) -> dict[str, Done]:
        """The finished sources by id, the latest line of each; what is torn is cut off."""
        found: dict[str, Done] = {}
        decoder = msgspec.json.Decoder(Done)
        self._file.seek(0)
        whole = len(self._file.readline())
        for line in self._file:
            try:
                entry = decoder.decode(line if line.endswith(b"\n") else b"")
            except (msgspec.DecodeError, UnicodeDecodeError):
                break
            found[entry.id] = entry
            whole += len(line)
        self._file.truncate(whole)
        return found

    def discard(self) -> None:
        """Remove it: all is built."""
        discard(self._folder)

    def _hold(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._idle = not self._path.exists()
            self._file = self._path.open("a+b")
        except OSError as error:
            raise self._failed(error) from None
        try:
            _lock(self._file.fileno())
        except BlockingIOError:
            self._file.close()
            raise UserError(
                "another process works there",
                file=self._folder,
                expected=f"its end, or another {self._option}",
            ) from None
        except OSError as error:
            self._file.close()
            raise self._failed(error) from None

    def _in_place(self) -> bool:
        """Whether the file that is held is still the folder's."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except FileNotFoundError:
            return False

    def _write(self, lines: list[bytes]) -> None:
        self._file.write(b"".join(line + b"\n" for line in lines))
        self._file.flush()

    def _failed(self, error: OSError) -> EnvironmentFailedError:
        return EnvironmentFailedError(f"{self._path}: cannot be written: {error.strerror or error}")


def header_of(folder: Path) -> Any:
    """What the first line of a folder's journal says, None where there is no whole one."""
    try:
        with (folder / JOURNAL).open("rb") as file:
            line = file.readline()
            return msgspec.json.decode(line) if line.endswith(b"\n") else None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def discard(folder: Path) -> None:
    """Remove a folder's journal, where there is one."""
    (folder / JOURNAL).unlink(missing_ok=True)


def _lock(descriptor: int) -> None:
    if os.name == "posix":
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
