"""Opens the store's database: checks its location, sets it up, checks its schema."""

from __future__ import annotations

import atexit
import logging
import os
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from sightline.errors import UserError, hide_password
from sightline.formats.files import temporary_folder
from sightline.store import schema
from sightline.store.database import (
    Connection,
    Database,
    SqliteFile,
    check_sqlite_file,
    no_store,
    not_writable,
)

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection


NETWORK_FILESYSTEMS = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "panfs",
    "wekafs", "orangefs", "glusterfs", "fuse.sshfs", "fuse.glusterfs", "fuse.juicefs", "fuse.s3fs",
    "fuse.rclone", "fuse.gcsfuse", "fuse.ceph-fuse", "fuse.beegfs", "fuse.moosefs",
}  # fmt: skip
"""File systems that other machines may write to; claims rely on this (claims.py)."""

_FILE_URL = "sqlite:///FILE"
_NO_PATH = re.compile(r"(?:sqlite|postgres(?:ql)?)(?:\+\w+)?:(?!//)", re.IGNORECASE)
"""How the URL of a store begins whose slashes were forgotten."""
_USER_IN_PATH = re.compile(r"[^/]*:[^/]*@")
"""How a path begins that a user, a password and a host were meant to be."""

_SQLITE_URL = re.compile("sqlite://(?:/([^?%]*))?")
"""A URL that names a file and no more, as it is. SQLAlchemy reads all others."""


def connect(url: str, *, create: bool) -> Database:
    if (path := sqlite_path(url)) is not None:
        _check_file(path, create=create)
        file = SqliteFile(path, is_read_only=not _is_writable(path))
        return Database(display(url), file.create_engine, file)
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
        engine = create_postgres(parsed)
    except ImportError:
        raise UserError(
            f"no driver for the store {display(url)}",
            expected="pip install 'sightline[postgres]' for PostgreSQL",
        ) from None
    return Database(display(url), lambda: engine)


def sqlite_path(url: str) -> Path | None:
    """The file of a store, which need not exist; None for a database on a server."""
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
    return hide_password(url) if "://" in url else url


def prepare(database: Database, *, create: bool) -> None:
    """Create the tables of a new store; check the schema of an existing one.

    A store that needs no change is only read: another process may be writing for a long time. Every change
    happens under one lock, because several processes may open a new store at the same time.
    """
    with database.read() as connection:
        if _is_ready(connection, database.name):
            return
    # A store that cannot be written is of another version, or there is none.
    with database.read() if database.is_read_only else database.write() as connection:
        _prepare(connection, database.name, create=create)


def _is_ready(connection: Connection, name: str) -> bool:
    return (
        connection.tables() >= schema.TABLES
        and schema.schema_version(connection, name) == schema.SCHEMA_VERSION
    )


def _prepare(connection: Connection, name: str, *, create: bool) -> None:
    wait_for_turn(connection, name)
    existing = connection.tables()
    if not existing:
        if not create:
            raise no_store(name)
        schema.metadata.create_all(connection.core)
        insert = "INSERT INTO meta (name, value) VALUES ('schema_version', ?)"
        connection.change(insert, (str(schema.SCHEMA_VERSION),))
        return
    found = schema.schema_version(connection, name)
    if found != schema.SCHEMA_VERSION:
        raise UserError(
            "another version of Sightline wrote this store",
            file=name,
            field="schema_version",
            found=found,
            expected=f"{schema.SCHEMA_VERSION}: name another --store; the version that wrote this one "
            "exports it with `sightline store export runs|answers|probes --out FILE`",
        )
    # Caches that the user dropped are missing.
    if not existing >= schema.TABLES:
        schema.metadata.create_all(connection.core)


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        scheme = url.partition("://")[0]
        raise UserError(
            f"the store's URL, {scheme}://..., is invalid",
            expected="a path, or postgresql://USER:PASSWORD@HOST:PORT/NAME",
        ) from None


def _check_file(path: Path, *, create: bool) -> None:
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
    if create and not _is_writable(path):
        raise not_writable(path)
    if path.exists() and not os.access(path, os.R_OK):
        raise UserError("the store cannot be read", file=path, expected="a file that this user may read")
    check_sqlite_file(path, create=create)


def _is_writable(path: Path) -> bool:
    parts = (path.resolve().parent, path)
    return all(os.access(part, os.R_OK | os.W_OK) for part in parts if part.exists())


def filesystem(folder: Path, mounts: str = "/proc/mounts") -> str:
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


# -- Stores on PostgreSQL: how the server is called, and how its tables are created

LOCK_SECONDS = 60
"""How long a statement waits for a lock of another session. Sightline's own hold one for milliseconds, but
for `store gc` and `store merge`.
"""

CONNECTIONS = 4
"""Connections of one process at most. A server accepts 100 by default, of all processes together."""

# A server that vanishes without a word (a laptop that leaves the network) is noticed within a minute.
_CONNECTION = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
    "client_encoding": "utf8",
    "fallback_application_name": "sightline",
}

# The driver logs lost connections, which are also errors here; without a handler, Python prints them.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# An arbitrary number: with it, processes that open a store at once create its tables in turn.
_ADVISORY_LOCK = 7_316_448


def create_postgres(url: URL) -> Engine:
    options: dict[str, Any] = {name: value for name, value in _CONNECTION.items() if name not in url.query}
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=options,
        # A claim that waited for another process must see what that process has committed.
        isolation_level="READ COMMITTED",
        # After a restart of the server, the connections of before are replaced.
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=LOCK_SECONDS,
    )
    event.listen(engine, "connect", _limit_waiting)
    return engine


def wait_for_turn(connection: Connection, name: str) -> None:
    """Wait until no other process creates tables, up to the end of the transaction.

    SQLite has one writer at a time.
    """
    if connection.is_file:
        return
    connection.rows(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
    ((encoding,),) = connection.rows("SHOW server_encoding")
    if encoding != "UTF8":
        raise UserError(
            "this database cannot hold all characters",
            file=name,
            field="encoding",
            found=encoding,
            expected="UTF8: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
        )


def _limit_waiting(connection: DBAPIConnection, _record: object) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
    cursor.close()
    connection.commit()


# -- The store `sqlite:///:memory:`: a file of this process, in memory where the system has a place for it

MEMORY = frozenset({"", ":memory:"})
"""What SQLite calls memory, in the place of a path."""

_SHARED_MEMORY = Path("/dev/shm")

_opened = ExitStack()
_files: list[Path] = []


def memory_file() -> Path:
    if not _files:
        place = _SHARED_MEMORY if _SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())
        _files.append(_opened.enter_context(temporary_folder(place / "sightline-memory")) / "memory.db")
        atexit.register(forget)
    return _files[0]


def is_memory_file(path: Path) -> bool:
    return path in _files


def forget() -> None:
    """Remove the file, as at the end of the process."""
    _opened.close()
    _files.clear()
