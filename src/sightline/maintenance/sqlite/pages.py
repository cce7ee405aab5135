"""The pages of a SQLite file with those of its write-ahead log, of which any may be damaged.

The file format: https://www.sqlite.org/fileformat2.html (sections 1.3, 1.5 and 4).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from sightline.engine.write_ahead_log import DEFAULT_PAGE_SIZE, committed_pages
from sightline.errors import UserError

MAGIC = b"SQLite format 3\0"
_MOST_PAGES = 1 << 31


class Pages:
    """The pages of a database, numbered from 1, as its last transaction left them. Nothing is written.

    Attributes:
        size: Bytes in a page.
        usable: Bytes in a page that hold data.
        count: The number of pages.
        damaged_frames: Pages of the write-ahead log whose checksum is wrong; they are not used.
        has_header: Whether the header of the file is readable.
    """

    def __init__(self, path: Path) -> None:
        """Open a database and its write-ahead log, `PATH-wal`.

        Args:
            path: The file.

        Raises:
            UserError: The file cannot be read.
        """
        if path.exists() and not path.is_file():
            raise UserError("is not a file", file=path, expected="a store")
        try:
            self._file = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise UserError(f"cannot be read: {error.strerror}", file=path, expected="a store") from None
        self._log = _open_or_none(path.with_name(f"{path.name}-wal"))
        header = os.pread(self._file, 100, 0)
        self.has_header = header.startswith(MAGIC) and _page_size(header) is not None
        self.size = (_page_size(header) if self.has_header else None) or DEFAULT_PAGE_SIZE
        self.usable = self.size - (header[20] if self.has_header else 0)
        self._in_log: Mapping[int, int] = {}
        self.count = -(-os.fstat(self._file).st_size // self.size)
        self.damaged_frames = 0
        if self._log is not None:
            found = committed_pages(self._log, self.size)
            self._in_log, self.damaged_frames = found.offsets, found.damaged
            self.count = max(self.count, found.pages)

    def __enter__(self) -> Self:
        """Use the open files."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        os.close(self._file)
        if self._log is not None:
            os.close(self._log)

    def page(self, number: int) -> bytes:
        """Read a page.

        Args:
            number: Its number, from 1.

        Returns:
            Its bytes; what is missing at the end of a truncated file is zero.
        """
        offset = self._in_log.get(number)
        if offset is not None and self._log is not None:
            found = os.pread(self._log, self.size, offset)
        else:
            found = os.pread(self._file, self.size, (number - 1) * self.size)
        return found.ljust(self.size, b"\0")

    @property
    def missing(self) -> int:
        """Pages that the header counts and the file does not have."""
        if not self.has_header:
            return 0
        (declared,) = struct.unpack_from(">I", self.page(1), 28)
        return max(0, declared - self.count) if declared < _MOST_PAGES else 0

    def free_pages(self) -> set[int]:
        """List the pages that hold nothing, as far as their list is readable.

        Returns:
            The numbers of the pages.
        """
        free: set[int] = set()
        (trunk,) = struct.unpack_from(">I", self.page(1), 32) if self.page(1).startswith(MAGIC) else (0,)
        while 0 < trunk <= self.count and trunk not in free:
            free.add(trunk)
            page = self.page(trunk)
            trunk, leaves = struct.unpack_from(">II", page)
            if leaves > self.usable // 4 - 2:
                break
            free.update(struct.unpack_from(f">{leaves}I", page, 8))
        return free


def _page_size(header: bytes) -> int | None:
    """The page size that a header states; None if it is none that SQLite has."""
    if len(header) < 100:
        return None
    (size,) = struct.unpack_from(">H", header, 16)
    size = 65536 if size == 1 else size
    is_valid = 512 <= size <= 65536 and size & (size - 1) == 0
    return size if is_valid and header[20] <= size - 480 else None


def _open_or_none(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
