"""The tables of the store. Raise `SCHEMA_VERSION` with every change, and add the migration here.

An older Sightline refuses a store of a newer version, so that it never writes rows that lack something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct
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
    insert,
    select,
)
from sqlalchemy.engine import Connection

SCHEMA_VERSION = 2

metadata = MetaData()
_row_id = BigInteger().with_variant(Integer, "sqlite")

meta = Table("meta", metadata, Column("name", String(40), primary_key=True), Column("value", Text))

requests = Table(
    "requests",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# The identities of the models that the requests are for.
models = Table("models", metadata, Column("identity", Text, primary_key=True))

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

# Checks of endpoints, and reports of their servers; see endpoint_log.py.
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


class _ModelOfRequest(Struct):
    """The part of a request's canonical JSON that says which model it is for."""

    model: str = ""


def model_of(body: bytes) -> str:
    """Read which model a stored request is for.

    Args:
        body: The canonical JSON of the request.

    Returns:
        The identity of the model; '' if the JSON has none.
    """
    return msgspec.json.decode(body, type=_ModelOfRequest).model


def _create_endpoints_and_models(connection: Connection) -> None:
    """Create two tables, and list the models of the requests."""
    metadata.create_all(connection, [endpoints, models])
    query = select(requests.c.body).execution_options(yield_per=1000)
    identities = sorted({model_of(body) for body in connection.execute(query).scalars()})
    if identities:
        connection.execute(insert(models), [{"identity": identity} for identity in identities])


MIGRATIONS: Mapping[int, tuple[str | Callable[[Connection], None], ...]] = {
    1: (_create_endpoints_and_models,)
}
"""Version -> the steps that lead to the next version: SQL statements, and functions."""
