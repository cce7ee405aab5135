"""The tables of the store. Raise `SCHEMA_VERSION` with every change, and add the migration here."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

SCHEMA_VERSION = 1

MIGRATIONS: Mapping[int, tuple[str, ...]] = {}
"""Version -> the SQL statements that lead to the next version; new tables are created without one."""

metadata = MetaData()
_row_id = BigInteger().with_variant(Integer, "sqlite")

meta = Table("meta", metadata, Column("name", String(40), primary_key=True), Column("value", Text))

requests = Table(
    "requests",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Attempts are only added. The first answer of a key counts.
answers = Table(
    "answers",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("key", String(64), nullable=False),
    Column("ok", Boolean, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Index("answers_by_key", "key", "ok"),
    sqlite_autoincrement=True,
)

# Requests that a process is sending now, so that no other process sends them; empty when nothing runs.
claims = Table(
    "claims",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("owner", String(32), nullable=False),
    Column("until", Float, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("body", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Column("finished", Float),
    sqlite_autoincrement=True,
)

# The probes of a run with their position: `report` recomputes every number from them.
probes = Table(
    "probes",
    metadata,
    Column("run", _row_id, primary_key=True, autoincrement=False),
    Column("place", _row_id, key="position", primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("run", _row_id, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("verdicts_by_run", "run"),
    sqlite_autoincrement=True,
)

# Checks of endpoints, and what their servers said of themselves; see endpoint_log.py.
endpoints = Table(
    "endpoints",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("identity", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Index("endpoints_by_identity", "identity"),
    sqlite_autoincrement=True,
)

# Metadata of image files: a cache, may be dropped at any time.
images = Table(
    "images",
    metadata,
    Column("path", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Vectors of texts, as little-endian 32-bit floats, and values of text metrics, as one 64-bit float: a cache,
# may be dropped at any time.
vectors = Table(
    "vectors",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# OCR results, as JSON: a cache, may be dropped at any time.
readings = Table(
    "readings",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
