"""Opens the store's database: checks its location, sets it up, checks its schema."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.engine import postgres, tables
from sightline.engine.connection import Connection
from sightline.engine.database import Database
from sightline.engine.database_errors import no_store
from sightline.engine.dictionaries import add_common_dictionary
from sightline.engine.memory_store import MEMORY, is_memory_file, memory_file
from sightline.engine.sqlite_check import check_sqlite_file
from sightline.engine.sqlite_connections import SqliteConnections
from sightline.errors import UserError
from sightline.secret_text import hide_password

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

NETWORK_FILESYSTEMS = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "panfs",
    "wekafs", "orangefs", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs",
    "fuse.rclone", "fuse.gcsfuse", "fuse.ceph-fuse", "fuse.beegfs", "fuse.moosefs",
}  # fmt: skip
"""File systems that other machines may write to; claims rely on this (owners.py)."""

_FILE_URL = "sqlite:///FILE"
_NO_PATH = re.compile(r"(?:sqlite|postgres(?:ql)?)(?:\+\w+)?:(?!//)", re.IGNORECASE)
"""How the URL of a store begins whose slashes were forgotten."""
_USER_IN_PATH = re.compile(r"[^/]*:[^/]*@")
"""How a path begins that a user, a password and a host were meant to be."""

_SQLITE_URL = re.compile("sqlite://(?:/([^?%]*))?")
"""A URL that names a file and no more, as it is. SQLAlchemy, which is slow to import, reads all others."""


def connect(url: str, *, create: bool) -> Database:
    """Find the database of a store."""
    if (path := sqlite_path(url)) is not None:
        _check_file(path, create=create)
        return Database(display(url), partial(_core_of_file, path), SqliteConnections(path))
    parsed = _parse(url)
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise UserError(
            f"a store cannot be in a database of this kind: {display(url)}",
            expected="a path (SQLite), or postgresql://USER@HOST:PORT/NAME",
        )
    if "@" in (parsed.host or ""):
        raise UserError(
            f"the URL of the store has an @ in its user name or password: {display(url)}",
            expected="%40 in the place of this @",
        )
    try:
        engine = postgres.create_postgres(parsed)
    except ImportError:
        raise UserError(
            f"no driver for the store {display(url)}",
            expected="pip install 'sightline[postgres]' for PostgreSQL",
        ) from None
    return Database(display(url), lambda: engine)


def sqlite_path(url: str) -> Path | None:
    """Find the file of a store.

    Returns:
        The file, which need not exist; None for a database on a server.
    """
    if _NO_PATH.match(url):
        raise UserError(
            f"the URL of the store has no //: {hide_password(url)}",
            expected=f"{_FILE_URL}, postgresql://USER@HOST:PORT/NAME, or ./FILE for a file of this name",
        )
    if not url.strip():
        raise UserError(
            "--store is empty", expected="a file for the store, or postgresql://USER@HOST:PORT/NAME"
        )
    if "://" not in url:
        return Path(url)
    if found := _SQLITE_URL.fullmatch(url):
        name, has_more = found[1] or "", False
    else:
        parsed = _parse(url)
        if parsed.get_backend_name() != "sqlite":
            return None
        name = parsed.database or ""
        has_more = bool(parsed.host or parsed.username or parsed.port or parsed.query)
    if has_more or _USER_IN_PATH.match(name):
        raise UserError(
            f"a store in a file has no host, user or parameters: {display(url)}",
            expected=f"{_FILE_URL}, with three slashes; or postgresql://USER@HOST:PORT/NAME",
        )
    return memory_file() if name in MEMORY else Path(name)


def display(url: str) -> str:
    """Format a store's path or URL for messages."""
    return hide_password(url) if "://" in url else url


def prepare(database: Database, *, create: bool) -> None:
    """Create the tables of a new store; check the schema of an existing one.

    A store that needs no change is only read: another process may be writing for a long time. Every change
    happens under one lock, because several processes may open a new store at the same time.
    """
    with database.read() as connection:
        if _is_ready(connection, database.name):
            return
    with database.write() as connection:
        _prepare(connection, database.name, create=create)


def _is_ready(connection: Connection, name: str) -> bool:
    """Whether this is a store of this version with all its tables."""
    return (
        connection.tables() >= tables.TABLES
        and tables.schema_version(connection, name) == tables.SCHEMA_VERSION
    )


def _prepare(connection: Connection, name: str, *, create: bool) -> None:
    """Create what is missing, and check the version."""
    postgres.wait_for_turn(connection, name)
    existing = connection.tables()
    if not existing:
        if not create:
            raise no_store(name)
        _create_tables(connection)
        insert = "INSERT INTO meta (name, value) VALUES ('schema_version', ?)"
        connection.change(insert, (str(tables.SCHEMA_VERSION),))
        add_common_dictionary(connection)
        return
    found = tables.schema_version(connection, name)
    if found != tables.SCHEMA_VERSION:
        raise UserError(
            "another version of Sightline wrote this store",
            file=name,
            field="schema_version",
            found=found,
            expected=f"{tables.SCHEMA_VERSION}: name another --store; the version that wrote this one "
            "exports it with `sightline store export runs|answers|probes --out FILE`",
        )
    # Caches that the user dropped are missing.
    if not existing >= tables.TABLES:
        _create_tables(connection)


def _create_tables(connection: Connection) -> None:
    """Create the tables that are missing."""
    if connection.is_file:
        for statement in filter(str.strip, tables.SQLITE_TABLES.split(";")):
            connection.change(statement)
    else:
        postgres.create_tables(connection)


def _parse(url: str) -> URL:
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        scheme = url.partition("://")[0]
        raise UserError(
            f"the store's URL, {scheme}://..., is invalid",
            expected="a path, or postgresql://USER:PASSWORD@HOST:PORT/NAME",
        ) from None


def _check_file(path: Path, *, create: bool) -> None:
    """Check that a file is a store, or may become one."""
    if not path.exists() and not create:
        if is_memory_file(path):
            raise no_store("sqlite:///:memory:", "; a store in memory lasts for one process")
        raise no_store(path)
    if path.is_dir():
        raise UserError("this is a folder", file=path, expected="a file for the store")
    if path.exists() and not path.is_file():
        raise UserError("this is a pipe or a device", file=path, expected="a file for the store")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UserError("the folder for the store does not exist", file=path, expected=f"mkdir -p {folder}")
    kind = filesystem(folder)
    if kind in NETWORK_FILESYSTEMS:
        raise UserError(
            f"SQLite on a network file system ({kind}) loses data when several machines write",
            file=path,
            expected="a --store on a local disk, or a PostgreSQL URL",
        )
    if not all(os.access(part, os.R_OK | os.W_OK) for part in (folder, path) if part.exists()):
        raise UserError("the store cannot be written", file=path, expected="a --store in a writable folder")
    if path.exists():
        check_sqlite_file(path, create=create)


def _core_of_file(path: Path) -> Engine:
    from sightline.engine.core_connection import create_sqlite

    return create_sqlite(path)


def filesystem(folder: Path, mounts: str = "/proc/mounts") -> str:
    """Find the type of the file system that holds a folder."""
    try:
        lines = Path(mounts).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    for line in lines:
        _, point, name, *_ = line.split(" ")
        point = point.replace("\\040", " ")
        inside = point == "/" or folder == Path(point) or str(folder).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind
