"""Opens the store's database: checks its location, sets it up, checks and migrates its schema."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import URL, Engine, create_engine, event, insert, inspect, select, update
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from sightline.engine import postgres, schema
from sightline.engine.database_errors import no_store
from sightline.engine.dictionaries import add_common_dictionary
from sightline.engine.memory_store import MEMORY, is_memory_file, memory_file
from sightline.engine.migrations import migrate
from sightline.engine.sqlite_check import check_sqlite_file, not_a_store
from sightline.errors import UserError
from sightline.secret_text import hide_password

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

_VERSION = re.compile("[1-9][0-9]{0,8}")

LOCK_SECONDS = 60
"""How long a writer waits for another one; each holds the lock for milliseconds."""


def connect(url: str, *, create: bool) -> Engine:
    """Create the database engine for a store.

    Args:
        url: A path (SQLite), or a database URL.
        create: Whether a SQLite file that does not exist is created.

    Returns:
        The engine; nothing is connected yet.

    Raises:
        NoStoreError: There is no file, and none is to be created.
        UserError: The path cannot hold a store, the database is of another kind or of another program, or
            the driver is missing.
        StoreFailedError: The write-ahead log of a file is damaged.
    """
    if (path := sqlite_path(url)) is not None:
        return _sqlite(path, create=create)
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
        return postgres.create_postgres(parsed)
    except ImportError:
        raise UserError(
            f"no driver for the store {display(url)}",
            expected="pip install 'sightline[postgres]' for PostgreSQL",
        ) from None


def sqlite_path(url: str) -> Path | None:
    """Find the file of a store.

    Args:
        url: A path or a database URL.

    Returns:
        The file, which need not exist; None for a database on a server.

    Raises:
        UserError: The URL is invalid, or has more than a file, such as a host or a password.
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
    parsed = _parse(url)
    if parsed.get_backend_name() != "sqlite":
        return None
    name = parsed.database or ""
    if parsed.host or parsed.username or parsed.port or parsed.query or _USER_IN_PATH.match(name):
        raise UserError(
            f"a store in a file has no host, user or parameters: {display(url)}",
            expected=f"{_FILE_URL}, with three slashes; or postgresql://USER@HOST:PORT/NAME",
        )
    return memory_file() if name in MEMORY else Path(name)


def display(url: str) -> str:
    """Format a store's path or URL for messages.

    Args:
        url: A path or a URL.

    Returns:
        The same without a password.
    """
    return hide_password(url) if "://" in url else url


def prepare(engine: Engine, name: str, *, create: bool) -> None:
    """Create the tables of a new store; check the schema of an existing one and migrate it after a backup.

    A store that needs no change is only read: another process may be writing for a long time. Every change
    happens under one lock, because several processes may open a new store at the same time. All wait for a
    migration, however long it takes.

    Args:
        engine: The database engine.
        name: The store's name in messages.
        create: Whether an empty database becomes a store.

    Raises:
        NoStoreError: The database is empty, and no store is to be created.
        UserError: The database is not a store, or a newer Sightline wrote it.
    """
    with engine.connect() as connection:
        postgres.wait_for_migration(connection)
        if _is_ready(connection, name):
            return
    with engine.execution_options(writes=True).begin() as connection:
        postgres.wait_for_migration(connection)
        migrated = _prepare(connection, name, create=create)
    if migrated and engine.dialect.name == "sqlite":
        _shrink(engine)


def _is_ready(connection: Connection, name: str) -> bool:
    """Whether this is a store of this version with all its tables."""
    tables = inspect(connection).get_table_names()
    return (
        set(tables).issuperset(schema.metadata.tables)
        and schema_version(connection, name) == schema.SCHEMA_VERSION
    )


