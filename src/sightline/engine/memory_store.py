"""The store `sqlite:///:memory:`: a file of this process, in memory where the system has a place for it.

SQLite's own memory has one connection, and a store has several. All openings in a process see one store.
"""

from __future__ import annotations

import atexit
import tempfile
from contextlib import ExitStack
from pathlib import Path

from sightline.formats.leftovers import temporary_folder

MEMORY = frozenset({"", ":memory:"})
"""What SQLite calls memory, in the place of a path."""

_SHARED_MEMORY = Path("/dev/shm")

_opened = ExitStack()
_files: list[Path] = []


def memory_file() -> Path:
    """Find the file of this process."""
    if not _files:
        place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
        _files.append(_opened.enter_context(temporary_folder(place / "sightline-memory")) / "memory.db")
        atexit.register(forget)
    return _files[0]


def is_memory_file(path: Path) -> bool:
    """Whether a path is that of the file of this process."""
    return path in _files


def forget() -> None:
    """Remove the file, as at the end of the process."""
    _opened.close()
    _files.clear()
