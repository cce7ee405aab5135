"""Opens stores for maintenance: an older one is migrated in a temporary copy, never in place."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sightline.engine.connect import connect, display, sqlite_path
from sightline.engine.postgres import wait_for_migration
from sightline.engine.store import Store
from sightline.engine.tables import SCHEMA_VERSION, schema_version
from sightline.errors import EnvironmentFailedError, UserError


def version_of(url: str) -> int:
    """Read which schema a store has, without a change to it.

    Args:
        url: A path or a database URL.

    Returns:
        The version of its schema.

    Raises:
        UserError: There is no store.
        EnvironmentFailedError: The database fails.
    """
    database = connect(url, create=False)
    try:
        database.check_connection()
        with database.read() as connection:
            wait_for_migration(connection)
            return schema_version(connection, database.name)
    finally:
        database.close()


def refuse_newer(url: str) -> None:
    """Check that a store exists, and that this Sightline can read it.

    Args:
        url: A path or a database URL.

    Raises:
        UserError: There is no store, or a newer Sightline wrote it.
        EnvironmentFailedError: The database fails.
    """
    if (found := version_of(url)) > SCHEMA_VERSION:
        raise UserError(
            "a newer Sightline wrote this store",
            file=display(url),
            field="schema_version",
            found=found,
            expected=f"at most {SCHEMA_VERSION}: upgrade Sightline",
        )


@contextmanager
def unchanged_store(url: str) -> Iterator[Store]:
    """Open an existing store that is only read. An older one is migrated in a temporary copy.

    Args:
        url: A path or a database URL.

    Yields:
        The store, or its copy.

    Raises:
        UserError: There is no store, a newer Sightline wrote it, or it is an older one on a server.
        EnvironmentFailedError: The database fails, or there is no room for the copy.
    """
    with tempfile.TemporaryDirectory(prefix="sightline-") as folder:
        is_older = version_of(url) < SCHEMA_VERSION
        store = Store.open(_copy(url, Path(folder)) if is_older else url, create=False)
        try:
            yield store
        finally:
            store.close()


def _copy(url: str, folder: Path) -> str:
    path = sqlite_path(url)
    if path is None:
        raise UserError(
            "an older Sightline wrote this store, and a database on a server has no temporary copy",
            file=display(url),
            expected="`sightline runs list --store URL` first, which migrates it (back it up before)",
        )
    copy = folder / path.name
    try:
        with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(copy)) as target:
            source.backup(target)
    except sqlite3.Error as error:
        raise EnvironmentFailedError(
            f"the store {path} cannot be copied to {folder}: {error}; set TMPDIR to a folder with more room"
        ) from None
    return str(copy)
