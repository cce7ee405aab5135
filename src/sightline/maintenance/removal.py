"""Removes faulty rows from a salvaged store, and marks the runs that lost something as not finished."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import and_, delete, update

from sightline.engine import schema
from sightline.engine.store import Store
from sightline.maintenance.faults import Fault


def remove_faulty(store: Store, faults: Sequence[Fault]) -> None:
    """Remove rows that are wrong.

    Args:
        store: The store.
        faults: What is wrong in it.
    """
    with store.database.write() as connection:
        for fault in faults:
            if fault.key:
                table = schema.metadata.tables[fault.table]
                matches = (table.c[name] == value for name, value in fault.key.items())
                connection.execute(delete(table).where(and_(*matches)))
        for run in sorted({fault.run for fault in faults if fault.run is not None}):
            connection.execute(update(schema.runs).where(schema.runs.c.id == run).values(finished=None))
