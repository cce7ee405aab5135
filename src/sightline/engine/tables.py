"""The tables of a SQLite store as SQL, and the version of the tables of every store.

schema.py declares the same tables for SQLAlchemy. A SQLite store is created without it, because the import
takes longer than all statements of a small run. A test compares both.
"""

from __future__ import annotations

import re

from sightline.engine.connection import Connection
from sightline.engine.sqlite_check import not_a_store

SCHEMA_VERSION = 1
"""A store of another version is refused."""

SQLITE_TABLES = """
CREATE TABLE IF NOT EXISTS meta (
    name VARCHAR(40) NOT NULL, value TEXT, PRIMARY KEY (name)
);

CREATE TABLE IF NOT EXISTS dictionaries (
    id INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS texts (
    id INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (id), UNIQUE (digest)
);

CREATE TABLE IF NOT EXISTS requests (
    id INTEGER NOT NULL, "key" BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (id), UNIQUE ("key")
);

CREATE TABLE IF NOT EXISTS models (
    identity TEXT NOT NULL, PRIMARY KEY (identity)
);

CREATE TABLE IF NOT EXISTS answers (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, request INTEGER NOT NULL, state SMALLINT NOT NULL,
    body BLOB NOT NULL, created FLOAT NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_by_request ON answers (request, state);

CREATE TABLE IF NOT EXISTS claims (
    "key" BLOB NOT NULL, owner VARCHAR(32) NOT NULL, until FLOAT NOT NULL, PRIMARY KEY ("key")
);

CREATE TABLE IF NOT EXISTS batches (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, address TEXT NOT NULL, file VARCHAR(200) NOT NULL,
    batch VARCHAR(200), state VARCHAR(40) NOT NULL, requests INTEGER NOT NULL, created FLOAT NOT NULL
);
CREATE INDEX IF NOT EXISTS batches_by_file ON batches (file);

CREATE TABLE IF NOT EXISTS batch_requests (
    "key" BLOB NOT NULL, batch INTEGER NOT NULL, PRIMARY KEY ("key")
);
CREATE INDEX IF NOT EXISTS batch_requests_by_batch ON batch_requests (batch);

CREATE TABLE IF NOT EXISTS runs (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, body BLOB NOT NULL, created FLOAT NOT NULL, finished
    FLOAT, uid VARCHAR(33)
);
CREATE UNIQUE INDEX IF NOT EXISTS runs_by_uid ON runs (uid);

CREATE TABLE IF NOT EXISTS definitions (
    id INTEGER NOT NULL, digest BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY (id), UNIQUE (digest)
);

CREATE TABLE IF NOT EXISTS probes (
    run INTEGER NOT NULL, place INTEGER NOT NULL, definitions INTEGER NOT NULL, answer_keys BLOB NOT
    NULL, PRIMARY KEY (run, place)
);

CREATE TABLE IF NOT EXISTS run_labels (
    run INTEGER NOT NULL, name VARCHAR(200), note TEXT NOT NULL, PRIMARY KEY (run), UNIQUE (name)
);

CREATE TABLE IF NOT EXISTS run_tags (
    run INTEGER NOT NULL, tag VARCHAR(200) NOT NULL, PRIMARY KEY (run, tag)
);

CREATE TABLE IF NOT EXISTS run_leases (
    run INTEGER NOT NULL, until FLOAT NOT NULL, PRIMARY KEY (run)
);

CREATE TABLE IF NOT EXISTS spending (
    run BLOB NOT NULL, process VARCHAR(32) NOT NULL, body BLOB NOT NULL, until FLOAT NOT NULL, PRIMARY
    KEY (run, process)
);

CREATE TABLE IF NOT EXISTS verdicts (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, run INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS verdicts_by_run ON verdicts (run);

CREATE TABLE IF NOT EXISTS annotation_projects (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, uid VARCHAR(32) NOT NULL, name VARCHAR(200) NOT NULL,
    body BLOB NOT NULL, secret BLOB NOT NULL, created FLOAT NOT NULL, closed FLOAT, UNIQUE (uid), UNIQUE
    (name)
);

CREATE TABLE IF NOT EXISTS annotation_items (
    project INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (project, number)
);

CREATE TABLE IF NOT EXISTS annotators (
    project INTEGER NOT NULL, number INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (project, number)
);

CREATE TABLE IF NOT EXISTS annotation_log (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, project INTEGER NOT NULL, form VARCHAR(64) NOT NULL,
    body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS annotation_log_by_project ON annotation_log (project, id);
CREATE UNIQUE INDEX IF NOT EXISTS annotation_log_by_form ON annotation_log (project, form);

CREATE TABLE IF NOT EXISTS annotation_leases (
    project INTEGER NOT NULL, item INTEGER NOT NULL, annotator INTEGER NOT NULL, until FLOAT NOT NULL,
    PRIMARY KEY (project, item, annotator)
);

CREATE TABLE IF NOT EXISTS endpoints (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, identity TEXT NOT NULL, body BLOB NOT NULL, created
    FLOAT NOT NULL
);
CREATE INDEX IF NOT EXISTS endpoints_by_identity ON endpoints (identity);

CREATE TABLE IF NOT EXISTS images (
    "key" BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY ("key")
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS vectors (
    "key" BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY ("key")
);

CREATE TABLE IF NOT EXISTS readings (
    "key" BLOB NOT NULL, body BLOB NOT NULL, PRIMARY KEY ("key")
);
"""
"""Statements that create the missing tables and indexes. schema.py says what they hold."""

TABLES = frozenset(re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", SQLITE_TABLES))
"""The names of the tables of every store."""

_VERSION = re.compile("[1-9][0-9]{0,8}")


def schema_version(connection: Connection, name: str) -> int:
    """Read the schema version of a database that has tables."""
    value = None
    if connection.has_table("meta") and connection.has_table("answers"):
        rows = connection.rows("SELECT value FROM meta WHERE name = 'schema_version'")
        value = rows[0][0] if rows else None
    # SQLite keeps a value of another type in any column.
    if not (isinstance(value, str) and _VERSION.fullmatch(value)):
        raise not_a_store(name)
    return int(value)
