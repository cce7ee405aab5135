"""The tables of the store. From the first release on, every change of them raises `SCHEMA_VERSION`."""

from __future__ import annotations

import re

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator

from sightline.store.answers import storable_text
from sightline.store.database import Connection, not_a_store


class StorableText(TypeDecorator[str]):
    """A column of text that every database can hold, whatever text is given or searched for.

    Bodies are bytes and hold every character; PostgreSQL has no NUL character in a column of text.
    """

    impl = Text
    cache_ok = True

    @property
    def python_type(self) -> type[str]:
        return str

    def process_bind_param(self, value: str | None, dialect: object) -> str | None:
        return None if value is None else storable_text(value)


metadata = MetaData()
_row_id = BigInteger().with_variant(Integer, "sqlite")

# Without row ids, SQLite keeps a table whose key is no number in one tree, not in two.
meta = Table(
    "meta",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text),
    sqlite_with_rowid=False,
)

# The identities of the models that the requests are for.
models = Table(
    "models", metadata, Column("identity", StorableText, primary_key=True), sqlite_with_rowid=False
)

# Attempts are only added. The first answer of a request counts. `request` is its canonical JSON, whose
# SHA-256 is the key; `result` is the JSON of an answer or a failure, and `state` a value of `answers.State`.
answers = Table(
    "answers",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("key", LargeBinary(32), nullable=False),
    Column("state", SmallInteger, nullable=False),
    Column("created", Float, nullable=False),
    Column("request", Text, nullable=False),
    Column("result", Text, nullable=False),
    Index("answers_by_key", "key", "state"),
    sqlite_autoincrement=True,
)

# Processes that work with the store (claims.py); empty when nothing runs. `until` is seconds since the
# machine started; on a server since 1970.
workers = Table(
    "workers",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("until", Float, nullable=False),
    sqlite_with_rowid=False,
)

# Requests that a process is sending now, so that no other process sends them. `owner` is a worker.
claims = Table(
    "claims",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("owner", String(64), nullable=False),
    sqlite_with_rowid=False,
)

# Batches at providers whose answers are not all in the store yet: the journal of evaluation/batches.py.
# `address` and `file`, the provider's id of the input file, are the identity of a batch in all stores.
# `batch` is the provider's id of the batch, which is missing until the provider has created it.
batches = Table(
    "batches",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("address", StorableText, nullable=False),
    Column("file", String(200), nullable=False),
    Column("batch", String(200)),
    Column("state", String(40), nullable=False),
    Column("requests", Integer, nullable=False),
    Column("created", Float, nullable=False),
    Index("batches_by_file", "file"),
    sqlite_autoincrement=True,
)

# The requests in each of these batches; a request is in one batch at most.
batch_requests = Table(
    "batch_requests",
    metadata,
    Column("key", LargeBinary(32), primary_key=True),
    Column("batch", _row_id, nullable=False),
    Index("batch_requests_by_batch", "batch"),
    sqlite_with_rowid=False,
)

# `uid` is the identity of a run in all stores: a merge copies a run once. `worker` works on it now.
runs = Table(
    "runs",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("body", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Column("finished", Float),
    Column("uid", String(33)),
    Column("worker", String(64)),
    Index("runs_by_uid", "uid", unique=True),
    sqlite_autoincrement=True,
)

# The probes of a run, in compressed chunks: `report` recomputes every number from them. `place` is the
# position of the first probe; see runs.py.
probes = Table(
    "probes",
    metadata,
    Column("run", _row_id, primary_key=True, autoincrement=False),
    Column("place", _row_id, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

# What the user says about a run; its own description never changes.
run_labels = Table(
    "run_labels",
    metadata,
    Column("run", _row_id, primary_key=True, autoincrement=False),
    Column("name", String(200), unique=True),
    Column("note", StorableText, nullable=False, default=""),
)

run_tags = Table(
    "run_tags",
    metadata,
    Column("run", _row_id, primary_key=True, autoincrement=False),
    Column("tag", String(200), primary_key=True),
    sqlite_with_rowid=False,
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

# Annotation projects: a task with its sources, as JSON. `secret` signs the links of its annotators, and `uid`
# is its identity in all stores.
annotation_projects = Table(
    "annotation_projects",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("uid", String(32), nullable=False, unique=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("body", LargeBinary, nullable=False),
    Column("secret", LargeBinary(32), nullable=False),
    Column("created", Float, nullable=False),
    Column("closed", Float),
    sqlite_autoincrement=True,
)

# The items of a project, as JSON; they never change.
annotation_items = Table(
    "annotation_items",
    metadata,
    Column("project", _row_id, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
)

annotators = Table(
    "annotators",
    metadata,
    Column("project", _row_id, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# Every judgement, in the order of the commits. Rows are only added; a form that is sent twice adds one row.
annotation_log = Table(
    "annotation_log",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("project", _row_id, nullable=False),
    Column("form", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("annotation_log_by_project", "project", "id"),
    Index("annotation_log_by_form", "project", "form", unique=True),
    sqlite_autoincrement=True,
)

# Items that annotators have in hand now.
annotation_leases = Table(
    "annotation_leases",
    metadata,
    Column("project", _row_id, primary_key=True, autoincrement=False),
    Column("item", Integer, primary_key=True, autoincrement=False),
    Column("annotator", Integer, primary_key=True, autoincrement=False),
    Column("until", Float, nullable=False),
    sqlite_with_rowid=False,
)

# Checks of endpoints, and reports of their servers; see answers.py.
endpoints = Table(
    "endpoints",
    metadata,
    Column("id", _row_id, primary_key=True, autoincrement=True),
    Column("identity", StorableText, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),
    Index("endpoints_by_identity", "identity"),
    sqlite_autoincrement=True,
)

# Metadata of image files, by 128 bits of the SHA-256 of the path: a cache, may be dropped at any time.
images = Table(
    "images",
    metadata,
    Column("key", LargeBinary(16), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
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


# -- The version of the tables of every store

SCHEMA_VERSION = 1
"""A store of another version is refused."""

TABLES = frozenset(metadata.tables)
"""The names of the tables of every store."""

_VERSION = re.compile("[1-9][0-9]{0,8}")


def schema_version(connection: Connection, name: str) -> int:
    value = None
    if connection.has_table("meta") and connection.has_table("answers"):
        rows = connection.rows("SELECT value FROM meta WHERE name = 'schema_version'")
        value = rows[0][0] if rows else None
    # SQLite keeps a value of another type in any column.
    if not (isinstance(value, str) and _VERSION.fullmatch(value)):
        raise not_a_store(name)
    return int(value)
