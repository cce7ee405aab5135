"""Files that appear whole or not at all: of bytes, and of lines."""

from __future__ import annotations

import asyncio
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from sightline.errors import EnvironmentFailedError


class AtomicFile:
    """Bytes are written to a file beside `path`, which takes its name when all went well.

    EnvironmentFailedError where the disk refuses; nothing is left behind then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
        self._refused: EnvironmentFailedError | None = None

    def __enter__(self) -> Self:
        """Open the file beside."""
        try:
            self._file = self._beside.open("xb", buffering=1 << 18)
        except OSError as error:
            raise self._failed(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename it where nothing went wrong, else remove it."""
        try:
            # A library that writes may tell of a full disk in words of its own.
            if self._refused is not None:
                raise self._refused
            if kind is None:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._beside.replace(self._path)
        except OSError as failure:
            raise self._failed(failure) from None
        finally:
            self._beside.unlink(missing_ok=True)
            # What could not be written is refused once more.
            with suppress(OSError):
                self._file.close()

    async def __aenter__(self) -> Self:
        """The same in a coroutine: what else runs in its loop does not wait for the disk in the end."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `__exit__`; what waits for the disk in a thread, which no cancelling takes back."""
        if kind is not None:
            self.__exit__(kind, error, trace)
        else:
            ended = asyncio.get_running_loop().run_in_executor(None, self.__exit__, None, None, None)
            await asyncio.shield(ended)

    def write(self, piece: bytes) -> int:
        """Add bytes; returns how many."""
        try:
            return self._file.write(piece)
        except OSError as error:
            self._refused = self._failed(error)
            raise self._refused from None

    def flush(self) -> None:
        """Nothing: all is flushed at the end. Libraries that write to a file call it."""

    def _failed(self, error: OSError) -> EnvironmentFailedError:
        return EnvironmentFailedError(f"{self._path}: cannot be written: {error.strerror or error}")


class AtomicLineFile:
    """A `AtomicFile` of lines."""

    def __init__(self, path: Path) -> None:
        self._whole = AtomicFile(path)

    def __enter__(self) -> Self:
        """Open it."""
        self._whole.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self._whole.__exit__(kind, error, trace)

    def write(self, line: bytes) -> None:
        """Add a line; the line break is added too."""
        self._whole.write(line + b"\n")
