"""The size of an ordinary JPEG file from its header. Pillow takes ten times as long, and its import 25 ms."""

from __future__ import annotations

from struct import unpack_from

_START = b"\xff\xd8\xff"
_JFIF, _TABLES, _SCAN = 0xE0, 0xDB, 0xDA
_FRAMES = frozenset({0xC0, 0xC2})
"""Start of frame: baseline and progressive, which nearly all files have."""
_SKIPPED = frozenset({0xC4, 0xDD, 0xFE})
"""Huffman tables, restart interval, comment."""


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Read the size of a JPEG file that has nothing unusual before its first scan.

    The segments are those of ITU-T T.81, annex B, and JFIF.

    Args:
        data: The content of a file in any format.

    Returns:
        Width and height in pixels as Pillow reads them; None for every file that needs a closer look: another
        format, damaged, with Exif, colour profile or several images.
    """
    if not data.startswith(_START):
        return None
    size, at = None, 2
    while at + 4 <= len(data):
        prefix, marker, length = unpack_from(">BBH", data, at)
        start, at = at + 4, at + 2 + length
        if prefix != 0xFF or at > len(data):
            return None
        if marker == _SCAN:
            return size
        if marker in _FRAMES:
            size = _frame_size(data[start:at])
            if not size:
                return None
        elif marker == _TABLES:
            if not _are_tables(data[start:at]):
                return None
        elif marker == _JFIF:
            if length < 16 or not data.startswith(b"JFIF\0", start):
                return None
        elif marker not in _SKIPPED:
            return None
    return None


def _frame_size(frame: bytes) -> tuple[int, int] | None:
    """Width and height of a frame of 8 bits with one, three or four components."""
    if len(frame) < 6:
        return None
    bits, height, width, components = unpack_from(">BHHB", frame)
    usual = bits == 8 and components in (1, 3, 4) and len(frame) == 6 + 3 * components
    return (width, height) if usual and width and height else None


def _are_tables(content: bytes) -> bool:
    """Whether a segment holds whole quantization tables: a byte, then 64 values of one or two bytes."""
    while content:
        size = 65 if content[0] < 16 else 129
        if len(content) < size:
            return False
        content = content[size:]
    return True
