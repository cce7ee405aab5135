"""The rows in a page of a SQLite file (sections 1.6 and 2.1 of the file format). A damaged row is no row."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from sightline.maintenance.sqlite.pages import Pages

TABLE_INTERIOR, TABLE_LEAF, INDEX_INTERIOR, INDEX_LEAF = 5, 13, 2, 10
KINDS = {TABLE_INTERIOR, TABLE_LEAF, INDEX_INTERIOR, INDEX_LEAF}

_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}

Value = int | float | str | bytes | None


class Row(NamedTuple):
    """A row as it is stored: its number (None in a table without numbers) and its values."""

    number: int | None
    values: tuple[Value, ...]


class Node(NamedTuple):
    """A page of a table: its kind, the pages below it, the offsets of its cells.

    `damaged` counts entries that point outside the page or the file.
    """

    kind: int
    children: tuple[int, ...]
    cells: tuple[int, ...]
    damaged: int


class DamagedRowError(Exception):
    """The bytes are no row."""


def read_node(pages: Pages, number: int) -> Node | None:
    """Read the structure of a page.

    Args:
        pages: The database.
        number: The number of the page.

    Returns:
        The structure; None if the page is damaged, or of another kind.
    """
    page, start = pages.page(number), 100 if number == 1 else 0
    kind, _, count, content, _ = struct.unpack_from(">BHHHB", page, start)
    is_interior = kind in (TABLE_INTERIOR, INDEX_INTERIOR)
    head = start + (12 if is_interior else 8)
    if kind not in KINDS or head + 2 * count > (content or 65536) or (content or 65536) > pages.usable:
        return None
    listed = struct.unpack_from(f">{count}H", page, head)
    cells = tuple(cell for cell in listed if (content or 65536) <= cell <= pages.usable - 4)
    children: tuple[int, ...] = ()
    if is_interior:
        (right,) = struct.unpack_from(">I", page, start + 8)
        listed_children = (*(struct.unpack_from(">I", page, cell)[0] for cell in cells), right)
        children = tuple(child for child in listed_children if 1 < child <= pages.count)
    damaged = count - len(cells) + is_interior * (len(cells) + 1 - len(children))
    return Node(kind, children, cells, damaged)


def read_rows(pages: Pages, number: int, node: Node) -> Iterator[Row | None]:
    """Read the rows in a page.

    Args:
        pages: The database.
        number: The number of the page.
        node: Its structure.

    Yields:
        Each row; None for a damaged one.
    """
    if node.kind == TABLE_INTERIOR:
        return
    page = pages.page(number)
    for cell in node.cells:
        try:
            yield _row(pages, page, cell, node.kind)
        except (DamagedRowError, UnicodeDecodeError, IndexError, struct.error):
            yield None


def _row(pages: Pages, page: bytes, at: int, kind: int) -> Row:
    if kind == INDEX_INTERIOR:
        at += 4
    size, at = _varint(page, at)
    number = None
    if kind == TABLE_LEAF:
        number, at = _varint(page, at)
        number = number - (1 << 64) if number >> 63 else number
    return Row(number, _values(_payload(pages, page, at, size, kind)))


def _payload(pages: Pages, page: bytes, at: int, size: int, kind: int) -> bytes:
    """The bytes of a row, of which a long one continues in other pages."""
    usable = pages.usable
    most = usable - 35 if kind == TABLE_LEAF else (usable - 12) * 64 // 255 - 23
    if size <= most:
        if at + size > usable:
            raise DamagedRowError
        return page[at : at + size]
    if size > pages.count * pages.size:
        raise DamagedRowError
    least = (usable - 12) * 32 // 255 - 23
    local = least + (size - least) % (usable - 4)
    local = local if local <= most else least
    if at + local + 4 > usable:
        raise DamagedRowError
    pieces, left = [page[at : at + local]], size - local
    (following,) = struct.unpack_from(">I", page, at + local)
    while left:
        if not 1 < following <= pages.count:
            raise DamagedRowError
        more = pages.page(following)
        (following,) = struct.unpack_from(">I", more)
        pieces.append(more[4 : 4 + min(left, usable - 4)])
        left -= len(pieces[-1])
    if following:
        raise DamagedRowError
    return b"".join(pieces)


def _values(payload: bytes) -> tuple[Value, ...]:
    head, at = _varint(payload, 0)
    if head > len(payload):
        raise DamagedRowError
    types: list[int] = []
    while at < head:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != head or not types:
        raise DamagedRowError
    values: list[Value] = []
    for kind in types:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise DamagedRowError
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    """The value of a serial type, and where the next one begins."""
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in (10, 11):
        raise DamagedRowError
    size = _INTEGER_SIZES.get(kind, 8 if kind == 7 else (kind - 12) // 2)
    content, end = payload[at : at + size], at + size
    if len(content) != size:
        raise DamagedRowError
    if kind < 7:
        return int.from_bytes(content, "big", signed=True), end
    if kind == 7:
        return float(struct.unpack(">d", content)[0]), end
    return (content.decode("utf-8") if kind % 2 else content), end


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where the next byte after it is."""
    value = 0
    for place in range(8):
        byte = content[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + place + 1
    return value << 8 | content[at + 8], at + 9
