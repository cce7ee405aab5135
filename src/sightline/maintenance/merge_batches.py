"""Copies the batches at providers that a store has not fetched yet, so that the target fetches them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import and_, insert, select
from sqlalchemy.engine import Connection

from sightline.engine.batch_journal import drop_answered
from sightline.engine.core_connection import plain
from sightline.engine.database import insert_new
from sightline.engine.schema import batch_requests, batches
from sightline.engine.store import Store
from sightline.maintenance.sound_rows import SoundRows


def merge_batches(sound: SoundRows, target: Store) -> None:
    """Copy batches with their requests, except those that the target has or has answered.

    Args:
        sound: The sound rows of the source; its answers are in the target already.
        target: The store that receives them.
    """
    rows = [row for page in sound.pages(batches) for row in page]
    if not rows:
        return
    # One transaction: a process that closes batches drops one without requests.
    with target.database.core_write() as connection:
        numbers = {row["id"]: _number(connection, row) for row in rows}
        for page in sound.pages(batch_requests):
            keys = [(bytes(row["key"]), numbers[row["batch"]]) for row in page if row["batch"] in numbers]
            # A request stays in the batch that the target has it in.
            insert_new(plain(connection), batch_requests.name, ("key", "batch"), keys)
        drop_answered(plain(connection))


def _number(connection: Connection, row: Any) -> int:
    """The number of a batch in the target, which is added if it is missing."""
    same = and_(batches.c.address == row["address"], batches.c.file == row["file"])
    known = connection.scalar(select(batches.c.id).where(same))
    if known is not None:
        return int(known)
    values = {name: row[name] for name in ("address", "file", "batch", "state", "requests", "created")}
    key = connection.execute(insert(batches).values(**values)).inserted_primary_key
    assert key is not None
    return int(key[0])