def _prepare(connection: Connection, name: str, *, create: bool) -> bool:
    """Create, check or migrate; True after a migration."""
    if connection.dialect.name == "postgresql":
        postgres.wait_for_turn(connection, name)
    tables = set(inspect(connection).get_table_names())
    if not tables:
        if not create:
            raise no_store(name)
        schema.metadata.create_all(connection)
        version = str(schema.SCHEMA_VERSION)
        connection.execute(insert(schema.meta).values(name="schema_version", value=version))
        add_common_dictionary(connection)
        return False
    found = schema_version(connection, name)
    if found > schema.SCHEMA_VERSION:
        raise UserError(
            "a newer Sightline wrote this store",
            file=name,
            field="schema_version",
            found=found,
            expected=f"at most {schema.SCHEMA_VERSION}: upgrade Sightline, or name another --store",
        )
    if found < schema.SCHEMA_VERSION:
        _migrate(connection, name, found, tables)
    if not tables.issuperset(schema.metadata.tables):
        # Caches that the user dropped.
        schema.metadata.create_all(connection)
    return found < schema.SCHEMA_VERSION


def _parse(url: str) -> URL:
    try:
        return make_url(url)
    except (ArgumentError, ValueError):
        scheme = url.partition("://")[0]
        raise UserError(
            f"the store's URL, {scheme}://..., is invalid",
            expected="a path, or postgresql://USER:PASSWORD@HOST:PORT/NAME",
        ) from None


def schema_version(connection: Connection, name: str) -> int:
    """Read the schema version of a database that has tables.

    Args:
        connection: A connection to it.
        name: The store's name in messages.

    Returns:
        The version.

    Raises:
        UserError: The tables are not those of a store.
    """
    value = None
    if inspect(connection).has_table("meta") and inspect(connection).has_table("answers"):
        query = select(schema.meta.c.value).where(schema.meta.c.name == "schema_version")
        value = connection.execute(query).scalar_one_or_none()
    # SQLite keeps a value of another type in any column.
    if not (isinstance(value, str) and _VERSION.fullmatch(value)):
        raise not_a_store(name)
    return int(value)


def _sqlite(path: Path, *, create: bool) -> Engine:
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
    address = URL.create("sqlite", database=str(path.absolute()))
    engine = create_engine(address, connect_args={"timeout": LOCK_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    event.listen(engine, "invalidate", _roll_back_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous=NORMAL")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite itself does not wait while another process does the same."""
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(connection: Connection) -> None:
    """Let a writer take the lock at once and wait for it; a deferred transaction would fail half-way."""
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _roll_back_sqlite(connection: sqlite3.Connection, _record: object, _error: object) -> None:
    """End the transaction of a connection that Ctrl-C interrupted: SQLAlchemy closes it.

    SQLite ends a closed connection when its last cursor is gone. The traceback of the interruption holds one,
    so that what is done before the process ends, such as to release claims, would wait for a lock in vain.
    """
    with suppress(sqlite3.Error):  # the error that made it invalid is reported
        connection.rollback()


def _migrate(connection: Connection, name: str, version: int, tables: set[str]) -> None:
    """Back up and migrate an older schema, in the transaction that holds the lock."""
    if connection.dialect.name == "postgresql":
        postgres.back_up(connection, version, tables)
    else:
        _back_up_sqlite(str(connection.engine.url.database), version)
    migrate(connection, name, version)
    connection.execute(
        update(schema.meta)
        .where(schema.meta.c.name == "schema_version")
        .values(value=str(schema.SCHEMA_VERSION))
    )


def _shrink(engine: Engine) -> None:
    """Give the space of the earlier tables back. If it fails, the store is only larger."""
    with closing(engine.raw_connection()) as connection, suppress(sqlite3.OperationalError):
        connection.cursor().execute("VACUUM")


def _back_up_sqlite(file: str, version: int) -> None:
    """Write a complete copy next to the store; a copy of the file would lack the write-ahead log."""
    with (
        closing(sqlite3.connect(file)) as source,
        closing(sqlite3.connect(f"{file}.v{version}.backup")) as copy,
    ):
        source.backup(copy)


def filesystem(folder: Path, mounts: str = "/proc/mounts") -> str:
    """Find the type of the file system that holds a folder.

    Args:
        folder: The folder.
        mounts: The file that lists the mounted file systems.

    Returns:
        The type, such as `ext4`; '' where the system does not list them (not Linux).
    """
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
