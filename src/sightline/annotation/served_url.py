"""Where the pages of a store's projects were served last: links on the command line begin there."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct
from sqlalchemy import delete, select
from sqlalchemy import insert as insert_one

from sightline.engine.database import Database
from sightline.engine.database_errors import repeat_if_lost
from sightline.engine.schema import meta

NAME = "annotation_url"
"""The row of the table `meta`."""


class ServedUrl(Struct, frozen=True):
    """The URL before `/annotate`, and when the server started (seconds since 1970)."""

    base: str
    started: float


@repeat_if_lost
def keep_served_url(database: Database, base: str, clock: Callable[[], float]) -> None:
    """Record that a server of the store has started.

    Args:
        clock: Returns the seconds since 1970.
    """
    value = msgspec.json.encode(ServedUrl(base, clock())).decode()
    with database.core_write() as connection:
        connection.execute(delete(meta).where(meta.c.name == NAME))
        connection.execute(insert_one(meta).values(name=NAME, value=value))


@repeat_if_lost
def served_url(database: Database) -> ServedUrl | None:
    """Read where the store was served last.

    Returns:
        The URL; None if the store was never served.
    """
    with database.core_read() as connection:
        value = connection.scalar(select(meta.c.value).where(meta.c.name == NAME))
    return None if value is None else msgspec.json.decode(value, type=ServedUrl)
