"""Reads everything in a store and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Column, Table, exists, func, select

from sightline.engine import schema
from sightline.engine.connect import display, sqlite_path
from sightline.engine.database import Database
from sightline.engine.database_errors import StoreFailedError, repair_command
from sightline.engine.store import Store
from sightline.maintenance.damaged_tables import Unreadable, read_around_damage
from sightline.maintenance.faults import DELETE, GC, Fault, key_of
from sightline.maintenance.opening import unchanged_store
from sightline.maintenance.row_checks import RowChecks
from sightline.maintenance.run_checks import faults_of_runs
from sightline.maintenance.sqlite.pages import Pages
from sightline.maintenance.table_reader import read_pages
from sightline.progress import Advance, progress

REFERENCES: tuple[tuple[Column[Any], Column[Any]], ...] = (
    (schema.answers.c.request, schema.requests.c.id),
    (schema.batch_requests.c.batch, schema.batches.c.id),
    (schema.probes.c.run, schema.runs.c.id),
    (schema.verdicts.c.run, schema.runs.c.id),
    (schema.run_labels.c.run, schema.runs.c.id),
    (schema.run_tags.c.run, schema.runs.c.id),
    (schema.annotation_items.c.project, schema.annotation_projects.c.id),
    (schema.annotators.c.project, schema.annotation_projects.c.id),
    (schema.annotation_log.c.project, schema.annotation_projects.c.id),
)
"""Columns that name a row of another table."""

MOST_STRUCTURE = 100
"""Faults of the structure of a file that are listed."""


def verify(url: str, *, show_progress: bool) -> Iterator[Fault]:
    """Find what is wrong in a store that may be too damaged to be opened. An older one is checked in a copy.

    Args:
        url: A path or a database URL.
        show_progress: Whether progress is displayed.

    Yields:
        The faults, each with a remedy.

    Raises:
        UserError: There is no store, or a newer Sightline wrote it.
        EnvironmentFailedError: The server of the store fails.
    """
    remedy = repair_command(display(url))
    try:
        with unchanged_store(url) as store:
            for fault in find_faults(store, show_progress=show_progress):
                yield replace(fault, remedy=fault.remedy or remedy)
    except StoreFailedError as error:
        path = sqlite_path(url)
        if path is None:
            raise
        for problem in (*_missing_end(path), error.reason):
            yield Fault(problem=problem, remedy=remedy)


def _missing_end(path: Path) -> Iterator[str]:
    """SQLite refuses a truncated file without saying why."""
    with Pages(path) as pages:
        if pages.missing:
            counted, there = pages.count + pages.missing, pages.count
            yield f"the header of the file counts {counted:,} pages, the file has {there:,}: its end is lost"


def find_faults(store: Store, *, show_progress: bool) -> Iterator[Fault]:
    """Find what is wrong in a store.

    Args:
        store: The store.
        show_progress: Whether progress is displayed.

    Yields:
        The faults: of the file, of single rows, of references between tables, of runs.
    """
    database = store.database
    tables = schema.metadata.sorted_tables
    yield from _faults_of_file(database)
    checks = RowChecks(store.name)
    rows = sum(_count(database, table) for table in tables)
    with progress("verify", rows, "rows", show_progress=show_progress) as advance:
        for table in tables:
            yield from _faults_of_rows(database, checks, table, advance)
    for column, target in REFERENCES:
        yield from _dangling(database, column, target)
    yield from faults_of_runs(store)


def _count(database: Database, table: Table) -> int:
    """The number of rows of a table, for the progress; 0 if they cannot be counted."""
    try:
        with database.core_read() as connection:
            return connection.execute(select(func.count()).select_from(table)).scalar_one()
    except StoreFailedError:
        return 0


def _faults_of_file(database: Database) -> Iterator[Fault]:
    """What SQLite finds in the structure of the file; a server checks its own files."""
    try:
        with database.core_read() as connection:
            if connection.dialect.name != "sqlite":
                return
            found = connection.exec_driver_sql(f"PRAGMA integrity_check({MOST_STRUCTURE})").scalars().all()
    except StoreFailedError as error:
        found = [error.reason]
    yield from (Fault(problem=str(line)) for line in found if line != "ok")


def _faults_of_rows(database: Database, checks: RowChecks, table: Table, advance: Advance) -> Iterator[Fault]:
    for page in read_around_damage(database, table):
        if isinstance(page, Unreadable):
            yield Fault(table=str(table.name), problem=f"{page.where} cannot be read: {page.reason}")
            continue
        with database.core_read() as connection:
            for row, problem in checks.problems(connection, table.name, page):
                yield Fault(
                    table=str(table.name),
                    key=key_of(table, row),
                    run=row.get("run"),
                    problem=problem,
                    remedy=DELETE.format(row["id"]) if table is schema.runs else "",
                )
        advance(len(page))


def _dangling(database: Database, column: Column[Any], target: Column[Any]) -> Iterator[Fault]:
    """Rows that name a row of another table that does not exist."""
    is_dangling = ~exists().where(target == column)
    try:
        for page in read_pages(database, column.table, column.is_not(None), is_dangling):
            for row in page:
                yield Fault(
                    table=str(column.table.name),
                    key=key_of(column.table, row),
                    run=row.get("run"),
                    problem=f"{column.key} {row[column.key]} does not exist in {target.table.name}",
                    remedy=GC if target.table is schema.runs else "",
                )
    except StoreFailedError as error:
        yield Fault(
            table=str(column.table.name),
            problem=f"its references to {target.table.name} cannot be checked: {error.reason}",
        )
