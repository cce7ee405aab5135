"""What a store holds: sizes by table and by run, models, dates."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs
from sqlalchemy import func, select

from sightline.engine import schema
from sightline.engine.connect import connect, display
from sightline.engine.store import Store
from sightline.engine.tables import SCHEMA_VERSION
from sightline.local_time import local_time
from sightline.maintenance.opening import version_of
from sightline.maintenance.sizes import FileSizes, TableSize, file_sizes, run_bytes, table_sizes
from sightline.results.run_list import list_runs


class RunSize(Struct, frozen=True, kw_only=True):
    """A run, and the bytes that only it needs."""

    run: int
    task: str
    model: str
    started: str
    state: str
    bytes: int


class Inventory(Struct, frozen=True, kw_only=True):
    """What a store holds.

    Attributes:
        store: Its path or URL.
        schema_version: The version of its schema.
        needs_migration: Whether an older Sightline wrote it; `models`, `runs` and dates are unknown then.
        sizes: The room that it takes.
        tables: Its tables, the largest first.
        models: The identities of the models that requests are for.
        first_answer: When the first attempt was stored (local time); None without attempts.
        last_answer: When the last one was.
        runs: Its runs.
    """

    store: str
    schema_version: int
    needs_migration: bool
    sizes: FileSizes
    tables: Sequence[TableSize]
    models: Sequence[str] = ()
    first_answer: str | None = None
    last_answer: str | None = None
    runs: Sequence[RunSize] = ()


def take_inventory(url: str) -> Inventory:
    """List what a store holds; nothing is changed, an older store is not migrated.

    Args:
        url: A path or a database URL.

    Returns:
        The inventory.

    Raises:
        UserError: There is no store.
        EnvironmentFailedError: The database fails.
    """
    version = version_of(url)
    database = connect(url, create=False)
    try:
        with database.core_read() as connection:
            sizes, tables = file_sizes(connection), table_sizes(connection)
    finally:
        database.close()
    general = Inventory(
        store=display(url),
        schema_version=version,
        needs_migration=version < SCHEMA_VERSION,
        sizes=sizes,
        tables=tables,
    )
    return general if version != SCHEMA_VERSION else _with_content(general, url)


def _with_content(general: Inventory, url: str) -> Inventory:
    store = Store.open(url, create=False)
    try:
        with store.database.core_read() as connection:
            created = schema.answers.c.created
            first, last = connection.execute(select(func.min(created), func.max(created))).one()
            models = connection.execute(select(schema.models.c.identity)).scalars().all()
            sizes = run_bytes(connection)
        return structs.replace(
            general,
            models=sorted(models),
            first_answer=None if first is None else local_time(first),
            last_answer=None if last is None else local_time(last),
            runs=[
                RunSize(
                    run=line.number,
                    task=line.task,
                    model=line.model,
                    started=line.started,
                    state=line.state,
                    bytes=sizes.get(line.number, 0),
                )
                for line in list_runs(store)
            ],
        )
    finally:
        store.close()
