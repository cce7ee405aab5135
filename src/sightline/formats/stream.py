"""A file of lines that appears whole or not at all."""

from __future__ import annotations

import asyncio
import os
import secrets
from pathlib import Path
from types import TracebackType
from typing import Self

from sightline.errors import SurroundingsError


class LineFile:
    """Lines are written to a file beside `path`, which takes its name when all went well.

    SurroundingsError where the disk refuses; nothing is left behind then.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._beside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")

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
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            if kind is None:
                self._beside.replace(self._path)
        except OSError as failure:
            raise self._failed(failure) from None
        finally:
            self._beside.unlink(missing_ok=True)

    async def __aenter__(self) -> Self:
        """The same in a coroutine: what else runs in its loop does not wait for the disk in the end."""
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As `__exit__`, in a thread."""
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def write(self, line: bytes) -> None:
        """Add a line; the line break is added too."""
        self.write_raw(line + b"\n")

    def write_raw(self, piece: bytes) -> None:
        """Add bytes as they are."""
        try:
            self._file.write(piece)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> SurroundingsError:
        return SurroundingsError(f"{self._path}: cannot be written: {error.strerror or error}")
