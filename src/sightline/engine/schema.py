"""The tables of the store. `SCHEMA_VERSION` rises with every change of them; migrations are listed here."""

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
"""Version -> the SQL statements that lead from it to the next one; a table that is new comes by itself."""

metadata = MetaData()
_row_id = BigInteger().with_variant(Integer, "sqlite")

meta = Table("meta", metadata, Column("name", String(40), primary_key=True), Column("value", Text))

requests = Table(
    "requests",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Attempts, only ever added: the first answer of a key is the one that counts.
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

# Which process is asking what right now, so that no other one asks it too; empty when nobody runs.
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

# The probes of a run with their place in it: what `report` needs to compute every number anew.
probes = Table(
    "probes",
    metadata,
    Column("run", _row_id, primary_key=True, autoincrement=False),
    Column("place", _row_id, primary_key=True, autoincrement=False),
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

# What could be read anew from the files themselves; may be dropped at any time.
images = Table(
    "images",
    metadata,
    Column("path", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Vectors of texts, as little-endian 32-bit floats, and what text metrics say of two texts, as one 64-bit
# float: they cost nothing but time; may be dropped at any time.
vectors = Table(
    "vectors",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# What readers (OCR) found in images, as JSON: costs nothing but time too; may be dropped at any time.
readings = Table(
    "readings",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)
