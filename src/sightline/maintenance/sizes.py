"""How much room a store takes, by table, whatever version of Sightline wrote it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Connection, LargeBinary, Table, func, inspect, select, table, text
from sqlalchemy.exc import DBAPIError

from sightline.engine import index_tables, schema

CONTENT = {
    "annotation_items": "what annotators see, item by item",
    "annotation_leases": "items that annotators have in hand now",
    "annotation_log": "every judgement of annotators",
    "annotation_projects": "annotation projects: their tasks and sources",
    "annotators": "annotators: names, roles, links",
    "answers": "every attempt: an answer, or a failure",
    "batch_requests": "requests in batches at providers",
    "batches": "batches at providers that are not fetched yet",
    "definitions": "what the probes of runs are, shared by runs",
    "dictionaries": "dictionaries of the compression",
    "plans": "what runs planned, found by the same run (cache)",
    "probes": "the probes of each run, with the keys of their answers",
    "texts": "texts of requests, each once",
    "claims": "requests that a process is sending now, and batches that it waits for",
    "endpoints": "checks of endpoints, and what their servers said",
    "images": "metadata of image files (cache)",
    "index_blocks": "index of outcomes: groups with their lines (cache)",
    "index_comparisons": "index of outcomes: comparisons of runs (cache)",
    "index_facets": "index of outcomes: values of filters (cache)",
    "index_image_paths": "index of outcomes: paths of images (cache)",
    "index_orders": "index of outcomes: the order of the groups (cache)",
    "index_runs": "index of outcomes: results of runs (cache)",
    "index_sorts": "index of outcomes: other orders of the groups (cache)",
    "index_thumbnails": "thumbnails of images (cache)",
    "index_words": "index of outcomes: words of the texts (cache)",
    "meta": "the version of the schema, the URL of the last server",
    "models": "the models that requests are for",
    "readings": "OCR results (cache)",
    "requests": "what was sent: numbers of texts, and images by digest",
    "results": "results that rules judged (cache)",
    "run_labels": "names and notes of runs",
    "run_leases": "runs that a process works on now",
    "run_tags": "tags of runs",
    "runs": "the description of each run",
    "spending": "what processes of runs with a budget have spent",
    "vectors": "text embeddings and values of text metrics (cache)",
    "verdicts": "verdicts of humans",
}
"""What each table holds."""


_WORDS_OF_A_RUN = re.compile(rf"{index_tables.WORDS}_\d+\w*")
"""The tables in which SQLite keeps the words of one index."""


class TableSize(Struct, frozen=True, kw_only=True):
    """A table: its rows, its bytes with its indexes (None if the database does not tell), what it holds."""

    table: str
    rows: int
    bytes: int | None
    content: str


class FileSizes(Struct, frozen=True, kw_only=True):
    """The room of a whole store.

    Attributes:
        database: The database and its version.
        bytes: The size of the file, or of the database on its server.
        log_bytes: The write-ahead log beside the file; None on a server.
        free_bytes: Room in the file that `gc` gives back; None on a server, which reuses it by itself.
    """

    database: str
    bytes: int
    log_bytes: int | None
    free_bytes: int | None


def file_sizes(connection: Connection) -> FileSizes:
    """Measure a store.

    Args:
        connection: A connection to it.

    Returns:
        Its sizes.
    """
    version = ".".join(str(part) for part in connection.dialect.server_version_info or ())
    if connection.dialect.name == "postgresql":
        size = connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one()
        return FileSizes(database=f"PostgreSQL {version}", bytes=size, log_bytes=None, free_bytes=None)
    path = Path(str(connection.engine.url.database))
    log = path.with_name(f"{path.name}-wal")
    free, page = (
        int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
        for name in ("freelist_count", "page_size")
    )
    return FileSizes(
        database=f"SQLite {version}",
        bytes=path.stat().st_size,
        log_bytes=log.stat().st_size if log.exists() else 0,
        free_bytes=free * page,
    )


def table_sizes(connection: Connection) -> list[TableSize]:
    """Measure the tables of a store.

    Args:
        connection: A connection to it.

    Returns:
        The tables, the largest first.
    """
    names = inspect(connection).get_table_names()
    size = _postgres_bytes if connection.dialect.name == "postgresql" else _sqlite_bytes
    bytes_of = size(connection, names)
    sizes = [
        TableSize(
            table=name,
            rows=connection.execute(select(func.count()).select_from(table(name))).scalar_one(),
            bytes=bytes_of.get(name),
            content=CONTENT.get(_WORDS_OF_A_RUN.sub(index_tables.WORDS, name), ""),
        )
        for name in names
    ]
    return sorted(sizes, key=lambda one: (-(one.bytes or one.rows), one.table))


def _postgres_bytes(connection: Connection, names: Sequence[str]) -> dict[str, int]:
    query = text("SELECT pg_total_relation_size(cast(quote_ident(:name) AS regclass))")
    return {name: connection.execute(query, {"name": name}).scalar_one() for name in names}


def _sqlite_bytes(connection: Connection, _: Sequence[str]) -> dict[str, int]:
    """Bytes of each table with its indexes; empty where SQLite was built without `dbstat`."""
    query = (
        "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) "
        "WHERE aggregate = TRUE GROUP BY tbl_name"
    )
    try:
        return {str(name): int(size) for name, size in connection.exec_driver_sql(query)}
    except DBAPIError:
        return {}


def content_bytes(connection: Connection, tables: Iterable[Table]) -> int:
    """Measure caches.

    Args:
        connection: A connection to a store.
        tables: Tables of which most columns are bytes.

    Returns:
        The bytes of these columns, without indexes.
    """
    columns = [column for one in tables for column in one.columns if isinstance(column.type, LargeBinary)]
    sums = (select(func.sum(func.length(column))) for column in columns)
    return sum(connection.scalar(total) or 0 for total in sums)


def run_bytes(connection: Connection) -> dict[int, int]:
    """Measure what only one run needs: its description, the keys of its probes, its verdicts.

    Args:
        connection: A connection to a store of this schema version.

    Returns:
        Run -> bytes of the content of its rows, without indexes.
    """
    totals: Counter[int] = Counter()
    columns = (
        (schema.runs.c.id, schema.runs.c.body),
        (schema.probes.c.run, schema.probes.c.answer_keys),
        (schema.verdicts.c.run, schema.verdicts.c.body),
    )
    for run, body in columns:
        for number, size in connection.execute(select(run, func.sum(func.length(body))).group_by(run)):
            totals[number] += size
    return dict(totals)
