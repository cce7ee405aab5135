"""Reads whole tables in pages, so that memory stays small and no other process waits for long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from sqlalchemy import ColumnElement, Connection, RowMapping, Table, select, tuple_

from sightline.engine.database import Database

PAGE = 500
"""Rows that are read at once."""


def read_pages(
    source: Database | Connection, table: Table, *conditions: ColumnElement[bool]
) -> Iterator[Sequence[RowMapping]]:
    """Read a table in the order of its primary key.

    Args:
        source: A database, which is free between two pages; or a connection, to read in its transaction.
        table: The table.
        *conditions: What the rows must fulfil.

    Yields:
        Rows, column -> value, a few hundred at once.

    Raises:
        EnvironmentFailedError: The database fails.
    """
    key = list(table.primary_key.columns)
    names = [column.key for column in key]
    columns = [column.label(column.key) for column in table.columns]
    query = select(*columns).where(*conditions).order_by(*key).limit(PAGE)
    page: Sequence[RowMapping] = ()
    while True:
        following = query.where(tuple_(*key) > tuple_(*(page[-1][name] for name in names))) if page else query
        with source.core_read() if isinstance(source, Database) else nullcontext(source) as connection:
            page = connection.execute(following).mappings().all()
        if page:
            yield page
        if len(page) < PAGE:
            return
