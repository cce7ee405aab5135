"""Files that appear complete or not at all."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sightline.errors import EnvironmentFailedError
from sightline.formats.leftovers import hold, remove_leftovers, temporary_path
from sightline.formats.write_errors import cannot_write


class AtomicFile:
    """A binary file that is written under a temporary name and renamed at the end.

    After an error nothing remains of it. EnvironmentFailedError is raised if the disk cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = temporary_path(path)
        self._refused: EnvironmentFailedError | None = None

    def __enter__(self) -> Self:
        """Open the temporary file; remove those that killed processes left of this file."""
        remove_leftovers(self._path)
        try:
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
                os.fsync(self._file.fileno())
                self._file.close()
                self._temporary.replace(self._path)
        except OSError as failure:
            raise cannot_write(self._path, failure) from None
        finally:
            self._temporary.unlink(missing_ok=True)
            # Closing writes the rest again, which fails again.
            with suppress(OSError):
                self._file.close()

    async def __aenter__(self) -> Self:
        """Open the temporary file in a coroutine."""
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
        """Write bytes.

        Args:
            piece: The bytes.
        """
        try:
            return self._file.write(piece)
        except OSError as error:
            self._refused = cannot_write(self._path, error)
            raise self._refused from None

    def flush(self) -> None:
        """Do nothing: the end flushes the file. Libraries that write to a file call this."""


class AtomicLineFile:
    """An `AtomicFile` of lines."""

    def __init__(self, path: Path) -> None:
        self._file = AtomicFile(path)

    def __enter__(self) -> Self:
        """Open the temporary file."""
        self._file.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename the file; after an error, remove it."""
        self._file.__exit__(kind, error, trace)

    def write(self, line: bytes) -> None:
        self._file.write(line + b"\n")
