"""The write-ahead log of a SQLite file: which pages of it are committed and undamaged.

SQLite stops at the first damaged frame. Here later frames count too: the checksum of a frame continues that
of the frame before it, which is stored, so that each frame can be checked alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from typing import NamedTuple

_HEADER, _FRAME_HEADER = 32, 24
_MAGIC = 0x377F0682
_MASK = 0xFFFFFFFF


class CommittedPages(NamedTuple):
    """Number of each page -> its offset in the log; pages of the database; frames that are damaged."""

    offsets: Mapping[int, int]
    pages: int
    damaged: int


def committed_pages(log: int, page_size: int) -> CommittedPages:
    """Find the latest committed version of each page in a write-ahead log.

    Args:
        log: The open file.
        page_size: The page size of the database.

    Returns:
        The pages. Frames after the last commit do not count, nor those of an earlier use of the log.
    """
    header = os.pread(log, _HEADER, 0)
    frame_size = _FRAME_HEADER + page_size
    frames = (os.fstat(log).st_size - _HEADER) // frame_size
    if len(header) < _HEADER or frames < 1:
        return CommittedPages({}, 0, 0)
    magic, *_, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", header)
    order = ">" if magic == _MAGIC + 1 else "<"
    salts, before = (salt_1, salt_2), (sum_1, sum_2)
    if checksum(header[:24], (0, 0), order) != before:
        # The first frame always belongs to the latest use of the log.
        salts = struct.unpack(">2I", os.pread(log, 8, _HEADER + 8))
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    pages = damaged = pending_damaged = 0
    for offset in range(_HEADER, _HEADER + frames * frame_size, frame_size):
        frame = os.pread(log, frame_size, offset)
        number, commit, *found_salts, sum_1, sum_2 = struct.unpack_from(">6I", frame)
        is_sound = tuple(found_salts) == salts and number > 0
        if is_sound and checksum(frame[:8] + frame[_FRAME_HEADER:], before, order) == (sum_1, sum_2):
            pending[number] = offset + _FRAME_HEADER
            if commit:
                committed |= pending
                pages, damaged = commit, damaged + pending_damaged
                pending, pending_damaged = {}, 0
        else:
            pending_damaged += 1
        before = (sum_1, sum_2)
    return CommittedPages(committed, pages, damaged)


def checksum(content: bytes, before: tuple[int, int], order: str) -> tuple[int, int]:
    """Continue the checksum of a write-ahead log (section 4.2 of the file format).

    Args:
        content: Bytes, a multiple of 8.
        before: The checksum of what is before them.
        order: The byte order of the numbers, ">" or "<".

    Returns:
        The checksum of all.
    """
    first, second = before
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
