"""The write-ahead log of a SQLite file: which pages of it are committed and undamaged.

SQLite stops at the first damaged frame. Here later frames count too: the checksum of a frame continues that
of the frame before it, which is stored, so that each frame can be checked alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

DEFAULT_PAGE_SIZE = 4096
"""SQLite's default, which Sightline never changes; used where a header is damaged."""

_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF
_BLOCK = 256
"""Frames that are read together."""


class CommittedPages(NamedTuple):
    """What is committed in a write-ahead log.

    Attributes:
        offsets: Number of each page -> the offset of its latest undamaged version in the log.
        pages: The pages of the database; 0 if nothing is committed.
        damaged: Damaged frames before the last commit.
        has_header: Whether the header is sound.
    """

    offsets: Mapping[int, int]
    pages: int
    damaged: int
    has_header: bool

    @property
    def is_damaged(self) -> bool:
        """Whether SQLite would drop committed pages."""
        return bool(self.damaged or (self.pages and not self.has_header))


class _Frame(NamedTuple):
    offset: int
    page: int
    commit: int
    salts: tuple[int, ...]
    is_sound: bool


def committed_pages(log: int, page_size: int) -> CommittedPages:
    """Find the latest committed version of each page in a write-ahead log.

    Args:
        log: The open file.
        page_size: The page size of the database.

    Returns:
        The pages. Frames after the last commit do not count, nor those of an earlier use of the log.
    """
    header = os.pread(log, _HEADER, 0)
    if len(header) < _HEADER:
        return CommittedPages({}, 0, 0, has_header=False)
    magic, *_, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", header)
    order, has_header = _order(magic), _is_sound_header(header)
    salts: tuple[int, ...] | None = (salt_1, salt_2) if has_header else None
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    pages = damaged = pending_damaged = 0
    for frame in _frames(log, page_size, order, (sum_1, sum_2)):
        # The first frame always belongs to the latest use of the log.
        salts = salts or frame.salts
        if frame.is_sound and frame.salts == salts and frame.page:
            pending[frame.page] = frame.offset
            if frame.commit:
                committed |= pending
                pages, damaged = frame.commit, damaged + pending_damaged
                pending, pending_damaged = {}, 0
        else:
            pending_damaged += 1
    return CommittedPages(committed, pages, damaged, has_header)


def logged_page_size(log: int) -> int:
    """Read the page size that a write-ahead log states.

    Args:
        log: The open file.

    Returns:
        The page size in bytes; the default where the header is damaged.
    """
    header = os.pread(log, _HEADER, 0)
    return int(struct.unpack_from(">I", header, 8)[0]) if _is_sound_header(header) else DEFAULT_PAGE_SIZE


def _is_sound_header(header: bytes) -> bool:
    if len(header) < _HEADER:
        return False
    magic, *_, sum_1, sum_2 = struct.unpack(">8I", header)
    words = np.frombuffer(header[:24], _order(magic)).reshape(1, 6)
    return bool((_checksums(words, np.zeros((1, 2), np.uint32)) == (sum_1, sum_2)).all())


def _order(magic: int) -> str:
    """The type of the words of which checksums are made."""
    return ">u4" if magic == _MAGIC + 1 else "<u4"


def _frames(log: int, page_size: int, order: str, before: tuple[int, int]) -> Iterator[_Frame]:
    """All frames; `before` is the checksum of the header."""
    size = _FRAME_HEADER + page_size
    frames = (os.fstat(log).st_size - _HEADER) // size
    previous = np.array([before], np.uint32)
    for first in range(0, frames, _BLOCK):
        start = _HEADER + first * size
        content = os.pread(log, min(_BLOCK, frames - first) * size, start)
        block = np.frombuffer(content[: len(content) // size * size], np.uint8).reshape(-1, size)
        heads = np.ascontiguousarray(block[:, :_FRAME_HEADER]).view(">u4").astype(np.uint32)
        words = np.concatenate([block[:, :8], block[:, _FRAME_HEADER:]], axis=1).view(order)
        stored = heads[:, 4:]
        sums = _checksums(words, np.concatenate([previous, stored[:-1]]))
        sound = (sums == stored).all(axis=1).tolist()
        for place, (page, commit, salt_1, salt_2, *_) in enumerate(heads.tolist()):
            offset = start + place * size + _FRAME_HEADER
            yield _Frame(offset, page, commit, (salt_1, salt_2), sound[place])
        previous = stored[-1:]


def _checksums(words: NDArray[Any], before: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Continue checksums (section 4.2 of the file format). They are linear in their words.

    Args:
        words: Shape (texts, words).
        before: The checksums of what is before each text, shape (texts, 2).

    Returns:
        The checksums, shape (texts, 2).
    """
    weights, power = _weights(words.shape[1] // 2)
    return words.astype(np.uint32) @ weights + before @ power


@cache
def _weights(pairs: int) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """What each word adds to both numbers of a checksum, and what both numbers before add."""
    # A pair (x, y) makes (a, b) to (a + x + b, b + y + a + x + b).
    of_before = [(1, 0), (0, 1)]
    rows: list[tuple[int, int]] = []
    for _ in range(pairs):
        (a, b), (c, d) = of_before
        rows += [(c, d), ((a + c) & _MASK, (b + d) & _MASK)]
        of_before = [((a + c) & _MASK, (b + d) & _MASK), ((a + 2 * c) & _MASK, (b + 2 * d) & _MASK)]
    return np.array(rows[::-1], np.uint32), np.array(of_before, np.uint32)
