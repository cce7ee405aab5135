"""Blocks of groups: rows for lists, and lines of answers.jsonl and verdicts.jsonl, compressed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sightline.engine.compression import Compressor, DamagedBodyError
from sightline.engine.database_errors import damage
from sightline.outcome_index.group_entry import StoredRow
from sightline.results.folder import Lines

BLOCK = 64
"""The groups of a block."""

_compressor = Compressor()
_rows = msgspec.msgpack.Decoder(list[StoredRow])
_lines = msgspec.msgpack.Decoder(list[Lines])


class Block(NamedTuple):
    """A block as the table has it."""

    rows: bytes
    lines: bytes


def encode_block(rows: Sequence[StoredRow], lines: Sequence[Lines]) -> Block:
    """Encode a block.

    Args:
        rows: The row of each of its groups.
        lines: The lines of each of its groups.

    Returns:
        The block.
    """
    return Block(
        _compressor.compress(msgspec.msgpack.encode(rows)),
        _compressor.compress(msgspec.msgpack.encode(lines)),
    )


def decode_rows(body: bytes, store: str, block: int) -> list[StoredRow]:
    """Decode the rows of a block.

    Args:
        body: The encoded rows.
        store: The store's name in messages.
        block: The number of the block, for messages.

    Returns:
        The rows.

    Raises:
        EnvironmentFailedError: They are damaged.
    """
    try:
        return _rows.decode(_compressor.decompress(body))
    except (DamagedBodyError, msgspec.MsgspecError) as error:
        raise damage(store, "index_blocks", block, str(error)) from None


def decode_lines(body: bytes, store: str, block: int) -> list[Lines]:
    """Decode the lines of a block.

    Args:
        body: The encoded lines.
        store: The store's name in messages.
        block: The number of the block, for messages.

    Returns:
        The lines of each group.

    Raises:
        EnvironmentFailedError: They are damaged.
    """
    try:
        return _lines.decode(_compressor.decompress(body))
    except (DamagedBodyError, msgspec.MsgspecError) as error:
        raise damage(store, "index_blocks", block, str(error)) from None
