"""The check that a run exists, before something of it is written."""

from __future__ import annotations

from sightline.engine.connection import Connection
from sightline.engine.database import row_lock
from sightline.errors import EnvironmentFailedError, NoSuchRecordError


def is_there(connection: Connection, run: int) -> bool:
    """Find out whether a run exists. One that exists stays until the end of the transaction."""
    query = f"SELECT id FROM runs WHERE id = ? {row_lock(connection, 'FOR KEY SHARE')}"
    return bool(connection.rows(query, (run,)))


def require_run(connection: Connection, run: int, name: str) -> None:
    """Refuse a run that does not exist, before something refers to it."""
    if not is_there(connection, run):
        raise no_run(run, name)


def no_run(run: int, name: str) -> NoSuchRecordError:
    """Make the error of a run that does not exist."""
    return NoSuchRecordError(
        f"there is no run {run} in this store", file=name, expected="a run of `sightline runs list`"
    )


def deleted_run(run: int, name: str) -> EnvironmentFailedError:
    """Make the error of a run that somebody deleted while it was written."""
    return EnvironmentFailedError(
        f"run {run} of the store {name} was deleted while it was written. Its answers are kept; run the same "
        "command again"
    )
