"""Removes what is wrong in a salvaged store, so that everything that stays is sound."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, delete, update
from sqlalchemy.engine import Connection

from sightline.engine import schema
from sightline.engine.core_connection import plain
from sightline.engine.dictionaries import Dictionaries
from sightline.engine.requests import frame_only
from sightline.engine.store import Store
from sightline.engine.texts import Texts
from sightline.maintenance.faults import Fault


def remove_faulty(store: Store, faults: Sequence[Fault]) -> None:
    """Remove rows that are wrong, and mark the runs that lost something as not finished.

    A request whose texts are lost stays with an empty text, because its key leads to its answers.

    Args:
        store: The store.
        faults: What is wrong in it.
    """
    with store.database.core_write() as connection:
        for fault in faults:
            table = schema.metadata.tables.get(fault.table)
            if table is None or not fault.key:
                continue
            row = and_(*(table.c[name] == value for name, value in fault.key.items()))
            if table is schema.requests:
                body = _empty_request(connection, store.name)
                connection.execute(update(table).where(row).values(body=body))
            else:
                connection.execute(delete(table).where(row))
        for run in sorted({fault.run for fault in faults if fault.run is not None}):
            connection.execute(update(schema.runs).where(schema.runs.c.id == run).values(finished=None))


def _empty_request(connection: Connection, name: str) -> bytes:
    """The body of a request whose canonical JSON is lost."""
    return frame_only(Texts(Dictionaries(name)).add(plain(connection), [b""])[b""])
