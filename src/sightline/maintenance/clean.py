"""Drops what no run needs, and gives the room back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Table, delete, exists, func, or_, select
from sqlalchemy import table as table_named

from sightline.engine import index_tables, renewals, run_leases, schema
from sightline.engine.batch_journal import drop_answered
from sightline.engine.connect import connect, display, sqlite_path
from sightline.engine.core_connection import plain
from sightline.engine.sqlite_check import check_sqlite_file
from sightline.engine.store import Store
from sightline.errors import EnvironmentFailedError, UserError
from sightline.maintenance.sizes import content_bytes, file_sizes
from sightline.maintenance.unused_requests import drop_unused_requests, drop_unused_texts

CACHES = (schema.images, schema.vectors, schema.readings, schema.results, schema.plans)


class CleaningOptions(Struct, frozen=True, kw_only=True):
    """What goes besides leftovers.

    Attributes:
        caches: Whether the caches go: metadata of images, vectors, OCR results, judged results, plans, the
            index of outcomes with thumbnails.
        unfinished_runs: Whether runs go that did not finish.
        unreferenced_answers: Whether answers go that no run refers to.
        dry_run: Whether nothing is changed.
    """

    caches: bool = False
    unfinished_runs: bool = False
    unreferenced_answers: bool = False
    dry_run: bool = False


class Dropped(Struct, frozen=True, kw_only=True):
    """Rows that go from a table, and why."""

    table: str
    rows: int
    reason: str


class Cleaning(Struct, frozen=True, kw_only=True):
    """What was dropped, or would be.

    Attributes:
        dropped: The rows by table and reason.
        cache_bytes: The bytes in the caches that stay.
        bytes_before: The size of the store.
        bytes_after: Its size now; None after a dry run.
    """

    dropped: Sequence[Dropped]
    cache_bytes: int
    bytes_before: int
    bytes_after: int | None


def clean(url: str, options: CleaningOptions) -> Cleaning:
    """Drop what no run needs.

    Args:
        url: A path or a database URL.
        options: What goes.

    Returns:
        What was dropped, or would be.

    Raises:
        UserError: There is no store, or another process works with it.
        EnvironmentFailedError: The database fails; nothing is dropped then.
    """
    _refuse_busy_file(url)
    store = Store.open(url, create=False)
    try:
        with store.database.core_read() as connection:
            before = file_sizes(connection).bytes
        with store.database.core_write() as connection:
            _refuse_busy_store(connection, store)
            dropped = [one for one in _drop(connection, store.name, options) if one.rows]
            cache_bytes = content_bytes(connection, [*CACHES, *_index_tables(connection)])
            if options.dry_run:
                connection.rollback()
    finally:
        store.close()
    after = None if options.dry_run else _vacuum(url)
    return Cleaning(dropped=dropped, cache_bytes=cache_bytes, bytes_before=before, bytes_after=after)


def _vacuum(url: str) -> int:
    """Give the room back; returns the size of the store."""
    database = connect(url, create=False)
    try:
        if (path := sqlite_path(url)) is not None:
            with closing(sqlite3.connect(path, isolation_level=None)) as file:
                file.execute("VACUUM")
                file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with database.core_read() as connection:
            if path is None:
                connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM")
            return file_sizes(connection).bytes
    except sqlite3.Error as error:
        raise EnvironmentFailedError(
            f"{path} was cleaned, but is as large as before: {error}; make room, then run the command again"
        ) from None
    finally:
        database.close()


def _drop(connection: Connection, name: str, options: CleaningOptions) -> list[Dropped]:
    """Drop the rows, in an order in which each step leaves what the next one finds unused."""
    runs = schema.runs
    is_copy = runs.c.uid.like("%+")
    goes = or_(is_copy, runs.c.finished.is_(None)) if options.unfinished_runs else is_copy
    why = (
        "runs that did not finish"
        if options.unfinished_runs
        else "copies of runs that a merge did not finish"
    )
    dropped = [_delete(connection, runs, goes, why)]
    for table in (schema.probes, schema.verdicts, schema.run_labels, schema.run_tags):
        orphan = ~exists().where(runs.c.id == table.c.run)
        dropped.append(_delete(connection, table, orphan, "of runs that do not exist"))
    unused = ~exists().where(schema.probes.c.definitions == schema.definitions.c.id)
    dropped.append(_delete(connection, schema.definitions, unused, "that no run has"))
    if options.unreferenced_answers:
        requests, answers = drop_unused_requests(connection, name)
        dropped.append(Dropped(table="requests", rows=requests, reason="that no run refers to"))
        dropped.append(Dropped(table="answers", rows=answers, reason="that no run refers to"))
    in_batches = drop_answered(plain(connection))
    dropped.append(Dropped(table="batch_requests", rows=in_batches, reason="that are answered"))
    texts = drop_unused_texts(connection, name)
    dropped.append(Dropped(table="texts", rows=texts, reason="that no request has"))
    # No process works with the store now.
    ended = (schema.claims, schema.run_leases, schema.spending)
    dropped += [_delete(connection, table, None, "of processes that ended") for table in ended]
    if options.caches:
        dropped += [_delete(connection, table, None, "cache, filled again when needed") for table in CACHES]
        dropped += _drop_index(connection)
    elif index_tables.existing(connection):
        indexes = index_tables.indexes.c
        query = select(indexes.id).where(~exists().where(runs.c.id == indexes.run))
        numbers = connection.scalars(query).all()
        index_tables.drop_indexes(connection, numbers)
        dropped.append(Dropped(table="index_runs", rows=len(numbers), reason="of runs that do not exist"))
    return dropped


def _drop_index(connection: Connection) -> list[Dropped]:
    """Drop the index of outcomes, and its tables."""
    dropped = [
        Dropped(
            table=name,
            rows=connection.scalar(select(func.count()).select_from(table_named(name))) or 0,
            reason="index, built again when needed",
        )
        for name in index_tables.existing(connection)
    ]
    index_tables.drop_tables(connection)
    return dropped


def _index_tables(connection: Connection) -> list[Table]:
    names = index_tables.existing(connection)
    return [one for one in index_tables.metadata.sorted_tables if one.name in names]


def _delete(connection: Connection, table: Table, goes: ColumnElement[bool] | None, reason: str) -> Dropped:
    statement = delete(table) if goes is None else delete(table).where(goes)
    return Dropped(table=str(table.name), rows=connection.execute(statement).rowcount, reason=reason)


def _refuse_busy_file(url: str) -> None:
    """Refuse a SQLite store that another process has open: only a lone process gets this lock."""
    path = sqlite_path(url)
    if path is None or not path.exists():
        return
    check_sqlite_file(path, create=False)
    try:
        with closing(sqlite3.connect(path, timeout=1, isolation_level=None)) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise _busy(display(url)) from None
    except sqlite3.DatabaseError:
        return  # no store, which is reported when it is opened


def _refuse_busy_store(connection: Connection, store: Store) -> None:
    """Refuse a store while a process works on a run of it, or sends requests."""
    if connection.dialect.name == "postgresql":
        # No other process writes to these tables until the end of this transaction, or has looked up a row of
        # texts, requests or definitions that it will refer to (`announce_insert`).
        # They are locked in the order in which runs write to them: another order could become a deadlock.
        connection.exec_driver_sql(
            "LOCK TABLE texts, requests, answers, claims, definitions, probes, run_leases, runs "
            "IN SHARE ROW EXCLUSIVE MODE"
        )
    if runs := sorted(store.leases.held()):
        raise _busy(store.name, f"run {runs[0]}")
    if store.claims.held():
        raise _busy(store.name, "a process that sends requests, or merges")


def _busy(name: str, found: str | None = None) -> UserError:
    return UserError(
        "another process works with this store",
        file=name,
        found=found,
        expected="no run, viewer or worker that uses it; a killed one counts for "
        f"{max(run_leases.LEASE_SECONDS, renewals.LEASE_SECONDS):.0f} seconds",
    )
