"""The tables of the index of outcomes: derived data, created when a run is indexed, dropped at any time.

They are no part of the schema of the store: they have metadata of their own, and no version. The key of an
index stands for everything that it depends on, the code that reads its bodies included.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    delete,
    inspect,
)

metadata = MetaData()
_row_id = BigInteger().with_variant(Integer, "sqlite")


def _key_part(name: str) -> Column[int]:
    return Column(name, _row_id, primary_key=True, autoincrement=False)


WORDS = "index_words"
"""The full-text index: a table in PostgreSQL; in SQLite a virtual table for each index, with its number."""

# One row for each index. `key` stands for what it depends on; `body` is NULL until it is complete. Samples
# count its progress, and `alive` is the time of the last step of the process that builds it.
indexes = Table(
    "index_runs",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("run", _row_id, nullable=False),
    Column("key", LargeBinary(32), nullable=False),
    Column("done", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("alive", Float, nullable=False),
    Column("body", LargeBinary),
    Index("index_runs_by_run", "run"),
    sqlite_autoincrement=True,
)

# The groups in the order of the samples, some in each row: what lists show, and the lines of answers.jsonl
# and verdicts.jsonl, compressed.
blocks = Table(
    "index_blocks",
    metadata,
    _key_part("index_id"),
    _key_part("block"),
    Column("rows", LargeBinary, nullable=False),
    Column("lines", LargeBinary, nullable=False),
)

# The order by information: the number of the group of each rank, and the rank of each number, as 32-bit
# integers, some in each row.
orders = Table(
    "index_orders",
    metadata,
    _key_part("index_id"),
    _key_part("block"),
    Column("numbers", LargeBinary, nullable=False),
    Column("ranks", LargeBinary, nullable=False),
)

# The ranks of the groups that a value of a filter selects. `key` is the SHA-256 of field and value, `name`
# both; `listed` says whether the filter lists the value.
facets = Table(
    "index_facets",
    metadata,
    _key_part("index_id"),
    Column("key", LargeBinary(16), primary_key=True),
    Column("name", LargeBinary, nullable=False),
    Column("groups", Integer, nullable=False),
    Column("listed", SmallInteger, nullable=False),
    Column("ranks", LargeBinary, nullable=False),
)

# Other orders of the groups than that by information: their ranks, as 32-bit integers, some in each row.
sorts = Table(
    "index_sorts",
    metadata,
    _key_part("index_id"),
    Column("name", String(16), primary_key=True),
    _key_part("block"),
    Column("ranks", LargeBinary, nullable=False),
)

# Where the images of a run are: paths in the data folder, and the SHA-256 of their files. Several paths can
# have one content.
images = Table(
    "index_image_paths",
    metadata,
    _key_part("index_id"),
    Column("path", LargeBinary, primary_key=True),
    Column("digest", LargeBinary(32), nullable=False),
    Index("index_image_paths_by_digest", "index_id", "digest"),
)

# Comparisons of two indexed runs.
comparisons = Table(
    "index_comparisons",
    metadata,
    _key_part("base"),
    _key_part("other"),
    Column("body", LargeBinary, nullable=False),
)

# Thumbnails by the SHA-256 of the image, as WebP.
thumbnails = Table(
    "index_thumbnails",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

OF_ONE_INDEX = tuple(table.c.index_id for table in (blocks, orders, sorts, facets, images))


def existing(connection: Connection) -> list[str]:
    """The tables of the index that a store has."""
    return [
        name
        for name in inspect(connection).get_table_names()
        if name in (*metadata.tables, WORDS) or name.removeprefix(f"{WORDS}_").isdecimal()
    ]


def drop_tables(connection: Connection) -> None:
    """Drop the whole index of a store."""
    for name in existing(connection):
        connection.exec_driver_sql(f"DROP TABLE {name}")


def drop_indexes(connection: Connection, numbers: Iterable[int]) -> None:
    """Drop indexes of runs, and the comparisons with these runs."""
    tables = existing(connection)
    for number in numbers:
        for column in (*OF_ONE_INDEX, comparisons.c.base, comparisons.c.other):
            connection.execute(delete(column.table).where(column == number))
        if WORDS in tables:
            connection.exec_driver_sql(f"DELETE FROM {WORDS} WHERE index_id = {int(number)}")
        if f"{WORDS}_{number}" in tables:
            connection.exec_driver_sql(f"DROP TABLE {WORDS}_{number}")
        connection.execute(delete(indexes).where(indexes.c.id == number))
