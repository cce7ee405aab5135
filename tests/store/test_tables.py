"""The tables of a SQLite store, which are created through our own connection."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy

from sightline.store import schema
from sightline.store.store import Store


def _definitions(path: Path) -> set[tuple[str, str, str, str]]:
    """Type, name, table and SQL of everything in a file; the SQL without the white space of its layout."""
    with closing(sqlite3.connect(path)) as file:
        rows = file.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    return {(kind, name, table, re.sub(r"\s", "", sql or "")) for kind, name, table, sql in rows}


def test_a_new_store_has_the_tables_and_indexes_that_the_schema_declares(tmp_path: Path) -> None:
    Store.open(str(tmp_path / "new.db")).close()
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'declared.db'}")
    schema.metadata.create_all(engine)
    engine.dispose()
    assert _definitions(tmp_path / "new.db") == _definitions(tmp_path / "declared.db")


def test_a_table_that_was_dropped_is_created_again_with_its_indexes(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store.open(str(path)).close()
    before = _definitions(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("DROP TABLE endpoints")
    assert _definitions(path) < before
    Store.open(str(path)).close()
    assert _definitions(path) == before
